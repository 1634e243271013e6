import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode } from "../model/failure.ts";

/** SQLite's own file that is shared with readers (32 KiB), a mark, and some pages of the WAL. */
const RESERVE_BYTES = 192 * 1024;

const reserveFile = (file: string): string => `${file}.reserve`;

/** Less is of no use. */
const LEAST_BYTES = 48 * 1024;
/** While values are written, room is only taken where there is much more. */
const PLENTY_BYTES = 8 * 2 ** 20;

/**
 * Takes room on the disk that is given up at an opening which has none: what waits in the file can then be delivered. `isClosing`: also of
 * the little that the closed file has left. Never throws.
 */
export function keepReserve(file: string, isClosing = false): void {
  const path = reserveFile(file);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= LEAST_BYTES) return;
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    const free = bavail * bsize;
    if (free < (isClosing ? LEAST_BYTES : PLENTY_BYTES)) return;
    const fd = openSync(path, "w", 0o640);
    try {
      writeSync(fd, Buffer.alloc(Math.min(RESERVE_BYTES, free), 1));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    removed(path);
  }
}

/** Gives the room up for an opening that failed for want of it; false: that was not why, or there is none. */
export function useReserve(file: string, error: unknown): boolean {
  if (!/^(SQLITE_FULL|SQLITE_IOERR|SQLITE_CANTOPEN|ENOSPC|EDQUOT)/.test(errorCode(error))) return false;
  return statSync(reserveFile(file), { throwIfNoEntry: false }) !== undefined && removed(reserveFile(file));
}

/** False: the file system is read-only, or more is wrong with it. */
function removed(path: string): boolean {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
}

/** True: the disk has room for so much more; not where it cannot be asked. Never throws. */
export function hasRoom(file: string, neededBytes: number): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize >= neededBytes;
  } catch {
    return false;
  }
}

/** Bound of a buffer for which the settings have none, where the disk can be asked; where not. */
const LEAST_MAX_BYTES = 64 * 2 ** 20;
const MOST_MAX_BYTES = 16 * 2 ** 30;
const UNKNOWN_MAX_BYTES = 2 ** 30;

/**
 * The bound of a buffer's file where the settings have none: half of what the disk has free together with what the file has already, so that
 * it stays the same while the file fills; never less than the file has. Never throws.
 */
export function defaultMaxBytes(file: string): number {
  try {
    const own = [file, `${file}-wal`].reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
    const { bavail, bsize } = statfsSync(dirname(file));
    const half = Math.floor((bavail * bsize + own) / 2 ** 21) * 2 ** 20;
    return Math.max(own, Math.min(MOST_MAX_BYTES, Math.max(LEAST_MAX_BYTES, half)));
  } catch {
    return UNKNOWN_MAX_BYTES;
  }
}

/** What to say where the disk has less room than the buffer may still take; undefined: it has, or cannot be asked. Never throws. */
export function roomWarning(file: string, neededBytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    const free = bavail * bsize;
    if (free >= neededBytes) return undefined;
    const mib = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`;
    return `buffer.max_bytes lets the buffer take ${mib(neededBytes)} more, and the disk of ${dirname(file)} has ${mib(free)} free: it is full before the oldest values go; lower buffer.max_bytes or free space`;
  } catch {
    return undefined;
  }
}
