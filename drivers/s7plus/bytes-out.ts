/** Forms the bytes of a request; grows as needed. */
export class BytesOut {
  #bytes = Buffer.alloc(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** A copy of what was put. */
  done(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  u8(...values: readonly number[]): this {
    for (const value of values) this.#bytes[this.#room(1)] = value;
    return this;
  }

  u16(value: number): this {
    const at = this.#room(2);
    this.#bytes.writeUInt16BE(value, at);
    return this;
  }

  u32(value: number): this {
    const at = this.#room(4);
    this.#bytes.writeUInt32BE(value, at);
    return this;
  }

  put(bytes: Uint8Array): this {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  /** 1 to 5 bytes, as few as possible; 0 to 2^32 - 1. */
  vlq32(value: number): this {
    const length = vlq32Bytes(value);
    const at = this.#room(length);
    putVlq32(this.#bytes, at, value);
    return this;
  }

  /** The place where so many bytes are put next. */
  #room(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const more = Buffer.alloc(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(more, 0, 0, at);
      this.#bytes = more;
    }
    return at;
  }
}

/** Bytes that the number takes. */
export const vlq32Bytes = (value: number): number =>
  value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;

/** Puts a number in groups of seven bits; gives the place behind it. */
export function putVlq32(bytes: Uint8Array, at: number, value: number): number {
  const length = vlq32Bytes(value);
  let rest = value;
  for (let i = length - 1; i >= 0; i--) {
    bytes[at + i] = (rest & 0x7f) | (i === length - 1 ? 0 : 0x80);
    rest = Math.floor(rest / 128);
  }
  return at + length;
}
