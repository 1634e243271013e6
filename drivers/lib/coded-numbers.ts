import { type DataType, MAX_COUNT, type NumberType } from "../../src/model/value.ts";
import { inOrder, type WordOrder } from "./bytes.ts";

/** How bytes hold a number where they are not those of a scalar, and the scalar that can have it. */
export interface Coding {
  readonly name: CodingName;
  readonly scalar: NumberType;
  /** Bytes of one element. */
  readonly bytes: number;
}

/**
 * `*_BCD`: two decimal digits a byte. `BCD16`, `BCD32`: three and seven digits behind four bits for the sign, of which STEP 7 writes 0 or F
 * and reads the highest (Statement List for S7-300 and S7-400, BTI and BTD). `MOD10(n)`: four decimal digits a register, 0 to 9999 (Schneider Electric FAQ
 * FA146443). `FLOAT16`: IEEE 754 binary16.
 */
export type CodingName =
  | "BYTE_BCD"
  | "WORD_BCD"
  | "DWORD_BCD"
  | "LWORD_BCD"
  | "BCD16"
  | "BCD32"
  | "MOD10(1)"
  | "MOD10(2)"
  | "MOD10(3)"
  | "MOD10(4)"
  | "INT48"
  | "UINT48"
  | "FLOAT16";

const coding = (name: CodingName, scalar: NumberType, bytes: number): Coding => ({ name, scalar, bytes });

export const CODINGS: Readonly<Record<CodingName, Coding>> = {
  BYTE_BCD: coding("BYTE_BCD", "uint8", 1),
  WORD_BCD: coding("WORD_BCD", "uint16", 2),
  DWORD_BCD: coding("DWORD_BCD", "uint32", 4),
  LWORD_BCD: coding("LWORD_BCD", "uint64", 8),
  BCD16: coding("BCD16", "int16", 2),
  BCD32: coding("BCD32", "int32", 4),
  "MOD10(1)": coding("MOD10(1)", "uint16", 2),
  "MOD10(2)": coding("MOD10(2)", "uint32", 4),
  "MOD10(3)": coding("MOD10(3)", "uint64", 6),
  "MOD10(4)": coding("MOD10(4)", "uint64", 8),
  INT48: coding("INT48", "int64", 6),
  UINT48: coding("UINT48", "uint64", 6),
  FLOAT16: coding("FLOAT16", "float32", 2),
};

const isName = (word: string): word is CodingName => Object.hasOwn(CODINGS, word);

/** The coding that a type's word names; undefined: it names none. Pure. */
export const codingOf = ({ word }: DataType): Coding | undefined => (word !== undefined && isName(word) ? CODINGS[word] : undefined);

const WORD = /^([A-Z][A-Z0-9_]*(?:\(\d{1,2}\))?)(?:\[(\d{1,5})\])?$/;

/** The type that `text` means by these words for codings, with its elements; undefined: it is none of them. Case does not matter. Pure. */
export function parseCoded(text: string, words: ReadonlyMap<string, CodingName>): DataType | undefined {
  const [, word = "", elements] = WORD.exec(text.toUpperCase()) ?? [];
  const name = words.get(word);
  const count = elements === undefined ? undefined : Number(elements);
  if (!name || (count !== undefined && (count < 1 || count > MAX_COUNT))) return undefined;
  return { scalar: CODINGS[name].scalar, word: name, ...(count !== undefined && { count }) };
}

/** Reads one number at an offset; undefined: the bytes are none of the coding. Throws RangeError where the bytes end before it. */
export type CodedReader = (bytes: Buffer, at: number) => number | bigint | undefined;

/** The reader for a coding and an order, made once per variable. Pure. */
export function codedReader({ name, bytes: size }: Coding, order: WordOrder): CodedReader {
  const read = BIG_ENDIAN[name];
  if (order === "ABCD" || size === 1) return read;
  const laid = inOrder(size / 2, order);
  return (bytes, at) => read(laid(bytes, at), 0);
}

const BIG_ENDIAN: Readonly<Record<CodingName, CodedReader>> = {
  BYTE_BCD: (b, at) => digits(b, at, 1),
  WORD_BCD: (b, at) => digits(b, at, 2),
  DWORD_BCD: (b, at) => digits(b, at, 4),
  LWORD_BCD: (b, at) => wide(digits(b, at, 4), digits(b, at + 4, 4)),
  BCD16: (b, at) => signed(b, at, 2),
  BCD32: (b, at) => signed(b, at, 4),
  "MOD10(1)": (b, at) => group(b, at),
  "MOD10(2)": (b, at) => groups(b, at),
  "MOD10(3)": (b, at) => wide(group(b, at), groups(b, at + 2)),
  "MOD10(4)": (b, at) => wide(groups(b, at), groups(b, at + 4)),
  INT48: (b, at) => BigInt(b.readIntBE(at, 6)),
  UINT48: (b, at) => BigInt(b.readUIntBE(at, 6)),
  FLOAT16: (b, at) => half(b.readUInt16BE(at)),
};

/** Two decimal digits in each of so many bytes, to 4. */
function digits(bytes: Buffer, at: number, count: number): number | undefined {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const byte = bytes.readUInt8(i);
    const [tens, ones] = [byte >> 4, byte & 15];
    if (tens > 9 || ones > 9) return undefined;
    value = value * 100 + tens * 10 + ones;
  }
  return value;
}

/** The first digit is the sign: 0, or F or 8 for minus. */
function signed(bytes: Buffer, at: number, count: number): number | undefined {
  const first = bytes.readUInt8(at);
  const sign = first >> 4;
  const [high, low] = [first & 15, digits(bytes, at + 1, count - 1)];
  if ((sign !== 0 && sign !== 15 && sign !== 8) || high > 9 || low === undefined) return undefined;
  const value = high * 100 ** (count - 1) + low;
  // Minus zero is a zero.
  return sign === 0 || value === 0 ? value : -value;
}

/** Four decimal digits in a register. */
function group(bytes: Buffer, at: number): number | undefined {
  const value = bytes.readUInt16BE(at);
  return value > 9999 ? undefined : value;
}

function groups(bytes: Buffer, at: number): number | undefined {
  const [high, low] = [group(bytes, at), group(bytes, at + 2)];
  return high === undefined || low === undefined ? undefined : high * 10_000 + low;
}

/** More digits than a number keeps: those above the lowest eight, and those. */
const wide = (high: number | undefined, low: number | undefined): bigint | undefined =>
  high === undefined || low === undefined ? undefined : BigInt(high) * 100_000_000n + BigInt(low);

/** IEEE 754-2019, 3.4, binary16: a sign, five bits of exponent with the bias 15, ten bits of fraction. */
function half(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 0x3ff];
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}
