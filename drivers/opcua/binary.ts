/**
 * Values of OPC UA's binary encoding (OPC 10000-6, 5.2) as what JSON can say: 64-bit integers are bigint, times ISO 8601, bytes Base64, node
 * ids and qualified names as they are written. Pure. Each method throws RangeError behind the end, and for lengths that cannot be.
 */
export class BinaryReader {
  readonly #bytes: Buffer;
  #at = 0;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  #take(length: number): number {
    if (length < 0 || length > this.left) throw new RangeError(`${length} bytes are wanted, ${this.left} are left`);
    const at = this.#at;
    this.#at += length;
    return at;
  }

  /** Goes down one level of values inside values; a bound against what would end the process. */
  nested<T>(work: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new RangeError(`values lie more than ${MAX_DEPTH} levels inside each other`);
    try {
      return work();
    } finally {
      this.#depth--;
    }
  }

  boolean(): boolean {
    return this.byte() !== 0;
  }
  byte(): number {
    return this.#bytes.readUInt8(this.#take(1));
  }
  uint16(): number {
    return this.#bytes.readUInt16LE(this.#take(2));
  }
  int32(): number {
    return this.#bytes.readInt32LE(this.#take(4));
  }
  uint32(): number {
    return this.#bytes.readUInt32LE(this.#take(4));
  }
  int64(): bigint {
    return this.#bytes.readBigInt64LE(this.#take(8));
  }

  /** Length and bytes; null for the length -1. */
  byteString(): Buffer | null {
    const length = this.int32();
    if (length < 0) return null;
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  string(): string | null {
    return this.byteString()?.toString("utf8") ?? null;
  }

  /** Elements behind their count; null for the count -1. An element takes at least a byte. */
  array(element: () => unknown): unknown[] | null {
    const count = this.int32();
    if (count < 0) return null;
    if (count > this.left) throw new RangeError(`${count} elements are announced, ${this.left} bytes are left`);
    const elements: unknown[] = [];
    for (let i = 0; i < count; i++) elements.push(element());
    return elements;
  }

  nodeId(): string {
    return this.#nodeId(this.byte());
  }

  #nodeId(form: number): string {
    switch (form & 0x3f) {
      case 0:
        return nodeText(0, `i=${this.byte()}`);
      case 1:
        return nodeText(this.byte(), `i=${this.uint16()}`);
      case 2:
        return nodeText(this.uint16(), `i=${this.uint32()}`);
      case 3:
        return nodeText(this.uint16(), `s=${this.string() ?? ""}`);
      case 4:
        return nodeText(this.uint16(), `g=${this.guid()}`);
      case 5:
        return nodeText(this.uint16(), `b=${this.byteString()?.toString("base64") ?? ""}`);
      default:
        throw new RangeError(`${form} is no form of a node id`);
    }
  }

  expandedNodeId(): string {
    const form = this.byte();
    const id = this.#nodeId(form);
    const uri = form & 0x80 ? `nsu=${this.string() ?? ""};` : "";
    const server = form & 0x40 ? `svr=${this.uint32()};` : "";
    return `${server}${uri}${uri === "" ? id : id.replace(/^ns=\d+;/, "")}`;
  }

  guid(): string {
    const at = this.#take(16);
    const bytes = this.#bytes;
    const hex = (from: number, length: number) => bytes.toString("hex", at + from, at + from + length);
    const first = bytes.readUInt32LE(at).toString(16).padStart(8, "0");
    const [second, third] = [4, 6].map((from) =>
      bytes
        .readUInt16LE(at + from)
        .toString(16)
        .padStart(4, "0"),
    );
    return `${first}-${second}-${third}-${hex(8, 2)}-${hex(10, 6)}`;
  }

  /** 100 ns since 1601; null for what ISO 8601 cannot say. */
  dateTime(): string | null {
    const ms = Number(this.int64() / 10_000n) - EPOCH_1601_MS;
    return Math.abs(ms) <= MAX_DATE_MS ? new Date(ms).toISOString() : null;
  }

  qualifiedName(): string {
    const namespace = this.uint16();
    const name = this.string() ?? "";
    return namespace === 0 ? name : `${namespace}:${name}`;
  }

  localizedText(): string {
    const mask = this.byte();
    if (mask & 1) this.string();
    return (mask & 2 ? this.string() : null) ?? "";
  }

  /** One value of a built-in type by its number. `structure` decodes an ExtensionObject's body by the encoding's node id. */
  builtIn(type: number, structure: Structure): unknown {
    switch (type) {
      case 1:
        return this.boolean();
      case 2:
        return this.#bytes.readInt8(this.#take(1));
      case 3:
        return this.byte();
      case 4:
        return this.#bytes.readInt16LE(this.#take(2));
      case 5:
        return this.uint16();
      case 6:
        return this.int32();
      case 7:
      case 19:
        return this.uint32();
      case 8:
        return this.int64();
      case 9:
        return this.#bytes.readBigUInt64LE(this.#take(8));
      case 10:
        return shortest(this.#bytes.readFloatLE(this.#take(4)));
      case 11:
        return this.#bytes.readDoubleLE(this.#take(8));
      case 12:
      case 16:
        return this.string();
      case 13:
        return this.dateTime();
      case 14:
        return this.guid();
      case 15:
        return this.byteString()?.toString("base64") ?? null;
      case 17:
        return this.nodeId();
      case 18:
        return this.expandedNodeId();
      case 20:
        return this.qualifiedName();
      case 21:
        return this.localizedText();
      case 22:
        return this.nested(() => this.#extensionObject(structure));
      case 23:
        return this.nested(() => this.#dataValue(structure));
      case 24:
        return this.nested(() => this.#variant(structure));
      default:
        throw new RangeError(`built-in type ${type} is not taken apart`);
    }
  }

  #extensionObject(structure: Structure): unknown {
    const id = this.nodeId();
    const encoding = this.byte();
    if (encoding === 0) return null;
    const body = this.byteString() ?? Buffer.alloc(0);
    return encoding === 1 ? structure(id, body) : body.toString("utf8");
  }

  #dataValue(structure: Structure): unknown {
    const mask = this.byte();
    const value = mask & 1 ? this.#variant(structure) : null;
    const status = mask & 2 ? this.uint32() : 0;
    const source = mask & 4 ? this.dateTime() : undefined;
    if (mask & 16) this.uint16();
    if (mask & 8) this.dateTime();
    if (mask & 32) this.uint16();
    return { value, status, ...(source && { sourceTimestamp: source }) };
  }

  #variant(structure: Structure): unknown {
    const mask = this.byte();
    const type = mask & 0x3f;
    if (type === 0) return null;
    if ((mask & 0x80) === 0) return this.builtIn(type, structure);
    const values = this.array(() => this.builtIn(type, structure));
    if (mask & 0x40) this.array(() => this.int32());
    return values;
  }
}

/** Decodes the body of an ExtensionObject; its encoding's node id says what it is. */
export type Structure = (encoding: string, body: Buffer) => unknown;

const MAX_DEPTH = 32;
const EPOCH_1601_MS = 11_644_473_600_000;
const MAX_DATE_MS = 8.64e15;

const nodeText = (namespace: number, id: string): string => (namespace === 0 ? id : `ns=${namespace};${id}`);

/** The double with the fewest digits that is the same float32. */
function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
