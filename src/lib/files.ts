import { randomUUID } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { errorCode } from "../model/failure.ts";
import { readBoundedFile } from "./bounded-file.ts";

/** True: it is the file system's error with this code, such as ENOENT. */
export const hasCode = (error: unknown, code: string): boolean => errorCode(error) === code;
/** Also where the error of the file system is the cause, as `readBoundedFile` has it. */
export const isAbsent = (error: unknown): boolean =>
  hasCode(error, "ENOENT") || (error instanceof Error && error.cause !== undefined && hasCode(error.cause, "ENOENT"));

/** For its owner alone. Throws the file system's error. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}

const COPY_BYTES = 2 ** 20;
/** Files that a process left half when it was ended; so old that nobody writes them any more. */
const LEFT_MS = 3_600_000;

/** A name in this folder for what is not whole yet, which no reader takes for anything, and which `sweep` knows. */
export const temporaryIn = (folder: string): string => path.join(folder, `.${randomUUID()}.new`);

/** Removes what was left half in a folder. Throws the file system's error. */
export function sweep(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!/^\.[0-9a-f-]{36}\.new$/.test(name)) continue;
    const file = path.join(folder, name);
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat && Date.now() - stat.mtimeMs > LEFT_MS) remove(file);
  }
}

export interface FileOptions {
  /** Whatever the umask is. Default: for its owner alone (0600). */
  readonly mode?: number;
  /** Group that it is to belong to; who is not root may name one of their own only. */
  readonly gid?: number;
  /** False: what a power cut may take away again, and not worth the wait for the disk. */
  readonly lasting?: boolean;
}

/**
 * A new file with these bytes, on disk under a name of its own that no reader takes for anything, for `place` to put where it belongs.
 * Several processes write to one folder: nothing is ever seen half, and of two that make the same file one wins.
 */
function withNewFile<T>(
  target: string,
  bytes: Uint8Array | string | ((handle: number) => void),
  { mode = 0o600, gid, lasting = true }: FileOptions,
  place: (temporary: string) => T,
): T {
  const temporary = temporaryIn(path.dirname(target));
  const handle = openSync(temporary, "wx", mode);
  try {
    try {
      if (gid !== undefined) fchownSync(handle, -1, gid);
      fchmodSync(handle, mode);
      if (typeof bytes === "function") bytes(handle);
      else writeWhole(handle, typeof bytes === "string" ? Buffer.from(bytes) : bytes);
      if (lasting) fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    const result = place(temporary);
    if (lasting) syncPath(path.dirname(target));
    return result;
  } finally {
    remove(temporary);
  }
}

function writeWhole(handle: number, data: Uint8Array): void {
  for (let at = 0; at < data.length; ) at += writeSync(handle, data, at);
}

/** Puts the file there, in place of what is there. Throws the file system's error. */
export function replaceFile(target: string, bytes: Uint8Array | string, options: FileOptions = {}): void {
  withNewFile(target, bytes, options, (temporary) => renameSync(temporary, target));
}

/** Works as `replaceFile` does, with the bytes of an open file from where it stands to its end. Throws the file system's error. */
export function replaceFileFrom(target: string, source: number, options: FileOptions = {}): void {
  const chunk = Buffer.alloc(COPY_BYTES);
  const write = (handle: number): void => {
    for (let length = readSync(source, chunk); length > 0; length = readSync(source, chunk)) writeWhole(handle, chunk.subarray(0, length));
  };
  withNewFile(target, write, options, (temporary) => renameSync(temporary, target));
}

/** As `replaceFile`, beside what else this thread does: other threads write and wait for the disk. `modifiedMs`: when it says that it was changed. */
export async function replaceFileInPieces(target: string, bytes: Uint8Array, modifiedMs: number): Promise<void> {
  const temporary = path.join(path.dirname(target), `.${randomUUID()}.new`);
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.utimes(modifiedMs / 1000, modifiedMs / 1000);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const folder = await open(path.dirname(target), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Puts the file there; false: there is one already, and it stays. Throws the file system's error. */
export function createFile(target: string, bytes: Uint8Array | string, options: FileOptions = {}): boolean {
  return withNewFile(target, bytes, options, (temporary) => {
    try {
      linkSync(temporary, target);
      return true;
    } catch (error) {
      if (hasCode(error, "EEXIST")) return false;
      throw error;
    }
  });
}

/** False: it was not there. Throws the file system's error. */
export function remove(file: string): boolean {
  try {
    unlinkSync(file);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Moves it; false: somebody else has done so. Throws the file system's error. */
export function move(from: string, to: string): boolean {
  try {
    renameSync(from, to);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
  syncPath(path.dirname(to));
  return true;
}

/** Undefined: there is none. Throws Error where it cannot be read or is too long. */
export function readIfThere(file: string, maxBytes: number): Buffer | undefined {
  try {
    return readBoundedFile(file, maxBytes);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** What a JSON file of the collector's own holds; undefined: there is none. Throws Error where it cannot be read, is no JSON or not of this form. */
export function readJsonIfThere<T>(
  file: string,
  maxBytes: number,
  schema: { safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false } },
): T | undefined {
  const bytes = readIfThere(file, maxBytes);
  if (!bytes) return undefined;
  let content: unknown;
  try {
    content = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw new Error(`${file} is not JSON`);
  }
  const parsed = schema.safeParse(content);
  if (!parsed.success) throw new Error(`${file} is not what the collector wrote`);
  return parsed.data;
}

/** Names in a folder, sorted, without hidden ones; none where there is no such folder. Throws the file system's error. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => !name.startsWith("."))
      .sort();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** What changes when the file does; undefined: it is not there or may not be seen. */
export function stampOf(file: string): string | undefined {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.mtimeNs} ${stat.size} ${stat.ino}`;
}

/** Puts on disk what was written to a file or a folder. Throws the file system's error. */
export function syncPath(file: string): void {
  const handle = openSync(file, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
