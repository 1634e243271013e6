import { shortFloat32 } from "../base/number.ts";
import type { Reading, Scalar } from "./value.ts";

/** Value = raw value × factor + offset. */
export interface Scaling {
  readonly factor: number;
  readonly offset: number;
}

/** digits × 10^-places, exactly. */
interface Decimal {
  readonly digits: bigint;
  readonly places: number;
}

/** Factor and offset over one power of ten: factor = factor / 10^places. */
interface Fraction {
  readonly factor: bigint;
  readonly offset: bigint;
  readonly places: number;
  /** The same where the quotient of float64s is rounded correctly: integers below 2^53 over a power of ten up to 10^22. */
  readonly quick: { readonly factor: number; readonly offset: number; readonly divisor: number } | undefined;
}

const QUICK_PLACES = 22;

const fractions = new WeakMap<Scaling, Fraction>();

/**
 * The reading after scaling: the float64 nearest to the decimal result, so that 7 × 0.1 is 0.7. Factor and offset count as the decimals that
 * were written, an integer as all its digits, a float as its shortest decimal (`isFloat32`: that of a float32). What leaves the numbers is a
 * fault, not a value; of an array only that element is left without one. Pure.
 */
export function scale(reading: Reading, scaling: Scaling, isFloat32 = false): Reading {
  if (reading.quality === "bad") return reading;
  const { quality, value: raw, sourceTime, type, doubt } = reading;
  const isShort = isFloat32 || type?.scalar === "float32";
  const fraction = fractionOf(scaling);
  const one = (scalar: Scalar): number => scaled(scalar, isShort, fraction);
  const value = typeof raw === "object" ? raw.map(one) : one(raw);
  // An element of an array that is no number is that element's alone.
  if (typeof value === "number" && !Number.isFinite(value))
    return {
      quality: "bad",
      fault: "out_of_range",
      detail: `scaled by ${scaling.factor} with offset ${scaling.offset} it is not a finite number`,
    };
  // Not the type that came with it: that is the raw value's.
  return { quality, value, ...(sourceTime !== undefined && { sourceTime }), ...(doubt && { doubt }) };
}

function scaled(raw: Scalar, isFloat32: boolean, { factor, offset, places, quick }: Fraction): number {
  if (typeof raw === "number" && quick && Number.isInteger(raw)) {
    const product = raw * quick.factor;
    const sum = product + quick.offset;
    if (Number.isSafeInteger(product) && Number.isSafeInteger(sum)) return sum / quick.divisor;
  }
  if (typeof raw !== "bigint" && !Number.isFinite(Number(raw))) return Number.NaN;
  const decimal = typeof raw === "bigint" ? { digits: raw, places: 0 } : decimalOf(isFloat32 ? shortFloat32(Number(raw)) : Number(raw));
  const more = Math.max(0, decimal.places);
  const digits = decimal.digits * 10n ** BigInt(more - decimal.places);
  return Number(`${digits * factor + offset * 10n ** BigInt(more)}e${-(places + more)}`);
}

function fractionOf(scaling: Scaling): Fraction {
  const known = fractions.get(scaling);
  if (known) return known;
  const [factor, offset] = [decimalOf(scaling.factor), decimalOf(scaling.offset)];
  const places = Math.max(0, factor.places, offset.places);
  const whole = ({ digits, places: own }: Decimal): bigint => digits * 10n ** BigInt(places - own);
  const [wholeFactor, wholeOffset] = [whole(factor), whole(offset)];
  const numbers = { factor: Number(wholeFactor), offset: Number(wholeOffset), divisor: 10 ** places };
  const isQuick = places <= QUICK_PLACES && Number.isSafeInteger(numbers.factor) && Number.isSafeInteger(numbers.offset);
  const made = { factor: wholeFactor, offset: wholeOffset, places, quick: isQuick ? numbers : undefined };
  fractions.set(scaling, made);
  return made;
}

/** The shortest decimal of a finite float64. */
function decimalOf(value: number): Decimal {
  const [, sign = "", whole = "0", part = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  return { digits: BigInt(`${sign}${whole}${part}`), places: part.length - Number(exponent) };
}
