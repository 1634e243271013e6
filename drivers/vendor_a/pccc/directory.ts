import type { Discovered, DriverContext } from "../../driver.ts";
import type { FileChannel } from "./channel.ts";
import { type FileKind, isInputOrOutput, kindByCode } from "./files.ts";
import { directoryRead } from "./frames.ts";
import { fileRefusal } from "./refusals.ts";

/**
 * The file directory, file 0. Which bytes are what, an independent client took from captures of the SLC 5/05, MicroLogix 1100 and 1400; no
 * document says it, and other models have other layouts.
 */
export interface Layout {
  /** The type of file 0. */
  readonly code: number;
  /** Place of the first row. */
  readonly rowsAt: number;
}

const ROW_BYTES = 10;
/** A number that the program does not use. */
const SKIPPED = 0x81;
const PIECE_BYTES = 80;
/** The longest directory that is read: 256 rows and what is before them. */
const MAX_BYTES = 4096;
const GOOD = 0;

/** By the name of the processor; undefined: nobody has published the layout of its directory. Pure. */
export function layoutOf(name: string): Layout | undefined {
  if (/^5\/05|^1747-L55/.test(name)) return { code: 0x01, rowsAt: 79 };
  if (/^1763/.test(name)) return { code: 0x02, rowsAt: 233 };
  return /^1766/.test(name) ? { code: 0x03, rowsAt: 233 } : undefined;
}

/** A data file of the directory. */
export interface ListedFile {
  readonly kind: FileKind;
  readonly file: number;
  readonly bytes: number;
}

/** The data files in the bytes of a directory; what is cut off or no data file is left out. Pure. */
export function filesIn(directory: Buffer, { rowsAt }: Layout): ListedFile[] {
  const files: ListedFile[] = [];
  for (let at = rowsAt, file = 0; at + 3 <= directory.length; at += ROW_BYTES) {
    const code = directory[at] ?? 0;
    const kind = kindByCode(code);
    if (kind) files.push({ kind, file, bytes: directory.readUInt16LE(at + 1) });
    // Files that are not read have numbers too.
    if (kind || (code >= SKIPPED && code <= 0x94)) file++;
  }
  return files;
}

/** Reads the directory in pieces until the controller has no more. Throws as `FileChannel.ask`, and FaultError where it has none. */
async function readDirectory(channel: FileChannel, { code }: Layout, ctx: DriverContext): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  let isMore = true;
  while (isMore && length < MAX_BYTES) {
    const command = directoryRead({ bytes: PIECE_BYTES, code, offset: length >> 1 });
    const piece = await channel.ask<Buffer | undefined>(
      ctx,
      () => `the file directory from byte ${length} on`,
      command,
      ({ bytes, at, end, status, extended }, done, refuse) => {
        if (status === GOOD && end - at > PIECE_BYTES) return `${end - at} bytes answer a read of ${PIECE_BYTES} of the directory`;
        if (status !== GOOD && length === 0) refuse(fileRefusal(status, extended, "the file directory"));
        else done(status === GOOD ? Buffer.from(bytes.subarray(at, end)) : undefined);
        return undefined;
      },
    );
    if (piece) pieces.push(piece);
    length += piece?.length ?? 0;
    isMore = piece?.length === PIECE_BYTES;
  }
  return Buffer.concat(pieces);
}

/** Each file with its elements, inputs and outputs without: the directory does not say how they lie in slots. */
export async function* listFiles(channel: FileChannel, layout: Layout, ctx: DriverContext): AsyncGenerator<Discovered> {
  await channel.ready(ctx);
  for (const { kind, file, bytes } of filesIn(await readDirectory(channel, layout, ctx), layout)) {
    const { letter, scalar, bytes: size, members } = kind;
    const elements = Math.floor(bytes / size);
    const name = isInputOrOutput(letter) ? letter : `${letter}${file}`;
    const comment = `${elements} elements`;
    yield { address: name, name, type: undefined, comment };
    if (isInputOrOutput(letter)) continue;
    for (let element = 0; element < elements; element++) {
      const address = `${name}:${element}`;
      yield { address, name: address, type: { scalar }, path: [name] };
      for (const [member, { bit }] of members ?? []) {
        const memberAddress = `${address}${bit === undefined ? "." : "/"}${member}`;
        yield { address: memberAddress, name: member, type: { scalar: bit === undefined ? "int16" : "bool" }, path: [name, address] };
      }
    }
  }
}
