import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Files set aside that are kept; older ones are removed, so that a failing disk is not filled by its own failures. */
const KEPT = 2;

/** The file is not a buffer's, or not a whole one. The message says why. */
export class DamagedFileError extends Error {
  override readonly name = "DamagedFileError";
}

/** Whether the file itself is at fault, so that a new one helps; not so for a full disk, rights, or a lock. */
export function isDamage(error: unknown, file: string): boolean {
  if (error instanceof DamagedFileError) return true;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT")) return true;
  return code === "SQLITE_CANTOPEN" && statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Renames the file, with what SQLite keeps beside it, to `<name>.damaged-<time>`. Returns the new path. */
export function setAside(file: string, nowMs: number): string {
  const suffix = `.damaged-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
  let target = `${file}${suffix}`;
  for (let n = 2; statSync(target, { throwIfNoEntry: false }); n++) target = `${file}${suffix}-${n}`;
  renameSync(file, target);
  for (const beside of ["-wal", "-shm"])
    if (statSync(`${file}${beside}`, { throwIfNoEntry: false })) renameSync(`${file}${beside}`, `${target}${beside}`);
  removeOldest(file);
  return target;
}

function removeOldest(file: string): void {
  const folder = dirname(file);
  const prefix = `${basename(file)}.damaged-`;
  const aside = readdirSync(folder)
    .filter((name) => name.startsWith(prefix) && !/-(wal|shm)$/.test(name))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  for (const name of aside.slice(0, -KEPT))
    for (const beside of ["", "-wal", "-shm"]) rmSync(join(folder, `${name}${beside}`), { recursive: true, force: true });
}
