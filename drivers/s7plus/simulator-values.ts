import type { Scalar } from "../../src/model/value.ts";
import { Writer } from "./simulator-wire.ts";

/** A type that is no structure: what its values are, and how they are told. */
export interface Elementary {
  /** As a program declares it, without the length of a text. */
  readonly word: string;
  /** What type lists say of it. */
  readonly soft: number;
  /** The type of its values in messages. */
  readonly wire: number;
  /** Of a text: characters that it has room for. */
  readonly chars?: number;
  /** If a value is an array in messages: how many elements. */
  readonly elements?: number;
  readonly zero: Scalar;
  /** Puts a value, without flags and type; the elements of one that is an array. */
  put(writer: Writer, value: Scalar): void;
}

/** Wire types. */
const WIRE = {
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
  struct: 0x17,
} as const;

type Put = Elementary["put"];
const small: Put = (writer, value) => void writer.u8(Number(value) & 0xff);
const word: Put = (writer, value) => void writer.u16(Number(value));
const dword: Put = (writer, value) => void writer.u32(Number(value));
const long: Put = (writer, value) => void writer.vlq(Number(value));
const signed: Put = (writer, value) => void writer.signed(BigInt(value));
const huge: Put = (writer, value) => void writer.vlq64(BigInt(value));

/** Types by their words: soft type, wire type, zero, how a value is put. */
const TYPES: Readonly<Record<string, readonly [soft: number, wire: number, zero: Scalar, put: Put]>> = {
  BOOL: [1, WIRE.bool, false, (writer, value) => void writer.u8(value === true ? 1 : 0)],
  BBOOL: [40, WIRE.bool, false, (writer, value) => void writer.u8(value === true ? 1 : 0)],
  BYTE: [2, WIRE.byte, 0, small],
  CHAR: [3, WIRE.usint, "\0", (writer, value) => void writer.u8(String(value).charCodeAt(0) & 0xff)],
  WORD: [4, WIRE.word, 0, word],
  INT: [5, WIRE.int, 0, word],
  DWORD: [6, WIRE.dword, 0, dword],
  DINT: [7, WIRE.dint, 0, signed],
  REAL: [8, WIRE.real, 0, (writer, value) => void writer.f32(Number(value))],
  DATE: [9, WIRE.uint, "1990-01-01", (writer, value) => void writer.u16(daysSince1990(String(value)))],
  TOD: [10, WIRE.udint, 0, long],
  TIME: [11, WIRE.dint, 0, signed],
  S5TIME: [12, WIRE.word, 0, (writer, value) => void writer.u16(s5Time(Number(value)))],
  BLOCK_FB: [23, WIRE.uint, 0, word],
  COUNTER: [28, WIRE.uint, 0, word],
  TIMER: [29, WIRE.uint, 0, word],
  LREAL: [48, WIRE.lreal, 0, (writer, value) => void writer.f64(Number(value))],
  ULINT: [49, WIRE.ulint, 0n, huge],
  LINT: [50, WIRE.lint, 0n, signed],
  LWORD: [51, WIRE.lword, 0n, (writer, value) => void writer.u64(BigInt(value))],
  USINT: [52, WIRE.usint, 0, small],
  UINT: [53, WIRE.uint, 0, word],
  UDINT: [54, WIRE.udint, 0, long],
  SINT: [55, WIRE.sint, 0, small],
  WCHAR: [61, WIRE.uint, "\0", (writer, value) => void writer.u16(String(value).charCodeAt(0))],
  LTIME: [64, WIRE.timespan, 0n, signed],
  LTOD: [65, WIRE.ulint, 0n, huge],
  LDT: [66, WIRE.timestamp, "1970-01-01T00:00:00", (writer, value) => void writer.u64(nanosecondsSince1970(String(value)))],
  AOM_IDENT: [128, WIRE.dword, 0, dword],
  HW_IO: [146, WIRE.word, 0, word],
  OB_ANY: [160, WIRE.int, 0, word],
  PORT: [173, WIRE.uint, 0, word],
  DB_ANY: [208, WIRE.uint, 0, word],
};

/** The layout of DTL: its type and the members that can be read by themselves. */
export const DTL = {
  word: "DTL",
  soft: 67,
  /** S7's own. */
  rid: 0x02000043,
  zero: "1970-01-01T00:00:00.000000000",
  members: [
    ["YEAR", "UINT"],
    ["MONTH", "USINT"],
    ["DAY", "USINT"],
    ["WEEKDAY", "USINT"],
    ["HOUR", "USINT"],
    ["MINUTE", "USINT"],
    ["SECOND", "USINT"],
    ["NANOSECOND", "UDINT"],
  ],
} as const;
/** Of the interface of DTL, ns; what it is does not matter. */
const DTL_INTERFACE = 0x17a1b2c3d4e5f607n;
/** Bit 0 (not optimized) is not set, bit 1 always. */
const DTL_FLAGS = 2;

const TEXT = /^(W?STRING)(?:\[(\d+)\])?$/;
const DEFAULT_CHARS = 254;
const POINTER = { POINTER: [20, 6], ANY: [22, 10] } as const;
const known = new Map<string, Elementary | undefined>();

/** The type that a word means (`INT`, `STRING[20]`); undefined: it is a structure, DTL or unknown. */
export function elementaryOf(type: string): Elementary | undefined {
  if (!known.has(type)) known.set(type, make(type));
  return known.get(type);
}

function make(type: string): Elementary | undefined {
  const row = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (row) return { word: type, soft: row[0], wire: row[1], zero: row[2], put: row[3] };
  const [, name, length] = TEXT.exec(type) ?? [];
  const chars = Number(length ?? DEFAULT_CHARS);
  const isWide = name === "WSTRING";
  if (name)
    return {
      word: name,
      soft: isWide ? 62 : 19,
      wire: isWide ? WIRE.uint : WIRE.usint,
      chars,
      elements: chars + 2,
      zero: "",
      put: isWide ? wideText(chars) : text(chars),
    };
  if (type === "DT") return { word: "DT", soft: 14, wire: WIRE.usint, elements: 8, zero: "1990-01-01T00:00:00.000", put: dateAndTime };
  if (type === "POINTER" || type === "ANY") {
    const [soft, elements] = POINTER[type];
    // Their bytes are those of a number: enough to be told from zeros.
    const put: Put = (writer, value) =>
      void writer.hex(
        BigInt(value)
          .toString(16)
          .padStart(elements * 2, "0"),
      );
    return { word: type, soft, wire: WIRE.usint, elements, zero: 0n, put };
  }
  return undefined;
}

const text =
  (chars: number): Put =>
  (writer, value) => {
    const bytes = Buffer.alloc(chars, 0);
    bytes.write(String(value), "latin1");
    writer.u8(chars, Math.min(chars, String(value).length)).bytes(bytes);
  };

const wideText =
  (chars: number): Put =>
  (writer, value) => {
    const units = String(value);
    writer.u16(chars).u16(Math.min(chars, units.length));
    for (let i = 0; i < chars; i++) writer.u16(i < units.length ? units.charCodeAt(i) : 0);
  };

const bcd = (number: number): number => Math.floor(number / 10) * 16 + (number % 10);

/** Fields of `2026-11-22T16:30:00.123456789`. */
function fieldsOf(value: string): readonly [year: number, month: number, day: number, h: number, min: number, s: number, ns: number] {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (value.split(".")[0] ?? "").split(/\D/).map(Number);
  return [year, month, day, hour, minute, second, Number((value.split(".")[1] ?? "0").padEnd(9, "0"))];
}

/** 1 is Sunday. */
const weekdayOf = (value: string): number => new Date(`${value.slice(0, 10)}T00:00:00Z`).getUTCDay() + 1;

/** Year, month, day, hour, minute, second, two digits of milliseconds, the third with the weekday; each in BCD. */
const dateAndTime: Put = (writer, value) => {
  const [year, month, day, hour, minute, second, ns] = fieldsOf(String(value));
  const ms = Math.floor(ns / 1_000_000);
  writer.u8(...[year % 100, month, day, hour, minute, second, Math.floor(ms / 10)].map(bcd));
  writer.u8(((ms % 10) << 4) | weekdayOf(String(value)));
};

const DAY_MS = 86_400_000;
const daysSince1990 = (date: string): number => (Date.parse(`${date}T00:00:00Z`) - Date.UTC(1990, 0, 1)) / DAY_MS;

function nanosecondsSince1970(value: string): bigint {
  const ns = BigInt(fieldsOf(value)[6]);
  return BigInt(Date.parse(`${value.slice(0, 19)}Z`)) * 1_000_000n + ns;
}

/** The finest of the four bases (10 ms to 10 s) in which three digits hold it. */
function s5Time(ms: number): number {
  const base = [10, 100, 1000, 10_000].findIndex((step) => ms / step <= 999);
  const digits = Math.floor(ms / 10 ** (base + 1));
  return (base << 12) | (Math.floor(digits / 100) << 8) | bcd(digits % 100);
}

/** What a member of a DTL is, by its name. */
export function dtlMember(value: string, name: string): Scalar {
  const [year, month, day, hour, minute, second, ns] = fieldsOf(value);
  const all: Readonly<Record<string, number>> = {
    YEAR: year,
    MONTH: month,
    DAY: day,
    WEEKDAY: weekdayOf(value),
    HOUR: hour,
    MINUTE: minute,
    SECOND: second,
    NANOSECOND: ns,
  };
  return all[name] ?? 0;
}

/** A whole value in a message: flags, type, and what it holds. */
export function valueBytes(type: Elementary, value: Scalar): Buffer {
  const writer = new Writer();
  if (type.elements === undefined) writer.u8(0, type.wire);
  else writer.u8(0x10, type.wire).vlq(type.elements);
  type.put(writer, value);
  return writer.done();
}

/** An array of a type whose values are no arrays themselves. */
export function arrayBytes(type: Elementary, values: readonly Scalar[]): Buffer {
  const writer = new Writer().u8(0x10, type.wire).vlq(values.length);
  for (const value of values) type.put(writer, value);
  return writer.done();
}

/** A DTL as one value: a packed structure. */
export function dtlBytes(value: string): Buffer {
  const [year, month, day, hour, minute, second, ns] = fieldsOf(value);
  const writer = new Writer().u8(0, WIRE.struct).u32(DTL.rid).u64(DTL_INTERFACE).vlq(DTL_FLAGS).vlq(12);
  return writer.u16(year).u8(month, day, weekdayOf(value), hour, minute, second).u32(ns).done();
}
