/** Bytes that are no message of the protocol. */
export class WireError extends Error {}

const [GROUP_BITS, MORE, GROUP] = [7, 0x80, 0x7f];
/** Eight groups of seven bits; what is longer has nine bytes, the last of eight bits. */
const LONG_BITS = 56n;

/** Bytes from hex with blanks. */
export const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

/** Puts a message together. Numbers are big-endian but those that say LE. */
export class Writer {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The place where `count` more bytes begin. */
  #grow(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(this.#length * 2);
      this.#bytes.copy(grown, 0, 0, at);
      this.#bytes = grown;
    }
    return at;
  }

  u8(...values: readonly number[]): this {
    for (const value of values) {
      const at = this.#grow(1);
      this.#bytes[at] = value;
    }
    return this;
  }

  u16(value: number): this {
    const at = this.#grow(2);
    this.#bytes.writeUInt16BE(value & 0xffff, at);
    return this;
  }

  u32(value: number): this {
    const at = this.#grow(4);
    this.#bytes.writeUInt32BE(value >>> 0, at);
    return this;
  }

  u64(value: bigint): this {
    const at = this.#grow(8);
    this.#bytes.writeBigUInt64BE(BigInt.asUintN(64, value), at);
    return this;
  }

  f32(value: number): this {
    const at = this.#grow(4);
    this.#bytes.writeFloatBE(value, at);
    return this;
  }

  f64(value: number): this {
    const at = this.#grow(8);
    this.#bytes.writeDoubleBE(value, at);
    return this;
  }

  u16le(...values: readonly number[]): this {
    for (const value of values) {
      const at = this.#grow(2);
      this.#bytes.writeUInt16LE(value & 0xffff, at);
    }
    return this;
  }

  u32le(...values: readonly number[]): this {
    for (const value of values) {
      const at = this.#grow(4);
      this.#bytes.writeUInt32LE(value >>> 0, at);
    }
    return this;
  }

  /** Unsigned, up to 32 bits. */
  vlq(value: number): this {
    let groups = 1;
    for (let rest = value >>> GROUP_BITS; rest !== 0; rest >>>= GROUP_BITS) groups++;
    for (let i = groups - 1; i >= 0; i--) this.u8((Math.floor(value / 2 ** (GROUP_BITS * i)) & GROUP) | (i > 0 ? MORE : 0));
    return this;
  }

  /** Unsigned, up to 64 bits. */
  vlq64(value: bigint): this {
    let groups = 1;
    while (groups < 8 && value >> BigInt(GROUP_BITS * groups) !== 0n) groups++;
    return this.#groups(value, groups, value >> LONG_BITS !== 0n);
  }

  /** Signed, up to 64 bits. */
  signed(value: bigint): this {
    const fits = (bits: number) => BigInt.asIntN(bits, value) === value;
    let groups = 1;
    while (groups < 8 && !fits(GROUP_BITS * groups)) groups++;
    return this.#groups(BigInt.asUintN(64, value), groups, !fits(Number(LONG_BITS)));
  }

  #groups(value: bigint, groups: number, isLong: boolean): this {
    const upper = isLong ? value >> 8n : value;
    for (let i = groups - 1; i >= 0; i--) this.u8(Number((upper >> BigInt(GROUP_BITS * i)) & BigInt(GROUP)) | (i > 0 || isLong ? MORE : 0));
    return isLong ? this.u8(Number(value & 0xffn)) : this;
  }

  bytes(bytes: Uint8Array): this {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  hex(text: string): this {
    return this.bytes(hex(text));
  }

  /** What has been put, as a copy. */
  done(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }
}

// The value types: flags in the first byte, the type in the second.
const [ARRAY, ADDRESS_ARRAY, SPARSE] = [0x10, 0x20, 0x40];
/** Bytes of a value whose coding is fixed. */
const FIXED: Readonly<Record<number, number>> = {
  0: 0,
  1: 1,
  2: 1,
  3: 2,
  6: 1,
  7: 2,
  10: 1,
  11: 2,
  12: 4,
  13: 8,
  14: 4,
  15: 8,
  16: 8,
  18: 4,
};
const VARIABLE: ReadonlySet<number> = new Set([4, 5, 8, 9, 17, 19]);
const [BLOB, WSTRING, STRUCT] = [0x14, 0x15, 0x17];

/** Takes a message apart; throws a WireError where it is too short or is none. */
export class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(count: number): Buffer {
    if (count > this.left) throw new WireError(`${count} bytes at ${this.#at} of ${this.#bytes.length}`);
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  u8(): number {
    return this.take(1).readUInt8();
  }

  u16(): number {
    return this.take(2).readUInt16BE();
  }

  u32(): number {
    return this.take(4).readUInt32BE();
  }

  vlq(): number {
    let value = 0;
    for (let i = 0; i < 5; i++) {
      const byte = this.u8();
      value = value * 128 + (byte & GROUP);
      if ((byte & MORE) === 0) return value;
    }
    throw new WireError("a number of more than five bytes");
  }

  /** Of nine bytes at most, the ninth of eight bits. */
  skipVlq(): void {
    for (let i = 0; i < 9; i++) if ((this.u8() & MORE) === 0) return;
  }

  /** Takes exactly these bytes. */
  expect(bytes: Uint8Array, what: string): void {
    if (!this.take(bytes.length).equals(bytes)) throw new WireError(`${what} is wrong`);
  }

  /** The bytes of a value, its flags and its type among them. */
  value(): Buffer {
    const from = this.#at;
    const [flags, type] = [this.u8(), this.u8()];
    if (flags === SPARSE) while (this.vlq() !== 0) this.#skip(type);
    else if (flags === ARRAY || flags === ADDRESS_ARRAY) for (let left = this.vlq(); left > 0; left--) this.#skip(type);
    else if (flags === 0) this.#skip(type);
    else throw new WireError(`the flags ${flags} of a value`);
    return this.#bytes.subarray(from, this.#at);
  }

  #skip(type: number): void {
    const fixed = FIXED[type];
    if (fixed !== undefined) this.take(fixed);
    else if (VARIABLE.has(type)) this.skipVlq();
    else if (type === WSTRING) this.take(this.vlq());
    else if (type === BLOB) {
      this.vlq();
      this.take(this.vlq());
    } else if (type === STRUCT) {
      this.u32();
      while (this.vlq() !== 0) this.value();
    } else throw new WireError(`the type ${type} of a value`);
  }
}
