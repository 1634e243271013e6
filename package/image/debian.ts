import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Architecture } from "../tools.ts";
import type { TarEntry } from "./tar.ts";

/** Debian 12: the libraries are older than those of any machine that the packages are for. */
const SUITE = "bookworm";

/**
 * The `.deb` files of these packages and of all that they depend on, in `folder`: as apt accepts them from Debian's mirror with Debian's keys,
 * by mmdebstrap, for any architecture, without root. Throws Error.
 */
export function fetchDebs(packages: readonly string[], architecture: Architecture, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const copy = `cp "$1"/var/cache/apt/archives/*.deb '${folder}'`;
  const words = ["--mode=chrootless", "--variant=extract", `--architectures=${architecture}`, `--include=${packages.join(",")}`];
  execFileSync("mmdebstrap", ["--quiet", ...words, `--extract-hook=${copy}`, SUITE, "/dev/null"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** The file of a package among those of `folder`. Throws Error. */
export function debOf(name: string, folder: string): string {
  const file = readdirSync(folder).find((one) => one.startsWith(`${name}_`) && one.endsWith(".deb"));
  if (file === undefined) throw new Error(`${folder} holds no ${name}_….deb`);
  return path.join(folder, file);
}

/**
 * The files that these packages install, owned by root, where `keeps` accepts the name; and the description of each package, in the place where
 * scanners look for it in images without dpkg. Their scripts do not run. Throws Error.
 */
export function entriesOfDebs(debs: readonly string[], keeps: (name: string) => boolean): readonly TarEntry[] {
  const root = mkdtempSync(path.join(os.tmpdir(), "collector-layer-"));
  try {
    const controls = debs.map((deb): TarEntry => {
      execFileSync("dpkg-deb", ["--extract", deb, root]);
      const control = execFileSync("dpkg-deb", ["--field", deb]);
      const name = /^Package: (\S+)$/m.exec(control.toString())?.[1] ?? "";
      return { name: `${STATUS}/${name}`, type: "file", mode: 0o644, content: control };
    });
    const found = readdirSync(root, { recursive: true, encoding: "utf8" })
      .filter(keeps)
      .map((name) => entryOf(root, name));
    return withFolders([...found, ...controls]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const STATUS = "var/lib/dpkg/status.d";

/** Adds the folders that the entries are in, where they are missing. */
export function withFolders(entries: readonly TarEntry[]): readonly TarEntry[] {
  const all = new Map(entries.map((entry) => [entry.name, entry]));
  for (const { name } of entries)
    for (let folder = path.dirname(name); folder !== "."; folder = path.dirname(folder))
      if (!all.has(folder)) all.set(folder, { name: folder, type: "folder", mode: 0o755 });
  return [...all.values()];
}

function entryOf(root: string, name: string): TarEntry {
  const file = path.join(root, name);
  const stat = lstatSync(file);
  if (stat.isSymbolicLink()) return { name, type: "symlink", mode: 0o777, target: readlinkSync(file) };
  const mode = stat.mode & 0o7777;
  return stat.isDirectory() ? { name, type: "folder", mode } : { name, type: "file", mode, content: readFileSync(file) };
}
