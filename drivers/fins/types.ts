import { type DataType, formatDataType, MAX_COUNT, type ScalarType } from "../../src/model/value.ts";

/** How words of the controller become a value: its own types, as CX-Programmer names them, and those of one byte. */
export type Kind =
  | "BOOL"
  | "SINT"
  | "USINT"
  | "INT"
  | "UINT"
  | "DINT"
  | "UDINT"
  | "LINT"
  | "ULINT"
  | "REAL"
  | "LREAL"
  | "STRING"
  | "UINT_BCD"
  | "UDINT_BCD"
  | "ULINT_BCD";

interface KindTraits {
  readonly scalar: ScalarType;
  /** Of one element; 0: BOOL has bits, and a STRING as many words as it takes. */
  readonly words: number;
}

/** SINT and USINT are the low byte of a word. */
export const KINDS: Readonly<Record<Kind, KindTraits>> = {
  BOOL: { scalar: "bool", words: 0 },
  SINT: { scalar: "int8", words: 1 },
  USINT: { scalar: "uint8", words: 1 },
  INT: { scalar: "int16", words: 1 },
  UINT: { scalar: "uint16", words: 1 },
  DINT: { scalar: "int32", words: 2 },
  UDINT: { scalar: "uint32", words: 2 },
  LINT: { scalar: "int64", words: 4 },
  ULINT: { scalar: "uint64", words: 4 },
  REAL: { scalar: "float32", words: 2 },
  LREAL: { scalar: "float64", words: 4 },
  STRING: { scalar: "string", words: 0 },
  UINT_BCD: { scalar: "uint16", words: 1 },
  UDINT_BCD: { scalar: "uint32", words: 2 },
  ULINT_BCD: { scalar: "uint64", words: 4 },
};

const KIND_OF_SCALAR: Readonly<Record<ScalarType, Kind>> = {
  bool: "BOOL",
  int8: "SINT",
  uint8: "USINT",
  int16: "INT",
  uint16: "UINT",
  int32: "DINT",
  uint32: "UDINT",
  int64: "LINT",
  uint64: "ULINT",
  float32: "REAL",
  float64: "LREAL",
  string: "STRING",
};

/** Words that only this driver takes; those of IEC 61131-3 are every driver's. */
const OWN_WORDS: ReadonlyMap<string, Kind> = new Map([
  ["CHANNEL", "UINT"],
  ["BCD", "UINT_BCD"],
  ["UINT_BCD", "UINT_BCD"],
  ["WORD_BCD", "UINT_BCD"],
  ["BCD8", "UDINT_BCD"],
  ["LBCD", "UDINT_BCD"],
  ["UDINT_BCD", "UDINT_BCD"],
  ["DWORD_BCD", "UDINT_BCD"],
  ["ULINT_BCD", "ULINT_BCD"],
  ["LWORD_BCD", "ULINT_BCD"],
]);
const isKind = (word: string): word is Kind => Object.hasOwn(KINDS, word);

const WORD = /^([A-Z][A-Z0-9_]*)(?:\[(\d{1,5})\])?$/i;

/** `UINT_BCD`, `BCD[4]`, `UDINT_BCD`, `CHANNEL`. Undefined: no type, or one that every driver takes. Pure. */
export function parseType(text: string): DataType | undefined {
  const [, name = "", inBrackets] = WORD.exec(text) ?? [];
  const kind = OWN_WORDS.get(name.toUpperCase());
  if (!kind) return undefined;
  const count = inBrackets === undefined ? undefined : Number(inBrackets);
  if (count !== undefined && (count < 1 || count > MAX_COUNT)) return undefined;
  return { scalar: KINDS[kind].scalar, word: kind, ...(count !== undefined && { count }) };
}

/** What a type means here. */
export interface KindOf {
  readonly kind: Kind;
  /** Bytes of a string; undefined for all others. */
  readonly chars: number | undefined;
  /** Elements of an array. */
  readonly count: number | undefined;
}

/** `STRING[20]` is one string of 20 characters, as CX-Programmer declares it. A string: why the controller has no such type. Pure. */
export function kindOf(type: DataType): KindOf | string {
  const { scalar, word, maxBytes, count, dimensions } = type;
  if (scalar === "auto") return "the controller does not say what its words hold; name a type";
  if (dimensions) return "an array has one dimension here; name the number of its elements";
  const kind = word !== undefined && isKind(word) ? word : KIND_OF_SCALAR[scalar];
  if (kind !== "STRING") return { kind, chars: undefined, count };
  const chars = maxBytes ?? count;
  if (chars === undefined) return `a string needs its length, for example ${formatDataType({ scalar, maxBytes: 20 })}`;
  return { kind, chars, count: maxBytes === undefined ? undefined : count };
}

/** Words from one element to the next; of a BOOL none. */
export const strideOf = ({ kind, chars }: Pick<KindOf, "kind" | "chars">): number =>
  kind === "STRING" ? ((chars ?? 0) + 1) >> 1 : KINDS[kind].words;

/** Words of a whole value; `bit` is where a BOOL begins in its first word. Elements of BOOL go on into the next word. */
export const wordsOf = (of: KindOf, bit: number): number =>
  of.kind === "BOOL" ? (bit + (of.count ?? 1) + 15) >> 4 : strideOf(of) * (of.count ?? 1);

/** The type of a variable: plain, with the bytes of a text. */
export const dataTypeOf = ({ kind, chars, count }: KindOf): DataType => ({
  scalar: KINDS[kind].scalar,
  ...(chars !== undefined && { maxBytes: chars }),
  ...(count !== undefined && { count }),
});
