import { execFileSync } from "node:child_process";

/** What Debian takes for an upstream version (Debian Policy 5.6.12), without the tilde, which would sort before what it follows. */
const UPSTREAM = /^[0-9][0-9A-Za-z.+]*$/;

/**
 * The version of a package: that of package.json and the number of commits behind it, `0.2.0+425`, so that a package of a later commit is
 * newer to apt although package.json says the same. Throws Error where `root` is not a whole clone, whose commits cannot be counted;
 * `isForTest` takes those that are there.
 */
export function versionOf(root: string, released: string, isForTest = false): string {
  const git = (...args: readonly string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  if (!isForTest && git("rev-parse", "--is-shallow-repository") === "true")
    throw new Error("a shallow clone does not have all commits to count; run git fetch --unshallow, or give --version");
  return checkedVersion(`${released}+${git("rev-list", "--count", "HEAD")}`);
}

/** The version as it is. Throws Error where Debian would refuse it. */
export function checkedVersion(version: string): string {
  if (!UPSTREAM.test(version)) throw new Error(`version ${version}: it begins with a digit and holds digits, letters, dots and plus signs`);
  return version;
}
