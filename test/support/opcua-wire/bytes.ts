/**
 * OPC UA's binary encoding (OPC 10000-6, 5.2) as tests write it by hand: neither the driver nor a library has a part in it, so that what
 * both get wrong shows.
 */
const of = (length: number, write: (bytes: Buffer) => unknown): Buffer => {
  const bytes = Buffer.alloc(length);
  write(bytes);
  return bytes;
};

export const u8 = (n: number): Buffer => Buffer.of(n);
export const u16 = (n: number): Buffer => of(2, (bytes) => bytes.writeUInt16LE(n));
export const i16 = (n: number): Buffer => of(2, (bytes) => bytes.writeInt16LE(n));
export const u32 = (n: number): Buffer => of(4, (bytes) => bytes.writeUInt32LE(n));
export const i32 = (n: number): Buffer => of(4, (bytes) => bytes.writeInt32LE(n));
export const i64 = (n: bigint): Buffer => of(8, (bytes) => bytes.writeBigInt64LE(n));
export const u64 = (n: bigint): Buffer => of(8, (bytes) => bytes.writeBigUInt64LE(n));
export const f32 = (n: number): Buffer => of(4, (bytes) => bytes.writeFloatLE(n));
export const f64 = (n: number): Buffer => of(8, (bytes) => bytes.writeDoubleLE(n));
export const all = (...parts: readonly Buffer[]): Buffer => Buffer.concat(parts);

/** Length and bytes; null: -1. */
export const bytes = (content: Buffer | null): Buffer => (content === null ? i32(-1) : all(i32(content.length), content));
export const str = (text: string | null): Buffer => bytes(text === null ? null : Buffer.from(text));
export const array = (elements: readonly Buffer[] | null): Buffer => (elements === null ? i32(-1) : all(i32(elements.length), ...elements));
export const qualified = (namespace: number, name: string): Buffer => all(u16(namespace), str(name));
export const localized = (text: string): Buffer => all(u8(2), str(text));

/** `i=85`, `ns=2;s=A`: the two forms that the tests use; a number in namespace 0 with four bytes at least. */
export function node(text: string): Buffer {
  const [, namespace = "0", kind = "i", id = "0"] = /^(?:ns=(\d+);)?([is])=(.*)$/.exec(text) ?? [];
  return kind === "i" ? all(u8(2), u16(Number(namespace)), u32(Number(id))) : all(u8(3), u16(Number(namespace)), str(id));
}

/** With the URI of its namespace or the index of another server, where given (OPC 10000-6, 5.2.2.10). */
export function expandedNode(text: string, { uri, server }: { readonly uri?: string; readonly server?: number } = {}): Buffer {
  const plain = node(text);
  plain.writeUInt8(plain.readUInt8(0) | (uri === undefined ? 0 : 0x80) | (server === undefined ? 0 : 0x40), 0);
  return all(plain, ...(uri === undefined ? [] : [str(uri)]), ...(server === undefined ? [] : [u32(server)]));
}

/** Of one value of a built-in type (OPC 10000-6, 5.2.2.16). */
export const variant = (type: number, value: Buffer): Buffer => all(u8(type), value);
export const variantArray = (type: number, elements: readonly Buffer[], dimensions?: readonly number[]): Buffer =>
  all(u8(type | 0x80 | (dimensions ? 0x40 : 0)), array(elements), ...(dimensions ? [array(dimensions.map(i32))] : []));
export const double = (n: number): Buffer => variant(11, f64(n));
export const int32 = (n: number): Buffer => variant(6, i32(n));
export const text = (words: string): Buffer => variant(12, str(words));

/** A structure with its body (OPC 10000-6, 5.2.2.15). */
export const extension = (encoding: string, body: Buffer): Buffer => all(node(encoding), u8(1), bytes(body));

export interface DataValueParts {
  readonly value?: Buffer;
  readonly status?: number;
  /** 100 ns since 1601. */
  readonly sourceTime?: bigint;
}

/** OPC 10000-6, 5.2.2.17. */
export const dataValue = ({ value, status, sourceTime }: DataValueParts): Buffer =>
  all(
    u8((value ? 1 : 0) | (status === undefined ? 0 : 2) | (sourceTime === undefined ? 0 : 4)),
    ...(value ? [value] : []),
    ...(status === undefined ? [] : [u32(status)]),
    ...(sourceTime === undefined ? [] : [i64(sourceTime)]),
  );

/** 100 ns since 1601 of a time in epoch ms. */
export const ticks = (ms: number): bigint => BigInt(ms + 11_644_473_600_000) * 10_000n;

/** Takes requests apart; what is cut short throws RangeError. */
export class Cursor {
  readonly bytes: Buffer;
  at = 0;
  constructor(content: Buffer) {
    this.bytes = content;
  }
  #skip(length: number): number {
    this.at += length;
    return this.at - length;
  }
  skip(length: number): void {
    this.#skip(length);
  }
  u8(): number {
    return this.bytes.readUInt8(this.#skip(1));
  }
  u16(): number {
    return this.bytes.readUInt16LE(this.#skip(2));
  }
  u32(): number {
    return this.bytes.readUInt32LE(this.#skip(4));
  }
  f64(): number {
    return this.bytes.readDoubleLE(this.#skip(8));
  }
  bytesOf(): Buffer | null {
    const length = this.bytes.readInt32LE(this.#skip(4));
    if (length < 0) return null;
    const at = this.#skip(length);
    return this.bytes.subarray(at, at + length);
  }
  str(): string | null {
    return this.bytesOf()?.toString("utf8") ?? null;
  }
  /** As `node` writes it. */
  node(): string {
    const form = this.u8();
    const named = (namespace: number, id: string): string => (namespace === 0 ? id : `ns=${namespace};${id}`);
    if (form === 0) return named(0, `i=${this.u8()}`);
    if (form === 1) return named(this.u8(), `i=${this.u16()}`);
    const namespace = this.u16();
    if (form === 2) return named(namespace, `i=${this.u32()}`);
    if (form === 3) return named(namespace, `s=${this.str() ?? ""}`);
    throw new RangeError(`node id of form ${form}`);
  }
  array<T>(one: () => T): T[] {
    return Array.from({ length: Math.max(0, this.bytes.readInt32LE(this.#skip(4))) }, one);
  }
}
