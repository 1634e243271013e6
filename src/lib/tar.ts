/** A file of an archive. */
export interface TarFile {
  /** At most 100 bytes in UTF-8, with `/` between folders. */
  readonly name: string;
  readonly content: string | Uint8Array;
}

const BLOCK = 512;

/** A ustar archive (POSIX.1-2017, pax, "ustar Interchange Format") of files that their owner alone may read. `mtimeMs` is epoch ms. Pure. */
export function tarOf(files: readonly TarFile[], mtimeMs: number): Buffer {
  const parts: Buffer[] = [];
  for (const { name, content } of files) {
    const bytes = Buffer.from(content);
    parts.push(headerOf(name, bytes.length, mtimeMs), bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK));
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function headerOf(name: string, size: number, mtimeMs: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;
  header.write(name, 0, 100);
  header.write(octal(0o600, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(size, 12), 124);
  header.write(octal(Math.floor(mtimeMs / 1000), 12), 136);
  // The checksum counts its own field as blanks.
  header.write("        ", 148);
  header.write("0", 156);
  header.write("ustar\0", 257);
  header.write("00", 263);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
