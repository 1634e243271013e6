import { type DataType, formatDataType, type Reading, type Scalar } from "../../src/model/value.ts";
import { notANumber } from "../lib/bytes.ts";
import { codedReader, CODINGS as DIGITS, type Coding as Digits } from "../lib/coded-numbers.ts";
import { decodeAll, decodeWide, type Encoding, WESTERN } from "../lib/encoding.ts";
import type { Slot } from "../lib/reused-readings.ts";
import { dataTypeOf, type Kind } from "../lib/step7-types.ts";
import { dateAndTimeText, dateText, dtlText, ldtText, s5Time, stringOf, wideStringOf } from "../lib/step7-values.ts";
import type { Cursor } from "./cursor.ts";
import { ARRAY, readPValue, readScalar, WIRE, wireName } from "./pvalue.ts";

/** A good reading that is reused, and brings its type where the variable has none of its own. */
export interface TypedSlot extends Slot {
  type?: DataType;
}

/**
 * Takes a variable's reading from the value at the cursor, and leaves the cursor behind it, whatever the value is. Throws Malformed: it
 * cannot be skipped.
 */
export type Decoder = (cursor: Cursor, slot: TypedSlot) => Reading;

/** Reads the value of one element, whose flags and type are taken; undefined: the bytes are no value of the kind. */
type Element = (cursor: Cursor, wire: number) => Scalar | undefined;

interface Coding {
  /** Types on the wire that it comes in, as bits. */
  readonly wires: number;
  readonly read: Element;
}

const wires = (...types: readonly number[]): number => types.reduce((bits, type) => bits | (1 << type), 0);
const asIs = (...types: readonly number[]): Coding => ({ wires: wires(...types), read: readScalar });
const ofBytes = (count: number, read: (bytes: Buffer, at: number) => Scalar | undefined, ...types: readonly number[]): Coding => ({
  wires: wires(...types),
  read: (cursor) => {
    // The cursor moves first: its bytes end before the value otherwise.
    const at = cursor.take(count);
    return read(cursor.bytes, at);
  },
});

/** A number as its bytes; nothing is awaited between filling and reading them. */
const whole = Buffer.alloc(8);
/** Decimal digits in a number, which may have any length on the wire. */
function digitsIn(digits: Digits, ...types: readonly number[]): Coding {
  const read = codedReader(digits, "ABCD");
  return {
    wires: wires(...types),
    read(cursor, wire) {
      whole.writeBigUInt64BE(BigInt(readScalar(cursor, wire)));
      return read(whole, whole.length - digits.bytes);
    },
  };
}

const charOf = (encoding: Encoding): Coding =>
  ofBytes(1, (bytes, at) => decodeAll(bytes.subarray(at, at + 1), encoding), WIRE.usint, WIRE.byte);

/** Kinds of one value each, as the CPU sends them. */
const CODINGS: Readonly<Partial<Record<Kind, Coding>>> = {
  BOOL: asIs(WIRE.bool),
  BYTE: asIs(WIRE.usint, WIRE.byte),
  SINT: asIs(WIRE.sint),
  WORD: asIs(WIRE.uint, WIRE.word),
  INT: asIs(WIRE.int),
  DWORD: asIs(WIRE.udint, WIRE.dword, WIRE.rid, WIRE.aid),
  DINT: asIs(WIRE.dint),
  REAL: asIs(WIRE.real),
  LREAL: asIs(WIRE.lreal),
  LWORD: asIs(WIRE.ulint, WIRE.lword),
  LINT: asIs(WIRE.lint),
  TIME: asIs(WIRE.dint),
  LTIME: asIs(WIRE.timespan, WIRE.lint),
  TOD: asIs(WIRE.udint, WIRE.dword),
  LTOD: asIs(WIRE.ulint, WIRE.lword),
  COUNTER: asIs(WIRE.uint, WIRE.word),
  WCHAR: ofBytes(2, (bytes, at) => decodeWide(bytes.subarray(at, at + 2)), WIRE.uint, WIRE.word),
  DATE: ofBytes(2, dateText, WIRE.uint, WIRE.word),
  S5TIME: ofBytes(2, s5Time, WIRE.word, WIRE.uint),
  LDT: ofBytes(8, ldtText, WIRE.timestamp),
  BYTE_BCD: digitsIn(DIGITS.BYTE_BCD, WIRE.usint, WIRE.byte),
  WORD_BCD: digitsIn(DIGITS.WORD_BCD, WIRE.uint, WIRE.word),
  DWORD_BCD: digitsIn(DIGITS.DWORD_BCD, WIRE.udint, WIRE.dword),
  LWORD_BCD: digitsIn(DIGITS.LWORD_BCD, WIRE.ulint, WIRE.lword),
  BCD16: digitsIn(DIGITS.BCD16, WIRE.uint, WIRE.word),
  BCD32: digitsIn(DIGITS.BCD32, WIRE.udint, WIRE.dword),
};

/** Kinds that come as an array: bytes of one element of it, how many at least, and what they mean. */
interface Packed {
  readonly wires: number;
  readonly bytes: number;
  readonly min: number;
  readonly read: (bytes: Buffer, at: number, count: number, encoding: Encoding) => Scalar | undefined;
}

const PACKED: Readonly<Partial<Record<Kind, Packed>>> = {
  STRING: {
    ...{ wires: wires(WIRE.usint, WIRE.byte), bytes: 1, min: 2 },
    read: (bytes, at, count, encoding) => stringOf(count - 2, encoding)(bytes, at),
  },
  WSTRING: { wires: wires(WIRE.uint, WIRE.word), bytes: 2, min: 2, read: (bytes, at, count) => wideStringOf(count - 2)(bytes, at) },
  DT: { wires: wires(WIRE.usint, WIRE.byte), bytes: 1, min: 8, read: (bytes, at) => dateAndTimeText(bytes, at) },
};

const DTL_ID = 0x0200_0043;
const DTL_BYTES = 12;

/** The form in which a value is read. */
interface Readable {
  readonly kind: Kind | undefined;
  readonly count: number | undefined;
  /** Encoding of a text whose characters are bytes. */
  readonly encoding?: Encoding | undefined;
}

/**
 * The decoder for a variable; `known` keeps those that were made. `kind` undefined: as the value itself says. `auto`: the type that each
 * reading brings, of a variable that has none of its own.
 */
export function decoderOf({ kind, count, encoding }: Readable, auto: DataType | undefined, known: Map<string, Decoder>): Decoder {
  const key = `${kind} ${count} ${encoding} ${auto && formatDataType(auto)}`;
  const decoder = known.get(key) ?? makeDecoder({ kind, count, encoding }, auto);
  known.set(key, decoder);
  return decoder;
}

function makeDecoder({ kind, count, encoding = WESTERN }: Readable, auto: DataType | undefined): Decoder {
  if (kind === undefined) return anyValue;
  const decoder = plainDecoder(kind, count, encoding);
  if (!auto) return decoder;
  return (cursor, slot) => {
    const reading = decoder(cursor, slot);
    slot.type = auto;
    return reading;
  };
}

function plainDecoder(kind: Kind, count: number | undefined, encoding: Encoding): Decoder {
  if (kind === "DTL") return dtl;
  const packed = PACKED[kind];
  if (packed) return packedDecoder(kind, packed, encoding);
  const coding = kind === "CHAR" ? charOf(encoding) : CODINGS[kind];
  if (!coding) throw new TypeError(`${kind} has no coding`);
  return count === undefined ? oneDecoder(kind, coding) : arrayDecoder(kind, coding, count);
}

const oneDecoder =
  (kind: Kind, { wires, read }: Coding): Decoder =>
  (cursor, slot) => {
    const start = cursor.at;
    const flags = cursor.u8();
    const wire = cursor.u8();
    if (flags !== 0 || wire >= 32 || (wires & (1 << wire)) === 0) return otherType(cursor, start, kind);
    const value = read(cursor, wire);
    if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) return noValue(cursor, start, kind, value, "");
    slot.value = value;
    return slot;
  };

const arrayDecoder =
  (kind: Kind, { wires, read }: Coding, count: number): Decoder =>
  (cursor, slot) => {
    const start = cursor.at;
    const flags = cursor.u8();
    const wire = cursor.u8();
    if (flags !== ARRAY || wire >= 32 || (wires & (1 << wire)) === 0) return otherType(cursor, start, kind);
    const length = cursor.count(1);
    const values: Scalar[] = [];
    let wrong: Reading | undefined;
    for (let i = 0; i < length; i++) {
      const at = cursor.at;
      const value = read(cursor, wire);
      if (value === undefined) wrong ??= noValue(cursor, at, kind, value, `element ${i}: `);
      else values.push(value);
    }
    if (length !== count)
      return { quality: "bad", fault: "type_mismatch", detail: `the PLC sent ${length} elements of an array, it should have ${count}` };
    if (wrong) return wrong;
    slot.value = values;
    return slot;
  };

const packedDecoder =
  (kind: Kind, { wires, bytes, min, read }: Packed, encoding: Encoding): Decoder =>
  (cursor, slot) => {
    const start = cursor.at;
    const flags = cursor.u8();
    const wire = cursor.u8();
    if (flags !== ARRAY || wire >= 32 || (wires & (1 << wire)) === 0) return otherType(cursor, start, kind);
    const count = cursor.count(bytes);
    const at = cursor.take(count * bytes);
    const value = count < min ? undefined : read(cursor.bytes, at, count, encoding);
    if (value === undefined) return noValue(cursor, at, kind, undefined, "");
    slot.value = value;
    return slot;
  };

const dtl: Decoder = (cursor, slot) => {
  const start = cursor.at;
  const { value } = readPValue(cursor);
  const packed = typeof value === "object" && "packed" in value && value.id === DTL_ID ? value.packed : undefined;
  if (packed?.length !== DTL_BYTES) return otherType(cursor, start, "DTL");
  const text = dtlText(packed, 0);
  if (text === undefined) return noValue(cursor, cursor.at - DTL_BYTES, "DTL", undefined, "");
  slot.value = text;
  return slot;
};

/** What a value means of which only its type on the wire is known. */
const KIND_OF_WIRE: ReadonlyMap<number, Kind> = new Map([
  [WIRE.bool, "BOOL"],
  [WIRE.usint, "BYTE"],
  [WIRE.byte, "BYTE"],
  [WIRE.uint, "WORD"],
  [WIRE.word, "WORD"],
  [WIRE.udint, "DWORD"],
  [WIRE.dword, "DWORD"],
  [WIRE.rid, "DWORD"],
  [WIRE.aid, "DWORD"],
  [WIRE.ulint, "LWORD"],
  [WIRE.lword, "LWORD"],
  [WIRE.sint, "SINT"],
  [WIRE.int, "INT"],
  [WIRE.dint, "DINT"],
  [WIRE.lint, "LINT"],
  [WIRE.real, "REAL"],
  [WIRE.lreal, "LREAL"],
  [WIRE.timestamp, "LDT"],
  [WIRE.timespan, "LTIME"],
]);

const ofWire = new Map<number, { readonly one: Decoder; readonly type: DataType; readonly coding: Coding; readonly kind: Kind }>();
for (const [wire, kind] of KIND_OF_WIRE) {
  const coding = CODINGS[kind];
  if (coding)
    ofWire.set(wire, { one: oneDecoder(kind, coding), type: dataTypeOf({ kind, chars: undefined, count: undefined }), coding, kind });
}

/** A value as it comes, with its type. */
const anyValue: Decoder = (cursor, slot) => {
  const flags = cursor.peek();
  const wire = cursor.left > 1 ? (cursor.bytes[cursor.at + 1] ?? 0) : 0;
  if (wire === WIRE.struct) {
    slot.type = { scalar: "string" };
    return dtl(cursor, slot);
  }
  const known = ofWire.get(wire);
  if (!known || (flags !== 0 && flags !== ARRAY)) return otherType(cursor, cursor.at, undefined);
  if (flags === 0) {
    slot.type = known.type;
    return known.one(cursor, slot);
  }
  const { at } = cursor;
  cursor.take(2);
  const count = cursor.count(1);
  cursor.at = at;
  if (count === 0 || count > MAX_ELEMENTS) return otherType(cursor, at, undefined);
  slot.type = { ...known.type, count };
  return arrayDecoder(known.kind, known.coding, count)(cursor, slot);
};

/** A value as its bytes, with flags and datatype. */
export const rawBytes: Decoder = (cursor, slot) => {
  const { at } = cursor;
  readPValue(cursor);
  slot.value = [...cursor.bytes.subarray(at, cursor.at)];
  return slot;
};

/** As many as a variable can have. */
const MAX_ELEMENTS = 65_535;

/** Goes back to the value's beginning and skips it. */
function otherType(cursor: Cursor, start: number, kind: Kind | undefined): Reading {
  cursor.at = start;
  const { flags, wire } = readPValue(cursor);
  const sent = `${(flags & ARRAY) !== 0 ? "an array of " : ""}${wireName(wire)}`;
  const detail =
    kind === undefined ? `the PLC sent ${sent}, which is not read here` : `the PLC sent ${sent}, which is not a value of type ${kind}`;
  return { quality: "bad", fault: "type_mismatch", detail };
}

const MAX_RAW_BYTES = 16;

/** The cursor is behind the value. */
function noValue(cursor: Cursor, at: number, kind: Kind, value: Scalar | undefined, which: string): Reading {
  const raw = cursor.bytes.toString("hex", at, Math.min(cursor.at, at + MAX_RAW_BYTES));
  const detail = value === undefined ? `${which}0x${raw} is not a value of type ${kind}` : `${which}${notANumber(value)}`;
  return { quality: "bad", fault: "not_a_number", detail };
}
