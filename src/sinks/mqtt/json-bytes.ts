import { numberText } from "../../base/number.ts";
import type { PayloadPool } from "./payload-pool.ts";

const FIRST_BYTES = 64 * 1024;
/** A scratch above this is given back after a payload that needs less than a quarter of it. */
const KEPT_BYTES = 2 ** 20;
/** A scratch above this is given back after each payload. */
const MOST_KEPT_BYTES = 2 ** 22;
/** A longer text is left to Node's own encoder, whose call costs as much as so many characters. */
const SHORT_TEXT = 24;
const MAX_INT32 = 2 ** 31 - 1;

const ZERO = 0x30;
const MINUS = 0x2d;

/** A growing scratch for JSON in UTF-8, used again for each payload: strings put together piece by piece cost a multiple in garbage. */
export class JsonBytes {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  start(): void {
    const { length: size } = this.#bytes;
    if (size > MOST_KEPT_BYTES || (size > KEPT_BYTES && this.#length < size / 4)) this.#bytes = Buffer.allocUnsafe(FIRST_BYTES);
    this.#length = 0;
  }

  /** Forgets what came after. */
  rewind(to: number): void {
    this.#length = to;
  }

  /** A copy in memory of its own; by default all of it. */
  copy(from = 0, to = this.#length): Buffer {
    const copied = Buffer.allocUnsafeSlow(to - from);
    this.#bytes.copy(copied, 0, from, to);
    return copied;
  }

  /** A copy of the first `count` bytes between two texts, in memory from the pool; by default of all of it. */
  copyBetween(head: string, tail: string, pool: PayloadPool, count = this.#length): Buffer {
    const [headBytes, tailBytes] = [Buffer.byteLength(head), Buffer.byteLength(tail)];
    const copied = pool.take(headBytes + count + tailBytes);
    copied.write(head);
    this.#bytes.copy(copied, headBytes, 0, count);
    copied.write(tail, headBytes + count);
    return copied;
  }

  /** Forgets the first `count` bytes. */
  dropFirst(count: number): void {
    this.#bytes.copyWithin(0, count, this.#length);
    this.#length -= count;
  }

  /** The bytes from <= i < to; by default all of them. */
  raw(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const count = to - from;
    this.#reserve(count);
    if (count > SHORT_TEXT) this.#bytes.set(bytes.subarray(from, to), this.#length);
    else for (let i = 0; i < count; i++) this.#bytes[this.#length + i] = bytes[from + i] as number;
    this.#length += count;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  /** Text as it is: any UTF-16, written as UTF-8. */
  text(text: string): void {
    const count = text.length;
    this.#reserve(count * 3);
    if (count <= SHORT_TEXT) {
      let at = this.#length;
      let i = 0;
      for (; i < count; i++) {
        const code = text.charCodeAt(i);
        if (code >= 0x80) break;
        this.#bytes[at++] = code;
      }
      if (i === count) {
        this.#length = at;
        return;
      }
    }
    this.#length += this.#bytes.write(text, this.#length);
  }

  /** A finite number, as `numberText` writes it. */
  number(value: number): void {
    if ((value | 0) === value && value !== -MAX_INT32 - 1 && !(value === 0 && 1 / value < 0)) this.#int32(value);
    else this.text(numberText(value));
  }

  #int32(value: number): void {
    this.#reserve(11);
    let rest = value;
    if (rest < 0) {
      this.#bytes[this.#length++] = MINUS;
      rest = -rest;
    }
    let digits = 1;
    for (let bound = 10; digits < 10 && rest >= bound; bound *= 10) digits++;
    for (let at = this.#length + digits - 1; at >= this.#length; at--) {
      const tenth = (rest / 10) | 0;
      this.#bytes[at] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    this.#length += digits;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 ** Math.ceil(Math.log2(needed)));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
