import { ReasonError } from "../../../src/model/reason.ts";

/** The driver's side of the rack protocol; the protocol itself is described at the top of the simulator. */
export const KINDS = { hello: 1, resolve: 2, read: 3, list: 4 } as const;
export type Kind = keyof typeof KINDS;

export const STATUS = { ok: 0, busy: 1, locked: 2, program: 3, tooMany: 4 } as const;

const MAGIC = 0x524b;
const HEADER_BYTES = 8;
const ANSWER = 0x80;
const VERSION = 1;
const MAX_NAME_BYTES = 60;

/** Words of one block, read as one item. */
export interface ItemRange {
  readonly block: number;
  readonly offset: number;
  readonly words: number;
}

export interface Greeting {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly inFlight: number;
  readonly namesPerPage: number;
  readonly program: number;
  readonly name: string;
}

/** The place where a symbol is in one program. */
export interface Resolved extends ItemRange {
  readonly code: number;
  /** Elements; `words` is of one of them. */
  readonly count: number;
}

export interface ListedSymbol {
  readonly name: string;
  readonly code: number;
  readonly words: number;
  readonly count: number;
  readonly unit: string;
}

export interface ListPage {
  readonly total: number;
  /** 0: there are no more. */
  readonly next: number;
  readonly symbols: readonly ListedSymbol[];
}

/** What an item was answered with: its words, or the code of its refusal. */
export type ItemAnswer = { readonly data: Buffer } | { readonly refusal: number };

/** True for a request that reads; else what the datagram is. Pure. */
export function fence(frame: Uint8Array): true | string {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.length);
  if (bytes.length < HEADER_BYTES || bytes.readUInt16BE(0) !== MAGIC) return `${bytes.length} bytes that are not a rack request`;
  const kind = bytes.readUInt8(2);
  if (!Object.values<number>(KINDS).includes(kind)) return `kind ${kind}`;
  return bytes.readUInt16BE(6) === bytes.length - HEADER_BYTES || "a length that is not the datagram's";
}

/** The id of the request that a datagram answers; undefined: it is no answer of this protocol. Pure. */
export function idOf(datagram: Buffer): number | undefined {
  if (datagram.length < HEADER_BYTES || datagram.readUInt16BE(0) !== MAGIC) return undefined;
  if ((datagram.readUInt8(2) & ANSWER) === 0 || datagram.readUInt16BE(6) !== datagram.length - HEADER_BYTES) return undefined;
  return datagram.readUInt16BE(4);
}

function frame(kind: Kind, id: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(MAGIC, 0);
  head.writeUInt8(KINDS[kind], 2);
  head.writeUInt16BE(id, 4);
  head.writeUInt16BE(body.length, 6);
  return Buffer.concat([head, body]);
}

export const helloRequest = (id: number): Buffer => frame("hello", id, Buffer.of(VERSION));

export function resolveRequest(id: number, program: number, names: readonly string[]): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(program, 0);
  head.writeUInt8(names.length, 4);
  return frame("resolve", id, Buffer.concat([head, ...names.flatMap((name) => [Buffer.of(Buffer.byteLength(name)), Buffer.from(name)])]));
}

export function readRequest(id: number, program: number, items: readonly ItemRange[]): Buffer {
  const body = Buffer.alloc(5 + items.length * 6);
  body.writeUInt32BE(program, 0);
  body.writeUInt8(items.length, 4);
  for (const [i, { block, offset, words }] of items.entries()) {
    body.writeUInt16BE(block, 5 + i * 6);
    body.writeUInt16BE(offset, 7 + i * 6);
    body.writeUInt16BE(words, 9 + i * 6);
  }
  return frame("read", id, body);
}

export function listRequest(id: number, from: number): Buffer {
  const body = Buffer.alloc(2);
  body.writeUInt16BE(from, 0);
  return frame("list", id, body);
}

/** The names that a request can hold are shorter than this, in bytes. */
export const maxNameBytes = MAX_NAME_BYTES;

const violation = (why: string) => new ReasonError("UNKNOWN", `the rack broke the protocol: ${why}`, { condition: "protocol_violation" });

/** The status and the body of an answer of this kind; undefined: it is one of another kind. The body is valid as long as the datagram. */
export function openAnswer(kind: Kind, datagram: Buffer): { readonly status: number; readonly body: Buffer } | undefined {
  if (datagram.readUInt8(2) !== (KINDS[kind] | ANSWER)) return undefined;
  return { status: datagram.readUInt8(3), body: datagram.subarray(HEADER_BYTES) };
}

/** Reads a body from its beginning; throws ReasonError where it ends before. */
class BodyReader {
  readonly #body: Buffer;
  #at = 0;
  constructor(body: Buffer) {
    this.#body = body;
  }
  take(length: number): Buffer {
    if (this.#at + length > this.#body.length) throw violation(`an answer ends after ${this.#body.length} bytes`);
    this.#at += length;
    return this.#body.subarray(this.#at - length, this.#at);
  }
  u8(): number {
    return this.take(1).readUInt8(0);
  }
  u16(): number {
    return this.take(2).readUInt16BE(0);
  }
  u32(): number {
    return this.take(4).readUInt32BE(0);
  }
  text(): string {
    return this.take(this.u8()).toString("utf8");
  }
  end(): void {
    if (this.#at < this.#body.length) throw violation(`${this.#body.length - this.#at} bytes follow an answer`);
  }
}

/** Throws ReasonError where it is not whole. Pure. */
export function parseHello(body: Buffer): Greeting {
  const reader = new BodyReader(body);
  const greeting = {
    maxItems: reader.u8(),
    maxBytes: reader.u16(),
    inFlight: reader.u8(),
    namesPerPage: reader.u8(),
    program: reader.u32(),
    name: reader.text(),
  };
  reader.end();
  const { maxItems, maxBytes, inFlight, namesPerPage } = greeting;
  if (Math.min(maxItems, maxBytes, inFlight, namesPerPage) < 1) throw violation("a limit of 0");
  return greeting;
}

/** One answer per name; undefined: the device has no such symbol. Throws ReasonError where it is not whole. Pure. */
export function parseResolve(body: Buffer, names: number): readonly (Resolved | undefined)[] {
  const reader = new BodyReader(body);
  const count = reader.u8();
  if (count !== names) throw violation(`${count} symbols for ${names} names`);
  const found = Array.from({ length: count }, () => {
    const status = reader.u8();
    const resolved = { block: reader.u16(), offset: reader.u16(), code: reader.u8(), words: reader.u16(), count: reader.u16() };
    return status === 0 ? resolved : undefined;
  });
  reader.end();
  for (const one of found) if (one && (one.words < 1 || one.count < 1)) throw violation("a symbol without words");
  return found;
}

/** One answer per item. Throws ReasonError where it is not whole. The data is a copy. Pure. */
export function parseRead(body: Buffer, items: readonly ItemRange[]): readonly ItemAnswer[] {
  const reader = new BodyReader(body);
  const count = reader.u8();
  if (count !== items.length) throw violation(`${count} items for ${items.length}`);
  const answers = items.map(({ words }): ItemAnswer => {
    const status = reader.u8();
    const length = reader.u16();
    const data = reader.take(length * 2);
    if (status !== 0) return { refusal: status };
    if (length !== words) throw violation(`${length} words for an item of ${words}`);
    return { data: Buffer.from(data) };
  });
  reader.end();
  return answers;
}

/** Throws ReasonError where it is not whole. Pure. */
export function parseList(body: Buffer): ListPage {
  const reader = new BodyReader(body);
  const [total, next, count] = [reader.u16(), reader.u16(), reader.u8()];
  const symbols = Array.from({ length: count }, () => ({
    name: reader.text(),
    code: reader.u8(),
    words: reader.u16(),
    count: reader.u16(),
    unit: reader.text(),
  }));
  reader.end();
  return { total, next, symbols };
}

/** The number that comes with a refusal of a whole request: the program, or the items that it takes. Throws ReasonError. Pure. */
export function parseNumber(body: Buffer, bytes: 1 | 4): number {
  const reader = new BodyReader(body);
  const value = bytes === 1 ? reader.u8() : reader.u32();
  reader.end();
  return value;
}
