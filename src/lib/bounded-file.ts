import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errorCode } from "../model/failure.ts";

/**
 * The bytes of a file, at most `maxBytes` of them. Throws a sentence for people where it is absent, no plain file, too long or not readable.
 * A pipe or a device that stands where a file should be neither blocks nor fills the memory.
 */
export function readBoundedFile(path: string, maxBytes: number): Buffer {
  let handle: number;
  try {
    handle = openSync(path, FLAGS);
  } catch (error) {
    throw new Error(openSentence(path, error), { cause: error });
  }
  try {
    const bytes = spaceFor(path, fstatSync(handle), maxBytes);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(handle, bytes, length, bytes.length - length, null);
    if (length > maxBytes) throw new Error(tooLong(path, maxBytes));
    return bytes.subarray(0, length);
  } finally {
    closeSync(handle);
  }
}

/** Works as readBoundedFile does, beside what else this thread does: the file is read by another one, piece by piece. */
export async function readBoundedFileInPieces(path: string, maxBytes: number): Promise<Buffer> {
  let handle: FileHandle;
  try {
    handle = await open(path, FLAGS);
  } catch (error) {
    throw new Error(openSentence(path, error), { cause: error });
  }
  try {
    const bytes = spaceFor(path, await handle.stat(), maxBytes);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      ({ bytesRead: read } = await handle.read(bytes, length, Math.min(BYTES_OF_PIECE, bytes.length - length), null));
    if (length > maxBytes) throw new Error(tooLong(path, maxBytes));
    return bytes.subarray(0, length);
  } finally {
    await handle.close();
  }
}

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
const BYTES_OF_PIECE = 1024 * 1024;

/** One byte more than there are shows a file that grew since. Throws a sentence where it is no file of that length. */
function spaceFor(path: string, stat: Stats, maxBytes: number): Buffer {
  if (!stat.isFile()) throw new Error(`${path} is ${stat.isDirectory() ? "a folder" : "no plain file"}; a file is needed here`);
  if (stat.size > maxBytes) throw new Error(tooLong(path, maxBytes));
  return Buffer.alloc(Math.min(stat.size, maxBytes) + 1);
}

const tooLong = (path: string, maxBytes: number): string => `${path} is longer than ${maxBytes} bytes, the most that is read of it`;

function openSentence(path: string, error: unknown): string {
  const code = errorCode(error);
  if (code === "ENOENT") return `${path} does not exist`;
  if (code === "EACCES" || code === "EPERM") return `${path} may not be read by this user; check its owner and mode (ls -l)`;
  if (code === "ENOTDIR") return `${path}: a part of this path is not a folder`;
  if (code === "ELOOP") return `${path}: the symbolic links form a circle`;
  return `${path} cannot be opened (${code || String(error)})`;
}
