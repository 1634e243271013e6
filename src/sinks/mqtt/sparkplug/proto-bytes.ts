import { Buffer } from "node:buffer";

const FIRST_BYTES = 16_384;
/** A scratch above this is given back after use. */
const MOST_KEPT_BYTES = 2 ** 22;
/** A length that fits one byte as varint. */
const ONE_BYTE = 128;
const TWO_31 = 2 ** 31;

/** Wire types of Protocol Buffers that are written. */
const VARINT = 0;
const FIXED_64 = 1;
const BYTES = 2;
const FIXED_32 = 5;

/** A growing scratch for messages of Protocol Buffers, used again for each payload. */
export class ProtoBytes {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  start(): void {
    if (this.#bytes.length > MOST_KEPT_BYTES) this.#bytes = Buffer.allocUnsafe(FIRST_BYTES);
    this.#length = 0;
  }

  /** Forgets what came after. */
  rewind(to: number): void {
    this.#length = to;
  }

  /** A copy in memory of its own. */
  copy(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  /** Begins a nested message; `close` gets what this returns. */
  open(field: number): number {
    this.#tag(field, BYTES);
    this.#reserve(1);
    return ++this.#length;
  }

  /** Ends a nested message: its length is known now, and seldom takes more than the byte that was left for it. */
  close(from: number): void {
    const length = this.#length - from;
    if (length < ONE_BYTE) {
      this.#bytes[from - 1] = length;
      return;
    }
    const more = varintBytes(length) - 1;
    this.#reserve(more);
    this.#bytes.copyWithin(from + more, from, this.#length);
    this.#length = from - 1;
    this.#varint(length);
    this.#length += length;
  }

  /** A whole number from 0 to 2^53 - 1. */
  number(field: number, value: number): void {
    this.#tag(field, VARINT);
    this.#varint(value);
  }

  /** Any 64 bits, as an unsigned number. */
  bits64(field: number, value: bigint): void {
    this.#tag(field, VARINT);
    this.#reserve(10);
    let low = Number(value & 0xffff_ffffn);
    let high = Number((value >> 32n) & 0xffff_ffffn);
    while (high > 0 || low >= ONE_BYTE) {
      this.#bytes[this.#length++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | ((high & 0x7f) << 25)) >>> 0;
      high >>>= 7;
    }
    this.#bytes[this.#length++] = low;
  }

  float(field: number, value: number): void {
    this.#tag(field, FIXED_32);
    this.#reserve(4);
    this.#length = this.#bytes.writeFloatLE(value, this.#length);
  }

  double(field: number, value: number): void {
    this.#tag(field, FIXED_64);
    this.#reserve(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  /** Halves of surrogate pairs become U+FFFD. */
  text(field: number, value: string): void {
    const length = Buffer.byteLength(value);
    this.#tag(field, BYTES);
    this.#varint(length);
    this.#reserve(length);
    this.#length += this.#bytes.write(value, this.#length);
  }

  bytes(field: number, value: Uint8Array): void {
    this.#tag(field, BYTES);
    this.#varint(value.length);
    this.raw(value);
  }

  /** Fields that are written already. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field * 8 + wireType);
  }

  #varint(value: number): void {
    this.#reserve(10);
    const bytes = this.#bytes;
    let at = this.#length;
    let rest = value;
    // Floating point takes several times as long: it serves only where 32 bits are not enough.
    while (rest >= TWO_31) {
      const high = Math.floor(rest / ONE_BYTE);
      bytes[at++] = (rest - high * ONE_BYTE) | 0x80;
      rest = high;
    }
    let low = rest | 0;
    while (low >= ONE_BYTE) {
      bytes[at++] = (low & 0x7f) | 0x80;
      low >>>= 7;
    }
    bytes[at++] = low;
    this.#length = at;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 ** Math.ceil(Math.log2(needed)));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

function varintBytes(value: number): number {
  let count = 1;
  for (let rest = value; rest >= ONE_BYTE; rest = Math.floor(rest / ONE_BYTE)) count++;
  return count;
}
