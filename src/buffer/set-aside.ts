import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorCode } from "../model/failure.ts";

/** Files set aside that are kept; older ones are removed, so that a failing disk is not filled by its own failures. */
const KEPT = 3;

/** The file is not a buffer's, or not a whole one. The message says why. */
export class DamagedFileError extends Error {
  override readonly name = "DamagedFileError";
}

/** True when the file itself is at fault, so that a new one helps; false for a full disk, rights, or a lock. */
export function isDamage(error: unknown, file: string): boolean {
  if (error instanceof DamagedFileError) return true;
  const code = errorCode(error);
  if (code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT")) return true;
  return code === "SQLITE_CANTOPEN" && statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** True when the file, its tables or its pages may be why; false for a full or read-only disk, memory, and another program's lock. */
export const isOfFile = (error: unknown): boolean => /^SQLITE_(?!FULL|READONLY|NOMEM|BUSY|LOCKED|AUTH|PERM)/.test(errorCode(error));

const PROBE_BYTES = 64 * 1024;

/** True when a file beside this one can be written and synchronised at this moment. Never throws. */
export function takesNewFile(file: string): boolean {
  const probe = `${file}.probe`;
  try {
    const fd = openSync(probe, "w", 0o640);
    try {
      writeSync(fd, new Uint8Array(PROBE_BYTES));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
      rmSync(probe, { force: true });
    }
    return true;
  } catch {
    return false;
  }
}

/**
 * Renames the file, with SQLite's own files next to it, to `<name>.damaged-<time>`, and removes older ones: three are kept,
 * and never more than maxBytes of them. `isTaken`: what can be read of it was taken over, and its name says so. Returns the new path; undefined: there was no file. Throws what the file system throws.
 */
export function setAside(file: string, nowMs: number, maxBytes: number, isTaken = false): string | undefined {
  const isThere = statSync(file, { throwIfNoEntry: false }) !== undefined;
  const target = moveAside(file, `damaged-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, "")}${isTaken ? "-taken" : ""}`);
  removeOldest(file, maxBytes);
  return isThere ? target : undefined;
}

/** Renames the file, with SQLite's own files next to it, to `<name>.<suffix>`, or that with a number. Returns the new path. */
export function moveAside(file: string, suffix: string): string {
  let target = `${file}.${suffix}`;
  for (let n = 2; statSync(target, { throwIfNoEntry: false }); n++) target = `${file}.${suffix}-${n}`;
  for (const own of ["", "-wal", "-shm"])
    if (statSync(`${file}${own}`, { throwIfNoEntry: false })) renameSync(`${file}${own}`, `${target}${own}`);
  return target;
}

/** Removes the oldest until so many are left, and their bytes together are within the bound. */
function removeOldest(file: string, maxBytes: number): void {
  const folder = dirname(file);
  const prefix = `${basename(file)}.damaged-`;
  const aside = readdirSync(folder)
    .filter((name) => name.startsWith(prefix) && !/-(wal|shm)$/.test(name))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  let bytes = 0;
  let kept = 0;
  for (const name of aside.reverse()) {
    const parts = ["", "-wal", "-shm"].map((suffix) => join(folder, `${name}${suffix}`));
    bytes += parts.reduce((sum, part) => sum + (statSync(part, { throwIfNoEntry: false })?.size ?? 0), 0);
    if (++kept > KEPT || bytes > maxBytes) for (const part of parts) rmSync(part, { recursive: true, force: true });
  }
}
