import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { errorCode } from "../model/failure.ts";

/**
 * The bytes of a file, at most `maxBytes` of them. Throws a sentence for people where it is absent, no plain file, too long or not readable.
 * A pipe or a device that stands where a file should be neither blocks nor fills the memory.
 */
export function readBoundedFile(path: string, maxBytes: number): Buffer {
  let handle: number;
  try {
    handle = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new Error(openSentence(path, error), { cause: error });
  }
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile()) throw new Error(`${path} is ${stat.isDirectory() ? "a folder" : "no plain file"}; a file is needed here`);
    if (stat.size > maxBytes) throw new Error(tooLong(path, maxBytes));
    // One byte more than allowed shows a file that grew since.
    const bytes = Buffer.alloc(Math.min(stat.size, maxBytes) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(handle, bytes, length, bytes.length - length, null);
    if (length > maxBytes) throw new Error(tooLong(path, maxBytes));
    return bytes.subarray(0, length);
  } finally {
    closeSync(handle);
  }
}

const tooLong = (path: string, maxBytes: number): string => `${path} is longer than ${maxBytes} bytes, the most that is read of it`;

function openSentence(path: string, error: unknown): string {
  const code = errorCode(error);
  if (code === "ENOENT") return `${path} does not exist`;
  if (code === "EACCES" || code === "EPERM") return `${path} may not be read by this user; check its owner and mode (ls -l)`;
  if (code === "ENOTDIR") return `${path}: a part of this path is no folder`;
  if (code === "ELOOP") return `${path}: the symbolic links form a circle`;
  return `${path} cannot be opened (${code || String(error)})`;
}
