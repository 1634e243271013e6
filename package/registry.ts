import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** Kept between runs: outside the tree, which a build does not change. */
const CACHE = path.join(process.env["XDG_CACHE_HOME"] ?? path.join(os.homedir(), ".cache"), "collector-package");

/**
 * The unpacked content of `name@version` from the npm registry, taken only if it has this integrity (Subresource Integrity, sha512).
 * The folder is the caller's, below `work`. Throws Error.
 */
export function fetchPackage(name: string, version: string, integrity: string, work: string): string {
  mkdirSync(CACHE, { recursive: true });
  const file = path.join(CACHE, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
  if (!existsSync(file) || integrityOf(file) !== integrity) download(`${name}@${version}`, file, integrity);
  const folder = path.join(work, name);
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", file, "-C", folder, "--strip-components=1", "--no-same-owner"]);
  return folder;
}

function download(spec: string, file: string, integrity: string): void {
  const folder = mkdtempSync(path.join(CACHE, "download-"));
  try {
    const out = execFileSync("npm", ["pack", spec, "--silent", "--pack-destination", folder], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    });
    const got = path.join(folder, out.trim().split("\n").at(-1) ?? "");
    const found = integrityOf(got);
    if (found !== integrity) throw new Error(`${spec} has integrity ${found}, expected ${integrity}; it is not what was reviewed`);
    renameSync(got, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const integrityOf = (file: string): string => `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
