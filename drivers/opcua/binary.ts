/** A structure whose definition may not be known yet: the node id of its encoding, and its body; text where that is XML. */
export class ExtensionBody {
  readonly encoding: string;
  readonly body: Buffer | string;
  constructor(encoding: string, body: Buffer | string) {
    this.encoding = encoding;
    this.body = body;
  }
}

/** A Variant or a DataValue inside another value: JSON has no type for either. */
export class NestedValue {
  readonly raw: RawValue;
  readonly isDataValue: boolean;
  constructor(raw: RawValue, isDataValue: boolean) {
    this.raw = raw;
    this.isDataValue = isDataValue;
  }
}

/** A value with its quality, as it came (OPC 10000-6, 5.2.2.16 and 5.2.2.17). */
export interface RawValue {
  /** StatusCode, unsigned. */
  readonly status: number;
  /** Built-in type (OPC 10000-6, 5.1.2): 1 Boolean … 25 DiagnosticInfo; 26 to 31 are reserved and come as ByteString; 0: there is no value. */
  readonly type: number;
  readonly isArray: boolean;
  /** Of a matrix, whose elements lie row by row, as the server says them: they may contradict the number of elements. null: a plain array. */
  readonly dimensions: readonly number[] | null;
  /** In the form of `BinaryReader.builtIn`, or an array of such; null: none. */
  readonly value: unknown;
  /** Epoch ms, of any year. */
  readonly sourceTime: number | undefined;
  /** As it came; of a value that was alone in its answer. */
  readonly encoded?: Buffer;
}

/**
 * Values of OPC UA's binary encoding (OPC 10000-6, 5.2) as what JSON can say: 64-bit integers are bigint, times ISO 8601, bytes Base64, node
 * ids and qualified names as they are written, structures an ExtensionBody. Each method throws RangeError behind the end, and for lengths
 * that cannot be.
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

  /** Bytes that are read. */
  get position(): number {
    return this.#at;
  }

  /** A copy of what was read from there on. */
  since(position: number): Buffer {
    return Buffer.from(this.#bytes.subarray(position, this.#at));
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

  /** Elements behind their count; null for the count -1. */
  array(element: () => unknown): unknown[] | null {
    const count = this.elements();
    if (count < 0) return null;
    const elements: unknown[] = [];
    for (let i = 0; i < count; i++) elements.push(element());
    return elements;
  }

  /** The count of an array, each of whose elements takes at least a byte; -1: null. */
  elements(): number {
    const count = this.int32();
    if (count > this.left) throw new RangeError(`${count} elements are announced, ${this.left} bytes are left`);
    return Math.max(-1, count);
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
        throw new RangeError(`${form} is not a form of a node id`);
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

  /** Epoch ms, of any year, from 100 ns since 1601; undefined for the ends of the scale, which mean that there is none. */
  time(): number | undefined {
    const low = this.uint32();
    const high = this.int32();
    if ((low | high) === 0 || (high === 0x7fff_ffff && low === 0xffff_ffff)) return undefined;
    return Math.floor((high * 4_294_967_296 + low) / 10_000) - EPOCH_1601_MS;
  }

  /** At the ends of the scale and beyond them: the end (OPC 10000-6, 5.2.2.5). */
  dateTime(): string {
    const ticks = this.int64();
    if (ticks <= 0n) return EARLIEST_TIME;
    const ms = Number(ticks / 10_000n) - EPOCH_1601_MS;
    return ms >= LATEST_MS ? LATEST_TIME : new Date(ms).toISOString();
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

  /** One value of a built-in type by its number. */
  builtIn(type: number): unknown {
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
        return this.#bytes.readFloatLE(this.#take(4));
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
        return this.extensionObject();
      case 23:
        return this.nested(() => new NestedValue(this.dataValue(), true));
      case 24:
        return this.nested(() => new NestedValue({ status: 0, sourceTime: undefined, ...this.#variant() }, false));
      case 25:
        this.diagnosticInfo();
        return null;
      default:
        throw new RangeError(`${type} is not a built-in type`);
    }
  }

  extensionObject(): ExtensionBody | null {
    const id = this.nodeId();
    const encoding = this.byte();
    if (encoding === 0) return null;
    const body = this.byteString() ?? Buffer.alloc(0);
    return new ExtensionBody(id, encoding === 1 ? body : body.toString("utf8"));
  }

  /** Read and dropped: it is not used. */
  diagnosticInfo(): void {
    this.nested(() => {
      const mask = this.byte();
      for (const bit of [1, 2, 4, 8]) if (mask & bit) this.int32();
      if (mask & 16) this.byteString();
      if (mask & 32) this.uint32();
      if (mask & 64) this.diagnosticInfo();
    });
  }

  dataValue(): RawValue {
    const mask = this.byte();
    const variant = mask & 1 ? this.#variant() : NO_VALUE;
    const status = mask & 2 ? this.uint32() : 0;
    const sourceTime = mask & 4 ? this.time() : undefined;
    if (mask & 16) this.uint16();
    if (mask & 8) this.time();
    if (mask & 32) this.uint16();
    return { status, type: variant.type, isArray: variant.isArray, dimensions: variant.dimensions, value: variant.value, sourceTime };
  }

  /**
   * A DataValue that is good and one number or truth: puts it at `place` of `numbers`, its source time at that of `times`, NaN where it has
   * none, and gives its built-in type. 0: it is another one, or not of a type that is 1 in `types`, and nothing is read.
   */
  plainNumber(types: Uint8Array, numbers: Float64Array, times: Float64Array, place: number): number {
    const begin = this.#at;
    if (this.left < 2) return 0;
    const mask = this.#bytes[begin] ?? 0;
    const type = this.#bytes[begin + 1] ?? 0;
    const size = NUMBER_BYTES[type] ?? 0;
    // Value, status, source time, server time; a value that has more is read with all of it.
    if ((mask & 0xf1) !== 1 || size === 0 || types[type] !== 1) return 0;
    const length = 2 + size + (mask & 2 ? 4 : 0) + (mask & 4 ? 8 : 0) + (mask & 8 ? 8 : 0);
    if (length > this.left || (mask & 2 && this.#bytes.readUInt32LE(begin + 2 + size) !== 0)) return 0;
    const value = this.#number(type, begin + 2);
    // NaN and infinities are not good.
    if (!Number.isFinite(value)) return 0;
    numbers[place] = value;
    this.#at = begin + 2 + size + (mask & 2 ? 4 : 0);
    times[place] = mask & 4 ? (this.time() ?? Number.NaN) : Number.NaN;
    this.#at = begin + length;
    return type;
  }

  #number(type: number, at: number): number {
    const bytes = this.#bytes;
    switch (type) {
      case 1:
        return bytes[at] === 0 ? 0 : 1;
      case 2:
        return bytes.readInt8(at);
      case 3:
        return bytes.readUInt8(at);
      case 4:
        return bytes.readInt16LE(at);
      case 5:
        return bytes.readUInt16LE(at);
      case 6:
        return bytes.readInt32LE(at);
      case 7:
        return bytes.readUInt32LE(at);
      case 10:
        return bytes.readFloatLE(at);
      default:
        return bytes.readDoubleLE(at);
    }
  }

  #variant(): Pick<RawValue, "type" | "isArray" | "dimensions" | "value"> {
    const mask = this.byte();
    const given = mask & 0x3f;
    // OPC 10000-6, 5.2.2.16: a decoder takes what is reserved for byte strings.
    const type = given > LAST_BUILT_IN && given <= LAST_RESERVED ? BYTE_STRING : given;
    if (type === 0) return NO_VALUE;
    if ((mask & 0x80) === 0) return { type, isArray: false, dimensions: null, value: this.builtIn(type) };
    const values = this.array(() => this.builtIn(type));
    const dimensions = (mask & 0x40 ? (this.array(() => this.int32()) as number[] | null) : null) ?? [];
    const isPlain = dimensions.length === 0 || (dimensions.length === 1 && dimensions[0] === (values?.length ?? 0));
    return { type, isArray: true, dimensions: isPlain ? null : dimensions, value: values ?? [] };
  }
}

const NO_VALUE = { type: 0, isArray: false, dimensions: null, value: null } as const;
/** Bytes of a value by its built-in type, of those that a double holds exactly: Boolean to UInt32, Float, Double. */
const NUMBER_BYTES: readonly number[] = [0, 1, 1, 1, 2, 2, 4, 4, 0, 0, 4, 8];
const MAX_DEPTH = 32;
const EPOCH_1601_MS = 11_644_473_600_000;
/** Ends of the scale of a DateTime: a server that has no time sends one of them. */
export const EARLIEST_TIME = "1601-01-01T00:00:00.000Z";
export const LATEST_TIME = "9999-12-31T23:59:59.000Z";
const LATEST_MS = Date.parse(LATEST_TIME);
const BYTE_STRING = 15;
const LAST_BUILT_IN = 25;
const LAST_RESERVED = 31;

const nodeText = (namespace: number, id: string): string => (namespace === 0 ? id : `ns=${namespace};${id}`);
