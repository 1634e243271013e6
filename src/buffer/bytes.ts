/** Bytes that do not hold what they should: cut, altered, or written for another layout. */
export class DamagedPayloadError extends Error {
  override readonly name = "DamagedPayloadError";
  constructor(what: string, offset: number) {
    super(`damaged payload: ${what} at byte ${offset}`);
  }
}

const FIRST_BYTES = 4096;
/** A scratch above this is given back after use. */
const KEPT_BYTES = 2 ** 20;

/** A growing scratch, used again for each payload. Little endian. `reserve` first; the put functions do not check. */
export class ByteWriter {
  #bytes = Buffer.alloc(FIRST_BYTES);
  view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, FIRST_BYTES);
  position = 0;

  start(): void {
    this.position = 0;
  }

  /** Makes room for `count` more bytes after the position. */
  reserve(count: number): void {
    const needed = this.position + count;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.alloc(2 ** Math.ceil(Math.log2(needed)));
    larger.set(this.#bytes.subarray(0, this.position));
    this.#use(larger);
  }

  putByte(value: number): void {
    this.#bytes[this.position++] = value;
  }

  /** Zeroes `count` bytes and goes past them; returns where they begin. */
  putZeros(count: number): number {
    const start = this.position;
    this.#bytes.fill(0, start, start + count);
    this.position += count;
    return start;
  }

  /** Sets bits in the byte at `index`, anywhere before the position. */
  orByte(index: number, bits: number): void {
    this.#bytes[index] = (this.#bytes[index] ?? 0) | bits;
  }

  /** LEB128 of an integer from 0 to 2^53 - 1; at most 8 bytes. */
  putVarint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.position++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.position++] = rest;
  }

  /** UTF-8 after its length; reserves by itself and keeps `after` bytes free behind it. */
  putText(text: string, after: number): void {
    const length = Buffer.byteLength(text, "utf8");
    this.reserve(length + 8 + after);
    this.putVarint(length);
    this.#bytes.write(text, this.position, length, "utf8");
    this.position += length;
  }

  /** What was written, in memory of its own. */
  take(): Uint8Array {
    const payload = new Uint8Array(this.position);
    payload.set(this.#bytes.subarray(0, this.position));
    if (this.#bytes.length > KEPT_BYTES) this.#use(Buffer.alloc(FIRST_BYTES));
    return payload;
  }

  #use(bytes: Buffer<ArrayBuffer>): void {
    this.#bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
}

const NOTHING = Buffer.alloc(0);
const NO_VIEW = new DataView(NOTHING.buffer, 0, 0);

/** Reads what ByteWriter wrote, one payload after another. `start` first. Every read throws DamagedPayloadError past the end. */
export class ByteReader {
  #bytes: Buffer = NOTHING;
  view: DataView = NO_VIEW;
  position = 0;

  /** Goes to the beginning of this payload; the one before is forgotten. */
  start(payload: Uint8Array): void {
    const { buffer, byteOffset, byteLength } = payload;
    this.#bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.view = new DataView(buffer, byteOffset, byteLength);
    this.position = 0;
  }

  get left(): number {
    return this.#bytes.length - this.position;
  }

  /** Goes past `count` bytes and returns where they begin. */
  skip(count: number): number {
    const start = this.position;
    if (count > this.#bytes.length - start) this.fail(`${count} bytes expected, ${this.left} left`);
    this.position = start + count;
    return start;
  }

  /** The byte at `index`, which a skip has gone past. */
  at(index: number): number {
    return this.#bytes[index] ?? 0;
  }

  byte(): number {
    return this.at(this.skip(1));
  }

  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 49; factor *= 0x80) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) this.fail("a number above 2^53");
        return value;
      }
    }
    return this.fail("a number of more than 8 bytes");
  }

  /** A varint that counts things of at least `bitsEach` bits each: never more than the bytes left can hold. */
  length(bitsEach: number): number {
    const count = this.varint();
    if (count * bitsEach > this.left * 8) this.fail(`${count} elements of ${bitsEach} bits expected, ${this.left} bytes left`);
    return count;
  }

  text(): string {
    const length = this.length(8);
    const start = this.skip(length);
    return this.#bytes.toString("utf8", start, start + length);
  }

  fail(what: string): never {
    throw new DamagedPayloadError(what, this.position);
  }
}
