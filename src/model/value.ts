import type { Doubt } from "./doubt.ts";
import type { Fault } from "./fault.ts";

export const SCALAR_TYPES = [
  "bool",
  "int8",
  "uint8",
  "int16",
  "uint16",
  "int32",
  "uint32",
  "int64",
  "uint64",
  "float32",
  "float64",
  "string",
] as const;
export type ScalarType = (typeof SCALAR_TYPES)[number];
export type NumberType = Exclude<ScalarType, "bool" | "string">;

/** Size of a number, in bytes. */
export const NUMBER_BYTES: Readonly<Record<NumberType, number>> = {
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  int64: 8,
  uint64: 8,
  float32: 4,
  float64: 8,
};

/** Elements of an array, and bytes of a string on the device, at most. */
export const MAX_COUNT = 65_535;

/** Dimensions of a matrix, at most. */
export const MAX_DIMENSIONS = 8;

/**
 * A variable's type. It never changes at run time. Written `uint16`, `string(20)`, `float32[10]`, `float64[2x3]`.
 * `auto`: as the device says; the first value with a type settles it (protocols whose values carry their type).
 */
export interface DataType {
  readonly scalar: ScalarType | "auto";
  /** Only for string: its bytes on the device, where the protocol needs them; 1..65535. */
  readonly maxBytes?: number;
  /** An array of this many elements, 1..65535; absent for a scalar. */
  readonly count?: number;
  /** Of a matrix, whose elements are stored row by row: `count` is their product. */
  readonly dimensions?: readonly number[];
  /** The field's own word, where a driver reads more from it than the scalar (`S5TIME`, `BCD`). Only on its way to parseAddress. */
  readonly word?: string;
}

/** int64 and uint64 are bigint, so that a counter above 2^53 keeps its last digits; all other numbers are number. */
export type Scalar = boolean | number | bigint | string;
export type Value = Scalar | readonly Scalar[];

/** What one read says of one variable. */
export type Reading =
  | {
      readonly quality: "good" | "uncertain";
      readonly value: Value;
      /** the device's own clock, epoch ms */
      readonly sourceTime?: number | undefined;
      /** the type that came with the value, where the variable's is `auto` */
      readonly type?: DataType;
      /** Of an uncertain value of several parts: some of them have none, and are NaN or infinite in an array, null in a structure's JSON. */
      readonly doubt?: Doubt | undefined;
      /** The device sent it, and was not asked for it. Only from a driver to the agent. */
      readonly isSent?: true;
      readonly earlier?: Earlier;
    }
  | {
      readonly quality: "bad";
      readonly fault: Fault;
      /** the protocol's own code and words */
      readonly detail?: string;
      readonly earlier?: Earlier;
    };

/**
 * Readings of the same variable since the last readout, before this one, oldest first: where the device sends each change. Where some of
 * them are missing, one of the fault `values_lost` takes their place. Only from a driver to the agent.
 */
export type Earlier = readonly Reading[];

/** From so many readings on a readout is worked on by slices: each of counting, looking at and encoding so many takes a millisecond or two. */
export const LARGE_READOUT = 10_000;

/** One pass over a source's variables. `readings` are in the order of the source's layout; undefined = not asked for (above `readout_limit`). */
export interface Readout {
  /** Moment the first request was sent, epoch ms UTC. */
  readonly time: number;
  /** Until the last answer. */
  readonly spanMs: number;
  /** True: the wall clock was synchronised. */
  readonly clockSynced: boolean;
  /** When the machine was started by the clock that gave `time`, epoch ms: another number once that clock was set. Absent: not known. */
  readonly bootTimeMs?: number;
  /** What was added to `time` because the clock was set right later, ms; 0: it had been right. Absent: `time` is as it was stamped. */
  readonly clockCorrectionMs?: number;
  readonly readings: readonly (Reading | undefined)[];
  /**
   * By place 1 for a variable that was read, and whose value is as it was reported last (report by exception); absent: there is none. As the
   * readout is read it has its reading; as a sink gets the readout, it has none.
   */
  readonly unchanged?: Uint8Array | undefined;
}

/** What engineers call these types: IEC 61131-3 (2013), 6.4.2; OPC 10000-6, 5.1.2; C. */
const FIELD_WORDS: Readonly<Record<string, ScalarType>> = {
  boolean: "bool",
  sint: "int8",
  sbyte: "int8",
  usint: "uint8",
  byte: "uint8",
  int: "int16",
  uint: "uint16",
  word: "uint16",
  dint: "int32",
  udint: "uint32",
  dword: "uint32",
  lint: "int64",
  ulint: "uint64",
  lword: "uint64",
  real: "float32",
  float: "float32",
  lreal: "float64",
  double: "float64",
};

/** For messages. */
export const TYPE_EXAMPLES = "a type such as bool, int16, uint32, float32, REAL, string(20) or float32[10]";

/** A word that may be a type of some driver, with its length and its elements. */
export const TYPE_WORD = /^[A-Za-z][A-Za-z0-9_]{0,30}(?:\(\d{1,5}\))?(?:\[\d{1,5}(?:x\d{1,5}){0,7}\])?$/;

const TYPE = /^([a-z0-9]+)(?:\((\d{1,5})\))?(?:\[(\d{1,5}(?:x\d{1,5}){0,7})\])?$/;

/**
 * Reads `uint16`, `string(20)`, `float32[10]`, `float64[2x3]`, and the field's words for them (`REAL`, `DINT[4]`); undefined when the
 * text is not a type. Case does not matter. `auto` is none: it is what no type means.
 */
export function parseDataType(text: string): DataType | undefined {
  const match = TYPE.exec(text.trim().toLowerCase());
  if (!match) return undefined;
  const word = match[1] ?? "";
  const scalar = SCALAR_TYPES.find((name) => name === word) ?? (Object.hasOwn(FIELD_WORDS, word) ? FIELD_WORDS[word] : undefined);
  if (!scalar) return undefined;
  const maxBytes = match[2] === undefined ? undefined : Number(match[2]);
  const dimensions = match[3]?.split("x").map(Number) ?? [];
  const count = match[3] === undefined ? undefined : dimensions.reduce((product, n) => product * n, 1);
  if (maxBytes !== undefined && (scalar !== "string" || !inRange(maxBytes))) return undefined;
  if (count !== undefined && !inRange(count)) return undefined;
  return {
    scalar,
    ...(maxBytes !== undefined && { maxBytes }),
    ...(count !== undefined && { count }),
    ...(dimensions.length > 1 && { dimensions }),
  };
}

export function formatDataType({ scalar, maxBytes, count, dimensions }: DataType): string {
  const length = dimensions?.join("x") ?? count;
  return `${scalar}${maxBytes === undefined ? "" : `(${maxBytes})`}${length === undefined ? "" : `[${length}]`}`;
}

/**
 * True: a matrix of `length` elements can have these dimensions: 1 to MAX_DIMENSIONS whole numbers that are not negative and multiply to
 * `length`; 0 is one only where there are no elements. Pure.
 */
export function areDimensionsOf(dimensions: readonly number[], length: number): boolean {
  if (dimensions.length === 0 || dimensions.length > MAX_DIMENSIONS) return false;
  const product = dimensions.reduce((so, n) => (Number.isSafeInteger(n) && n >= 0 ? so * n : Number.NaN), 1);
  return Number.isSafeInteger(product) && product === length;
}

const inRange = (n: number): boolean => n >= 1 && n <= MAX_COUNT;
