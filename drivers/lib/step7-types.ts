import { type DataType, MAX_COUNT, type ScalarType } from "../../src/model/value.ts";
import { CODINGS } from "./coded-numbers.ts";

/** How bytes of the controller become a value: its own types (IEC 61131-3 and STEP 7). */
export type Kind =
  | CodedKind
  | "BOOL"
  | "BYTE"
  | "CHAR"
  | "SINT"
  | "WORD"
  | "INT"
  | "WCHAR"
  | "DWORD"
  | "DINT"
  | "REAL"
  | "LWORD"
  | "LINT"
  | "LREAL"
  | "STRING"
  | "WSTRING"
  | "TIME"
  | "LTIME"
  | "DATE"
  | "TOD"
  | "LTOD"
  | "DT"
  | "LDT"
  | "DTL"
  | "S5TIME"
  | "COUNTER";

/** Numbers in BCD; `BCD16` and `BCD32` have a sign. */
export type CodedKind = "BYTE_BCD" | "WORD_BCD" | "DWORD_BCD" | "LWORD_BCD" | "BCD16" | "BCD32";

interface KindTraits {
  readonly scalar: ScalarType;
  /** Of one element; strings: what precedes their characters. BOOL: bits. */
  readonly bytes: number;
}

/** Sizes: STEP 7, System Software for S7-300/400, A.3; S7-1200 System Manual, 4.4. Durations are milliseconds, LTIME and LTOD nanoseconds. */
export const KINDS: Readonly<Record<Kind, KindTraits>> = {
  BOOL: { scalar: "bool", bytes: 0 },
  BYTE: { scalar: "uint8", bytes: 1 },
  CHAR: { scalar: "string", bytes: 1 },
  SINT: { scalar: "int8", bytes: 1 },
  WORD: { scalar: "uint16", bytes: 2 },
  INT: { scalar: "int16", bytes: 2 },
  WCHAR: { scalar: "string", bytes: 2 },
  DWORD: { scalar: "uint32", bytes: 4 },
  DINT: { scalar: "int32", bytes: 4 },
  REAL: { scalar: "float32", bytes: 4 },
  LWORD: { scalar: "uint64", bytes: 8 },
  LINT: { scalar: "int64", bytes: 8 },
  LREAL: { scalar: "float64", bytes: 8 },
  STRING: { scalar: "string", bytes: 2 },
  WSTRING: { scalar: "string", bytes: 4 },
  TIME: { scalar: "int32", bytes: 4 },
  LTIME: { scalar: "int64", bytes: 8 },
  DATE: { scalar: "string", bytes: 2 },
  TOD: { scalar: "uint32", bytes: 4 },
  LTOD: { scalar: "uint64", bytes: 8 },
  DT: { scalar: "string", bytes: 8 },
  LDT: { scalar: "string", bytes: 8 },
  DTL: { scalar: "string", bytes: 12 },
  S5TIME: { scalar: "uint32", bytes: 2 },
  COUNTER: { scalar: "uint16", bytes: 2 },
  BYTE_BCD: CODINGS.BYTE_BCD,
  WORD_BCD: CODINGS.WORD_BCD,
  DWORD_BCD: CODINGS.DWORD_BCD,
  LWORD_BCD: CODINGS.LWORD_BCD,
  BCD16: CODINGS.BCD16,
  BCD32: CODINGS.BCD32,
};

/** Characters of a string at most, and of one whose declaration names no length. */
export const MAX_CHARS: Readonly<Record<"STRING" | "WSTRING", number>> = { STRING: 254, WSTRING: 16_382 };
const DEFAULT_CHARS = 254;

/** The kind that a scalar means where nobody names one. */
const KIND_OF_SCALAR: Readonly<Record<ScalarType, Kind>> = {
  bool: "BOOL",
  int8: "SINT",
  uint8: "BYTE",
  int16: "INT",
  uint16: "WORD",
  int32: "DINT",
  uint32: "DWORD",
  int64: "LINT",
  uint64: "LWORD",
  float32: "REAL",
  float64: "LREAL",
  string: "STRING",
};

/** Words that only this driver takes; those of IEC 61131-3 for numbers are every driver's. */
const OWN_WORDS: Readonly<Record<string, Kind>> = {
  CHAR: "CHAR",
  WCHAR: "WCHAR",
  WSTRING: "WSTRING",
  TIME: "TIME",
  LTIME: "LTIME",
  DATE: "DATE",
  TOD: "TOD",
  TIME_OF_DAY: "TOD",
  LTOD: "LTOD",
  LTIME_OF_DAY: "LTOD",
  DT: "DT",
  DATE_AND_TIME: "DT",
  LDT: "LDT",
  DATE_AND_LTIME: "LDT",
  DTL: "DTL",
  S5TIME: "S5TIME",
  TIMER: "S5TIME",
  COUNTER: "COUNTER",
};

/** Words that no address has in it: `DB1,BCD164` could be one of 16 bits at byte 4, or one at byte 164. */
const DIGIT_WORDS: Readonly<Record<string, CodedKind>> = {
  BYTE_BCD: "BYTE_BCD",
  BCD: "WORD_BCD",
  WORD_BCD: "WORD_BCD",
  LBCD: "DWORD_BCD",
  DWORD_BCD: "DWORD_BCD",
  LWORD_BCD: "LWORD_BCD",
  BCD16: "BCD16",
  BCD32: "BCD32",
};

/** Words that an address may name its type with: `DB1,REAL4`. */
export const ADDRESS_WORDS: Readonly<Record<string, Kind>> = {
  ...OWN_WORDS,
  X: "BOOL",
  BOOL: "BOOL",
  B: "BYTE",
  BYTE: "BYTE",
  USINT: "BYTE",
  C: "CHAR",
  SINT: "SINT",
  W: "WORD",
  WORD: "WORD",
  UINT: "WORD",
  I: "INT",
  INT: "INT",
  D: "DWORD",
  DW: "DWORD",
  DWORD: "DWORD",
  UDINT: "DWORD",
  DI: "DINT",
  DINT: "DINT",
  R: "REAL",
  REAL: "REAL",
  LWORD: "LWORD",
  ULINT: "LWORD",
  LINT: "LINT",
  LR: "LREAL",
  LREAL: "LREAL",
  S: "STRING",
  STRING: "STRING",
};

const WORD = /^([A-Za-z][A-Za-z0-9_]*)(?:\((\d{1,5})\))?(?:\[(\d{1,5})\])?$/;
const isKind = (word: string): word is Kind => Object.hasOwn(KINDS, word);

/**
 * `S5TIME`, `DTL`, `TIME[4]`, `WSTRING[16]` (one of 16 characters, as STEP 7 declares it), `WSTRING(16)[4]` (four of them), `CHAR(8)` (eight
 * characters as one text). Undefined: no type, or one that every driver takes. Pure.
 */
export function parseType(text: string): DataType | undefined {
  const [whole, name, inParentheses, inBrackets] = WORD.exec(text) ?? [];
  if (whole === undefined || name === undefined) return undefined;
  const word = name.toUpperCase();
  const kind = kindNamed(OWN_WORDS, word) ?? kindNamed(DIGIT_WORDS, word);
  if (!kind) return undefined;
  const { scalar } = KINDS[kind];
  const isDeclared = kind === "WSTRING" && inParentheses === undefined;
  const chars = numberIn(isDeclared ? inBrackets : inParentheses);
  const count = numberIn(isDeclared ? undefined : inBrackets);
  if (Number.isNaN(chars) || Number.isNaN(count)) return undefined;
  if (chars !== undefined && !(kind === "CHAR" || (kind === "WSTRING" && chars <= MAX_CHARS.WSTRING))) return undefined;
  const maxBytes = kind === "WSTRING" ? (chars ?? DEFAULT_CHARS) * 2 : chars;
  return { scalar, word: kind, ...(maxBytes !== undefined && { maxBytes }), ...(count !== undefined && { count }) };
}

const kindNamed = (words: Readonly<Record<string, Kind>>, word: string): Kind | undefined =>
  Object.hasOwn(words, word) ? words[word] : undefined;

/** NaN: out of range. */
function numberIn(digits: string | undefined): number | undefined {
  if (digits === undefined) return undefined;
  const number = Number(digits);
  return number >= 1 && number <= MAX_COUNT ? number : Number.NaN;
}

/** What a type means here. */
export interface KindOf {
  readonly kind: Kind;
  /** Of a string, or of a text of several CHAR. */
  readonly chars: number | undefined;
  /** Elements of an array. */
  readonly count: number | undefined;
}

/**
 * The kind, length and elements of a type; `STRING[20]` is one string of 20 characters, as STEP 7 declares it. Undefined: a string that is
 * longer than one can be, or a type of no kind. Pure.
 */
export function kindOf({ scalar, word, maxBytes, count }: DataType): KindOf | undefined {
  if (scalar === "auto") return undefined;
  const kind = word !== undefined && isKind(word) ? word : KIND_OF_SCALAR[scalar];
  if (kind === "WSTRING") return { kind, chars: (maxBytes ?? DEFAULT_CHARS * 2) >> 1, count };
  if (kind === "STRING") {
    const chars = maxBytes ?? count ?? DEFAULT_CHARS;
    return chars <= MAX_CHARS.STRING ? { kind, chars, count: maxBytes === undefined ? undefined : count } : undefined;
  }
  return { kind, chars: maxBytes, count };
}

/** Bytes from one element to the next in an array. */
export function strideOf(kind: Kind, chars: number | undefined): number {
  const { bytes } = KINDS[kind];
  if (kind === "STRING") return (bytes + (chars ?? 0) + 1) & ~1;
  if (kind === "WSTRING") return bytes + (chars ?? 0) * 2;
  if (kind === "CHAR") return chars ?? 1;
  return bytes;
}

/** Bytes of a whole value. `bit` is where a BOOL begins in its byte. */
export function sizeOf({ kind, chars, count }: KindOf, bit: number): number {
  const elements = count ?? 1;
  if (kind === "BOOL") return (bit + elements + 7) >> 3;
  // The last string of an array has no byte behind it.
  const last = kind === "STRING" ? KINDS.STRING.bytes + (chars ?? 0) : strideOf(kind, chars);
  return (elements - 1) * strideOf(kind, chars) + last;
}

/** The type of a variable: plain, with the bytes that a text has at most. */
export function dataTypeOf({ kind, chars, count }: KindOf): DataType {
  const { scalar } = KINDS[kind];
  const maxBytes = chars === undefined ? (kind === "CHAR" ? 1 : undefined) : kind === "WSTRING" ? chars * 2 : chars;
  return { scalar, ...(maxBytes !== undefined && { maxBytes }), ...(count !== undefined && { count }) };
}
