import { FaultError } from "../../../src/model/fault.ts";
import { type DataType, formatDataType, MAX_COUNT, type Reading, type ScalarType } from "../../../src/model/value.ts";
import { maxNameBytes, type Resolved } from "./frames.ts";

/** How words become a value. */
export type Coding = "BOOL" | "INT" | "WORD" | "DINT" | "REAL" | "STRING" | "BCD" | "S5TIME";

/** The place where a point is in one program. */
export interface Place {
  readonly program: number;
  readonly block: number;
  readonly offset: number;
  /** Of all elements. */
  readonly words: number;
  readonly coding: Coding;
  /** The variable has no type of its own: each reading brings it. */
  readonly isAuto: boolean;
}

export interface RackAddress {
  readonly symbol: string;
  readonly index: number | undefined;
  /** As the person's type says, where it says more than the scalar. */
  readonly coding: Coding | undefined;
  /** Once it is prepared. */
  readonly place?: Place;
}

const ADDRESS = /^([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)(?:\[(\d{1,5})\])?$/;
const OWN_WORD = /^(BCD|S5TIME)(?:\[(\d{1,5})\])?$/i;

/** The device's type codes. */
const CODINGS: Readonly<Record<number, Coding>> = {
  1: "BOOL",
  2: "INT",
  3: "WORD",
  4: "DINT",
  5: "REAL",
  6: "STRING",
  7: "BCD",
  8: "S5TIME",
};

/** S5TIME is read as milliseconds. */
const SCALARS: Readonly<Record<Coding, ScalarType>> = {
  BOOL: "bool",
  INT: "int16",
  WORD: "uint16",
  DINT: "int32",
  REAL: "float32",
  STRING: "string",
  BCD: "uint16",
  S5TIME: "uint32",
};

/** Words of one element; 0: as the device says. */
const WORDS: Readonly<Record<Coding, number>> = { BOOL: 1, INT: 1, WORD: 1, DINT: 2, REAL: 2, STRING: 0, BCD: 1, S5TIME: 1 };

const codingOf = (word: string | undefined): Coding | undefined => (word === "BCD" || word === "S5TIME" ? word : undefined);

/** `BCD`, `S5TIME` and arrays of them. Pure. */
export function parseType(text: string): DataType | undefined {
  const match = OWN_WORD.exec(text);
  const coding = codingOf(match?.[1]?.toUpperCase());
  if (!match || !coding) return undefined;
  const count = match[2] === undefined ? undefined : Number(match[2]);
  if (count !== undefined && (count < 1 || count > MAX_COUNT)) return undefined;
  return { scalar: SCALARS[coding], word: coding, ...(count !== undefined && { count }) };
}

/** `Motor.speed`, `Motor.speeds[3]`. Pure. */
export function parseAddress(text: string, type: DataType | undefined): { readonly address: RackAddress; readonly type: DataType } {
  const match = ADDRESS.exec(text);
  const [, symbol, index] = match ?? [];
  if (symbol === undefined || symbol.length > maxNameBytes)
    throw new FaultError("address_invalid", `${JSON.stringify(text)} is not a symbol: expected one such as Motor.speed or Motor.speeds[3]`);
  if (type && type.scalar !== "auto" && !Object.values(SCALARS).includes(type.scalar))
    throw new FaultError("type_mismatch", `${JSON.stringify(text)}: a rack has no ${type.scalar}`);
  const { word, ...plain }: DataType = type ?? { scalar: "auto" };
  return { address: { symbol, index: index === undefined ? undefined : Number(index), coding: codingOf(word) }, type: plain };
}

/** The type of a symbol as the device says it; undefined: one that is not known here. Pure. */
export function typeOfSymbol({ code, words, count }: Pick<Resolved, "code" | "words" | "count">): DataType | undefined {
  const coding = CODINGS[code];
  if (!coding || (WORDS[coding] !== 0 && WORDS[coding] !== words)) return undefined;
  return {
    scalar: SCALARS[coding],
    ...(coding === "STRING" && { maxBytes: words * 2 }),
    ...(count > 1 && { count }),
  };
}

/** The place where a point is, and its type, by what the device says of its symbol. Throws FaultError: the two do not fit. Pure. */
export function locate(
  { symbol, index, coding: wanted }: RackAddress,
  type: DataType,
  resolved: Resolved,
  program: number,
): { readonly place: Place; readonly type: DataType } {
  const own = typeOfSymbol(resolved);
  const device = CODINGS[resolved.code];
  if (!own || !device) throw new FaultError("type_mismatch", `${symbol} has the type ${resolved.code}, which cannot be read`);
  // A plain word may hold anything of one word.
  const coding = wanted !== undefined && device === "WORD" ? wanted : device;
  const isAuto = type.scalar === "auto";
  const elements = index === undefined ? resolved.count : resolved.count - index;
  if (elements < 1) throw new FaultError("out_of_range", `${symbol} has ${resolved.count} elements, the last is [${resolved.count - 1}]`);
  if (!isAuto && (SCALARS[coding] !== type.scalar || (wanted !== undefined && wanted !== coding)))
    throw new FaultError("type_mismatch", `${symbol} is ${formatDataType(own)} on the device, not ${formatDataType(type)}`);
  const { count: _, ...one } = own;
  const settled: DataType = isAuto ? (index === undefined ? own : one) : type;
  const count = settled.count ?? 1;
  if (count > elements || (settled.count === undefined && index === undefined && resolved.count > 1))
    throw new FaultError("type_mismatch", `${symbol} is ${formatDataType(own)} on the device, not ${formatDataType(settled)}`);
  const offset = resolved.offset + (index ?? 0) * resolved.words;
  return { place: { program, block: resolved.block, offset, words: count * resolved.words, coding, isAuto }, type: settled };
}

const BAD_BCD = Symbol("no decimal number");

/** The value of the words from `at` on (bytes). Pure. */
export function decode(data: Buffer, at: number, { coding, words, isAuto }: Place, type: DataType): Reading {
  const count = type.count ?? 1;
  const step = (words / count) * 2;
  const values: (boolean | number | string)[] = [];
  for (let i = 0; i < count; i++) {
    const value = decodeOne(data, at + i * step, step, coding);
    if (value === BAD_BCD) {
      const word = data.readUInt16BE(at + i * step);
      return { quality: "bad", fault: "not_a_number", detail: `0x${word.toString(16).padStart(4, "0")} is not a ${coding} value` };
    }
    if (typeof value === "number" && !Number.isFinite(value)) return { quality: "bad", fault: "not_a_number", detail: String(value) };
    values.push(value);
  }
  const [value = 0] = values;
  return { quality: "good", value: type.count === undefined ? value : values, ...(isAuto && { type }) };
}

function decodeOne(data: Buffer, at: number, bytes: number, coding: Coding): boolean | number | string | typeof BAD_BCD {
  switch (coding) {
    case "BOOL":
      return data.readUInt16BE(at) !== 0;
    case "INT":
      return data.readInt16BE(at);
    case "WORD":
      return data.readUInt16BE(at);
    case "DINT":
      return data.readInt32BE(at);
    case "REAL":
      return data.readFloatBE(at);
    case "STRING": {
      const text = data.subarray(at, at + bytes);
      const end = text.indexOf(0);
      return text.toString("utf8", 0, end < 0 ? text.length : end);
    }
    case "BCD":
      return decimalOf(data.readUInt16BE(at), 4) ?? BAD_BCD;
    case "S5TIME": {
      const word = data.readUInt16BE(at);
      const digits = decimalOf(word & 0x0fff, 3);
      return digits === undefined || word >> 14 !== 0 ? BAD_BCD : digits * 10 ** (((word >> 12) & 3) + 1);
    }
  }
}

function decimalOf(word: number, digits: number): number | undefined {
  let value = 0;
  for (let shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    const digit = (word >> shift) & 0xf;
    if (digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value;
}
