import { constants, crc32, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { Steps } from "../base/timer.ts";
import { ByteReader } from "./bytes.ts";

/** Bytes that are compressed at once: about a millisecond. */
const CHUNK_BYTES = 256 * 1024;
/** Level 1 leaves about a tenth more of what has patterns, and takes half the time of 3 (`npm run bench buffer`). */
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Shorter streams are kept as they are: a frame of zstd alone has about so many bytes. */
const LEAST_BYTES = 24;
const FIRST_BYTES = 256;
/** A checksum is in front. */
const CHECKSUM_BYTES = 4;
/** Names the format and its compressor: zstd (RFC 8878). */
const FORMAT = 1;

/** Bytes that grow. Little endian. */
export class Stream {
  bytes = Buffer.alloc(FIRST_BYTES);
  length = 0;

  /** Makes room for `count` more and returns where they begin. */
  take(count: number): number {
    const at = this.length;
    this.length += count;
    if (this.length > this.bytes.length) {
      const larger = Buffer.allocUnsafe(2 ** Math.ceil(Math.log2(this.length)));
      larger.set(this.bytes.subarray(0, at));
      this.bytes = larger;
    }
    return at;
  }

  putByte(value: number): void {
    const at = this.take(1);
    this.bytes[at] = value;
  }

  /** LEB128 of an integer from 0 to 2^53 - 1. */
  putVarint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.putByte((rest % 0x80) | 0x80);
    this.putByte(rest);
  }

  /** An integer of either sign within ± 2^52. */
  putSigned(value: number): void {
    this.putVarint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  put(bytes: Uint8Array): void {
    const at = this.take(bytes.length);
    this.bytes.set(bytes, at);
  }

  clear(): void {
    if (this.bytes.length > KEPT_BYTES + 2 * this.length) this.bytes = Buffer.alloc(FIRST_BYTES);
    this.length = 0;
  }

  whole(): Buffer {
    return this.bytes.subarray(0, this.length);
  }
}

/** Reverses `putSigned`. */
export function takeSigned(reader: ByteReader): number {
  const value = reader.varint();
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}

/** Memory that a stream keeps for its next use, beyond what it needed last; more is given back. */
const KEPT_BYTES = 2 ** 20;

/** Streams by number: bytes of one kind side by side, which pack better than the rows that they are of. */
export class Streams {
  readonly #streams = new Map<number, Stream>();
  readonly #all = new Stream();

  /** Empties all of them, and keeps their memory. */
  clear(): void {
    for (const stream of [this.#all, ...this.#streams.values()]) stream.clear();
  }

  of(number: number): Stream {
    const known = this.#streams.get(number);
    if (known) return known;
    const stream = new Stream();
    this.#streams.set(number, stream);
    return stream;
  }

  /** crc u32 · format u8 · per chunk of a stream: number varint, length varint, packed length varint (the same: not packed), bytes. */
  *packed(): Steps<Uint8Array> {
    const all = this.#all;
    all.take(CHECKSUM_BYTES);
    all.putByte(FORMAT);
    for (const [number, stream] of [...this.#streams].sort(([a], [b]) => a - b)) {
      for (let at = 0; at < stream.length; at += CHUNK_BYTES) {
        const chunk = stream.bytes.subarray(at, Math.min(stream.length, at + CHUNK_BYTES));
        const packed = chunk.length < LEAST_BYTES ? chunk : zstdCompressSync(chunk, OPTIONS);
        const kept = packed.length < chunk.length ? packed : chunk;
        all.putVarint(number);
        all.putVarint(chunk.length);
        all.putVarint(kept.length);
        all.put(kept);
        yield;
      }
    }
    all.bytes.writeUInt32LE(crc32(all.bytes.subarray(CHECKSUM_BYTES, all.length)), 0);
    return new Uint8Array(all.whole());
  }
}

/** The streams of a blob, read one after the other. */
export interface StreamReaders {
  /** One without bytes where the blob has none of this number. */
  of(number: number): ByteReader;
}

/** True: the blob is as it was written. */
export function isWhole(blob: Uint8Array): boolean {
  if (blob.length <= CHECKSUM_BYTES) return false;
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
  return crc32(bytes.subarray(CHECKSUM_BYTES)) === bytes.readUInt32LE(0);
}

/** Throws DamagedPayloadError if the blob is not what `Streams.packed` made, or would take more than `maxBytes` unpacked. */
export function unpacked(blob: Uint8Array, maxBytes: number): StreamReaders {
  const reader = new ByteReader();
  reader.start(blob);
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
  reader.skip(CHECKSUM_BYTES);
  if (!isWhole(blob)) reader.fail("a wrong checksum");
  const format = reader.byte();
  if (format !== FORMAT) reader.fail(`format ${format} instead of ${FORMAT}`);
  const chunks = new Map<number, Uint8Array[]>();
  let left = maxBytes;
  while (reader.left > 0) {
    const number = reader.varint();
    const length = reader.varint();
    const packedLength = reader.varint();
    left -= length;
    if (left < 0) reader.fail(`more than ${maxBytes} bytes`);
    const at = reader.skip(packedLength);
    const chunk = chunkOf(bytes.subarray(at, at + packedLength), length);
    if (chunk?.length !== length) return reader.fail("a chunk that cannot be unpacked");
    const known = chunks.get(number);
    if (known) known.push(chunk);
    else chunks.set(number, [chunk]);
  }
  const readers = new Map(
    [...chunks].map(([number, [first, ...others]]) => [
      number,
      readerOf(first && others.length === 0 ? first : Buffer.concat(first ? [first, ...others] : [])),
    ]),
  );
  return {
    of(number) {
      const found = readers.get(number) ?? readerOf(new Uint8Array());
      readers.set(number, found);
      return found;
    },
  };
}

function chunkOf(packed: Uint8Array, length: number): Uint8Array | undefined {
  if (packed.length === length) return packed;
  try {
    return zstdDecompressSync(packed, { maxOutputLength: Math.max(1, length) });
  } catch {
    return undefined;
  }
}

function readerOf(bytes: Uint8Array): ByteReader {
  const reader = new ByteReader();
  reader.start(bytes);
  return reader;
}
