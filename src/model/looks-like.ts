import type { DataType, Value } from "./value.ts";

/** Readings of one variable from which on their values say something. */
const MIN_READINGS = 3;
/** Different values of digits from which on they say something: three random words are digits once in 270 times. */
const MIN_DIGITS = 3;
/** Measured values are mostly between these, whatever their unit. */
const [LEAST, MOST] = [1e-4, 1e7];
/** Whole numbers that change by less are counted, not measured: a REAL changes by more in its last three digits. */
const MIN_CHANGE = 256;
/** A round REAL, such as 21.5 or 1500, has zeros in its last bits. */
const ROUND_BITS = 0xfff;

/** Another type that the values of a variable may be of. */
export interface Look {
  /** In the words of types: `REAL`, `BCD`, `LBCD`. */
  readonly type: "REAL" | "BCD" | "LBCD";
  /** The newest value, read so. */
  readonly value: number;
  /** Readings that it rests on. */
  readonly readings: number;
}

/**
 * A hint, never a verdict: a 32-bit whole number whose values all look like a REAL, or a 16- or 32-bit one without a sign whose values are all
 * decimal digits, so that BCD and binary cannot be told apart. `values`: of one variable, oldest first. Undefined: nothing points there. Pure.
 */
export function looksLike({ scalar, count }: DataType, values: readonly Value[]): Look | undefined {
  if (count !== undefined || values.length < MIN_READINGS) return undefined;
  const numbers = values.flatMap((value) => (typeof value === "number" ? [value] : []));
  const newest = numbers.at(-1);
  if (newest === undefined || numbers.length < values.length) return undefined;
  const readings = numbers.length;
  if ((scalar === "uint32" || scalar === "int32") && areReals(numbers)) return { type: "REAL", value: realOf(newest), readings };
  if (scalar !== "uint16" && scalar !== "uint32") return undefined;
  return areDigits(numbers) ? { type: scalar === "uint16" ? "BCD" : "LBCD", value: digitsOf(newest), readings } : undefined;
}

/** False: no further value makes this variable look like another type. Pure. */
export const mayLookLike = ({ scalar, count }: DataType, value: Value): boolean =>
  count === undefined &&
  typeof value === "number" &&
  (((scalar === "uint32" || scalar === "int32") && (value === 0 || isPlausible(value))) ||
    ((scalar === "uint16" || scalar === "uint32") && isDigits(value)));

const bits = new DataView(new ArrayBuffer(4));
/** The REAL of the same 32 bits. */
function realOf(whole: number): number {
  bits.setInt32(0, whole | 0);
  return bits.getFloat32(0);
}

function isPlausible(whole: number): boolean {
  const size = Math.abs(realOf(whole));
  return size >= LEAST && size <= MOST;
}

function areReals(numbers: readonly number[]): boolean {
  // A measured value may be zero for a while, and is not always.
  const others = numbers.filter((whole) => whole !== 0);
  if (others.length < MIN_READINGS || !others.every(isPlausible)) return false;
  const change = numbers.reduce((most, n) => Math.max(most, n)) - numbers.reduce((least, n) => Math.min(least, n));
  return change >= MIN_CHANGE || others.every((whole) => (whole & ROUND_BITS) === 0);
}

const isDigits = (whole: number): boolean => /^\d+$/.test(whole.toString(16));
/** The number of which the four bits are the decimal digits. */
const digitsOf = (whole: number): number => Number(whole.toString(16));

/** Below ten both are the same, and what changes in its last four bits alone may count in binary. */
function areDigits(numbers: readonly number[]): boolean {
  const telling = new Set(numbers.filter((whole) => whole > 9));
  const tens = new Set([...telling].map((whole) => whole >>> 4));
  return numbers.every(isDigits) && telling.size >= MIN_DIGITS && tens.size > 1;
}
