/** Bytes of the device that do not follow the protocol; the message says what about them. */
export class Malformed extends Error {}

const CONTINUES = 0x80;
const SIGN = 0x40;
const GROUP = 0x7f;

/**
 * Reads a message of the device from front to back. Numbers are big-endian, those of variable length in groups of seven bits, the most
 * significant first. Throws Malformed where the message ends before what is read.
 */
export class Cursor {
  readonly bytes: Buffer;
  readonly end: number;
  at: number;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get left(): number {
    return this.end - this.at;
  }

  /** The next byte, without taking it; -1 at the end. */
  peek(): number {
    return this.at < this.end ? (this.bytes[this.at] ?? 0) : -1;
  }

  /** The place where so many bytes begin, which are taken. */
  take(count: number): number {
    const { at } = this;
    if (count > this.end - at) throw new Malformed(`a message of ${this.end} bytes ends within ${count} bytes at ${at}`);
    this.at = at + count;
    return at;
  }

  slice(count: number): Buffer {
    const at = this.take(count);
    return this.bytes.subarray(at, at + count);
  }

  u8(): number {
    return this.bytes[this.take(1)] ?? 0;
  }

  u16(): number {
    const at = this.take(2);
    return ((this.bytes[at] ?? 0) << 8) | (this.bytes[at + 1] ?? 0);
  }

  u32(): number {
    return this.bytes.readUInt32BE(this.take(4));
  }

  u64(): bigint {
    return this.bytes.readBigUInt64BE(this.take(8));
  }

  /** 1 to 5 bytes; longer forms of a smaller number are taken too. */
  vlq32(): number {
    const { bytes } = this;
    let at = this.take(1);
    let byte = bytes[at] ?? 0;
    let value = byte & GROUP;
    for (let more = 0; byte >= CONTINUES; more++) {
      if (more === 4) throw new Malformed(`a number of more than 32 bits at ${at}`);
      at = this.take(1);
      byte = bytes[at] ?? 0;
      value = ((value << 7) | (byte & GROUP)) >>> 0;
    }
    return value;
  }

  /** Two's complement; bit 6 of the first byte is the sign. */
  signedVlq32(): number {
    const { bytes } = this;
    let at = this.take(1);
    let byte = bytes[at] ?? 0;
    let value = byte & SIGN ? (byte & GROUP) - 0x80 : byte & GROUP;
    for (let more = 0; byte >= CONTINUES; more++) {
      if (more === 4) throw new Malformed(`a number of more than 32 bits at ${at}`);
      at = this.take(1);
      byte = bytes[at] ?? 0;
      value = (value << 7) | (byte & GROUP);
    }
    return value;
  }

  /** 1 to 9 bytes, of which the ninth has eight bits. */
  vlq64(): bigint {
    return BigInt.asUintN(64, this.#long(false));
  }

  signedVlq64(): bigint {
    return BigInt.asIntN(64, this.#long(true));
  }

  #long(isSigned: boolean): bigint {
    let byte = this.u8();
    let value = BigInt(isSigned && byte & SIGN ? (byte & GROUP) - 0x80 : byte & GROUP);
    for (let i = 1; byte >= CONTINUES; i++) {
      byte = this.u8();
      if (i === 8) return (value << 8n) | BigInt(byte);
      value = (value << 7n) | BigInt(byte & GROUP);
    }
    return value;
  }

  /** A text in UTF-8 behind its length in bytes. */
  text(): string {
    const length = this.vlq32();
    const at = this.take(length);
    return this.bytes.toString("utf8", at, at + length);
  }

  /** A number of elements, each of at least so many bytes: no more than the message can hold. */
  count(elementBytes: number): number {
    const count = this.vlq32();
    if (count * elementBytes > this.left) throw new Malformed(`${count} elements in ${this.left} bytes`);
    return count;
  }
}
