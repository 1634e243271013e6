import type { Scalar } from "../../src/model/value.ts";
import { type Cursor, Malformed } from "./cursor.ts";

/** How a value lies in a message. */
export const WIRE = {
  null: 0x00,
  bool: 0x01,
  usint: 0x02,
  uint: 0x03,
  udint: 0x04,
  ulint: 0x05,
  sint: 0x06,
  int: 0x07,
  dint: 0x08,
  lint: 0x09,
  byte: 0x0a,
  word: 0x0b,
  dword: 0x0c,
  lword: 0x0d,
  real: 0x0e,
  lreal: 0x0f,
  timestamp: 0x10,
  timespan: 0x11,
  rid: 0x12,
  aid: 0x13,
  blob: 0x14,
  wstring: 0x15,
  struct: 0x17,
} as const;

/** Flags of a value. */
export const ARRAY = 0x10;
const ADDRESS_ARRAY = 0x20;
const SPARSE_ARRAY = 0x40;

/** Structures within structures; a bound against a device that nests without end. */
const MAX_DEPTH = 16;
/** A BLOB whose root id is above this has an address of its own in front. */
const PLAIN_BLOB_ROOT = 1;

/** A structure with its elements by id, or with all of them packed into bytes. */
export type Struct =
  | { readonly id: number; readonly elements: ReadonlyMap<number, PValue> }
  | { readonly id: number; readonly packed: Buffer };

export interface PValue {
  readonly flags: number;
  readonly wire: number;
  /** Undefined: Null. Bytes: a BLOB. */
  readonly value: Scalar | readonly Scalar[] | Buffer | Struct | undefined;
}

const WIRE_NAMES = new Map<number, string>(Object.entries(WIRE).map(([name, code]) => [code, name]));
/** For messages: `uint`, `datatype 0x16`. */
export const wireName = (wire: number): string => WIRE_NAMES.get(wire) ?? `datatype 0x${wire.toString(16).padStart(2, "0")}`;

/** Bytes of one element at least. */
const minBytes = (wire: number): number => FIXED_BYTES[wire] ?? 1;
const FIXED_BYTES: Readonly<Record<number, number>> = {
  [WIRE.uint]: 2,
  [WIRE.int]: 2,
  [WIRE.word]: 2,
  [WIRE.dword]: 4,
  [WIRE.real]: 4,
  [WIRE.rid]: 4,
  [WIRE.lword]: 8,
  [WIRE.lreal]: 8,
  [WIRE.timestamp]: 8,
};

/** One number, bit or text. Throws Malformed: there is no such type, or the message ends. */
export function readScalar(cursor: Cursor, wire: number): Scalar {
  switch (wire) {
    case WIRE.bool:
      return cursor.u8() !== 0;
    case WIRE.usint:
    case WIRE.byte:
      return cursor.u8();
    case WIRE.uint:
    case WIRE.word:
      return cursor.u16();
    case WIRE.udint:
    case WIRE.aid:
      return cursor.vlq32();
    case WIRE.ulint:
      return cursor.vlq64();
    case WIRE.sint:
      return (cursor.u8() << 24) >> 24;
    case WIRE.int:
      return (cursor.u16() << 16) >> 16;
    case WIRE.dint:
      return cursor.signedVlq32();
    case WIRE.lint:
    case WIRE.timespan:
      return cursor.signedVlq64();
    case WIRE.dword:
    case WIRE.rid:
      return cursor.u32();
    case WIRE.lword:
    case WIRE.timestamp:
      return cursor.u64();
    case WIRE.real:
      return cursor.bytes.readFloatBE(cursor.take(4));
    case WIRE.lreal:
      return cursor.bytes.readDoubleBE(cursor.take(8));
    case WIRE.wstring:
      return cursor.text();
    default:
      throw new Malformed(`a value of ${wireName(wire)}`);
  }
}

/** Any value. Throws Malformed: one that cannot be skipped because its type is not known, or the message ends. */
export function readPValue(cursor: Cursor, depth = 0): PValue {
  const flags = cursor.u8();
  const wire = cursor.u8();
  if (flags & (ARRAY | ADDRESS_ARRAY)) return { flags, wire, value: readArray(cursor, flags, wire, depth) };
  if (flags & SPARSE_ARRAY) return { flags, wire, value: readSparse(cursor, wire) };
  if (wire === WIRE.null) return { flags, wire, value: undefined };
  if (wire === WIRE.blob) return { flags, wire, value: readBlob(cursor, depth) };
  if (wire === WIRE.struct) return { flags, wire, value: readStruct(cursor, depth) };
  return { flags, wire, value: readScalar(cursor, wire) };
}

function readArray(cursor: Cursor, flags: number, wire: number, depth: number): PValue["value"] {
  if (wire === WIRE.struct) return readStructs(cursor, flags, depth);
  const count = cursor.count(minBytes(wire));
  if (wire === WIRE.blob) {
    for (let i = 0; i < count; i++) readBlob(cursor, depth);
    return [];
  }
  const values: Scalar[] = [];
  for (let i = 0; i < count; i++) values.push(readScalar(cursor, wire));
  return values;
}

/** Their values are in no answer that is asked for: what counts is where they end. */
function readStructs(cursor: Cursor, flags: number, depth: number): readonly Scalar[] {
  if (flags & ADDRESS_ARRAY) {
    cursor.u32();
    const count = cursor.count(1);
    for (let i = 0; i < count; i++) readElements(cursor, depth + 1);
    return [];
  }
  const count = cursor.count(5);
  for (let i = 0; i < count; i++) readStruct(cursor, depth + 1);
  return [];
}

function readSparse(cursor: Cursor, wire: number): readonly Scalar[] {
  const values: Scalar[] = [];
  while (cursor.vlq32() !== 0) {
    if (wire === WIRE.blob) readBlob(cursor, 0);
    else values.push(readScalar(cursor, wire));
  }
  return values;
}

function readBlob(cursor: Cursor, depth: number): Buffer {
  const root = cursor.vlq32();
  if (root > PLAIN_BLOB_ROOT) {
    cursor.take(8);
    const kind = cursor.u8();
    if (kind === 0) {
      readElements(cursor, depth + 1);
      return Buffer.alloc(0);
    }
  }
  return cursor.slice(cursor.vlq32());
}

/** Ids of structures whose elements come as bytes; the second range is the system's own. */
const isPacked = (id: number): boolean => (id >= 0x9000_0001 && id <= 0x9fff_fffe) || (id >= 0x0200_0001 && id <= 0x02ff_fffe);
/** The length of a packed structure comes twice. */
const HAS_SECOND_LENGTH = 1 << 10;

function readStruct(cursor: Cursor, depth: number): Struct {
  const id = cursor.u32();
  if (!isPacked(id)) return { id, elements: readElements(cursor, depth + 1) };
  cursor.take(8);
  const flags = cursor.vlq32();
  let length = cursor.vlq32();
  if (flags & HAS_SECOND_LENGTH) length = cursor.vlq32();
  return { id, packed: cursor.slice(length) };
}

function readElements(cursor: Cursor, depth: number): ReadonlyMap<number, PValue> {
  if (depth > MAX_DEPTH) throw new Malformed(`structures within structures, more than ${MAX_DEPTH} deep`);
  const elements = new Map<number, PValue>();
  for (let id = cursor.vlq32(); id !== 0; id = cursor.vlq32()) elements.set(id, readPValue(cursor, depth));
  return elements;
}
