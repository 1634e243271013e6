import { crc32 } from "node:zlib";
import { messageOf } from "../model/failure.ts";

/** Bounds of a zip file, bytes once inflated. A tag table of 100,000 rows has 20 files and 60 MiB. */
export const ZIP_LIMITS = { files: 2000, bytes: 128 * 2 ** 20, seconds: 30 } as const;

export interface Fault {
  /** A sentence for people: it says what is wrong with the file. */
  readonly fault: string;
}

export interface ZipOptions {
  readonly limits?: { readonly files: number; readonly bytes: number; readonly seconds: number };
  /** Milliseconds of a clock that only rises. */
  readonly now?: () => number;
}

/** Says whether the bytes begin as a zip file does. Pure. */
export const isZip = (bytes: Uint8Array): boolean => bytes[0] === 0x50 && bytes[1] === 0x4b && (bytes[2] === 0x03 || bytes[2] === 0x05);

/**
 * The files of a zip file whose names `isWanted` takes, by name. Sizes are checked as declared and as inflated. A fault: the file is cut
 * off, encrypted, damaged, or beyond the limits. Never throws.
 */
export async function readZip(
  bytes: Uint8Array,
  isWanted: (name: string) => boolean,
  { limits = ZIP_LIMITS, now = performance.now.bind(performance) }: ZipOptions = {},
): Promise<ReadonlyMap<string, Buffer> | Fault> {
  const until = now() + limits.seconds * 1000;
  const files = new Map<string, Buffer>();
  let left: number = limits.bytes;
  try {
    const { default: yauzl } = await import("yauzl");
    const zip = await yauzl.fromBufferPromise(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (zip.entryCount > limits.files) return { fault: `the zip file holds ${zip.entryCount} files; at most ${limits.files} are read` };
    for await (const entry of zip.eachEntry()) {
      if (!isWanted(entry.fileName)) continue;
      if (entry.isEncrypted()) return { fault: "the file is encrypted; save it without a password" };
      if (files.has(entry.fileName)) return { fault: `the zip file holds ${entry.fileName} twice` };
      if (entry.uncompressedSize > left) return tooLarge(entry.fileName, limits.bytes);
      const chunks: Buffer[] = [];
      for await (const chunk of (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>) {
        left -= chunk.length;
        if (left < 0) return tooLarge(entry.fileName, limits.bytes);
        if (now() > until) return { fault: `unpacking took longer than ${limits.seconds} s` };
        chunks.push(chunk);
      }
      const content = Buffer.concat(chunks);
      if (crc32(content) !== entry.crc32) return { fault: `the zip file is damaged: the checksum of ${entry.fileName} is wrong` };
      files.set(entry.fileName, content);
    }
  } catch (error) {
    return { fault: `the zip file is damaged or cut off: ${messageOf(error)}` };
  }
  return files;
}

const tooLarge = (name: string, bytes: number): Fault => ({
  fault: `${name} makes the file longer than ${bytes / 1024} KiB once it is unpacked`,
});
