import { execFileSync } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { inject } from "vitest";
import { inTurn } from "../../support/in-turn.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const BUILT_WITHIN_MS = 240_000;

/** Builds the packages into `out`, as `npm run package` with these words does, but packed quickly, without images and rpms. */
export function buildPackages(out: string, umask: number, ...words: readonly string[]): void {
  const before = process.umask(umask);
  try {
    execFileSync(
      path.join(ROOT, "bin/collector-node"),
      [path.join(ROOT, "package/package.ts"), "--fast", "--without-images", "--without-rpm", ...words, "--out", out],
      {
        stdio: ["ignore", "ignore", "inherit"],
      },
    );
  } finally {
    process.umask(before);
  }
}

/** Folder with the packages of these architectures at least, built once in a run of the tests. Not to be changed. */
export async function packagesOfRun(wanted: "amd64" | "all"): Promise<string> {
  const folderOf = (name: string): string => path.join(inject("runFolder"), `packages-${name}`);
  return inTurn(path.join(inject("runFolder"), "packages.lock"), BUILT_WITHIN_MS, async () => {
    const found = ["all", wanted].map(folderOf).find(existsSync);
    if (found !== undefined) return found;
    const part = folderOf("part");
    rmSync(part, { recursive: true, force: true });
    buildPackages(part, 0o022, ...(wanted === "all" ? [] : ["--arch", wanted]));
    renameSync(part, folderOf(wanted));
    return folderOf(wanted);
  });
}
