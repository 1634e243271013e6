/** 10^0 … 10^12: a float32 in [1e-3, 2^24) times one of these is exact in a float64 (24 + 28 bits). */
const POWERS = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];

/** FLT_DIG: any decimal of so many digits is told apart from its neighbours by a normal float32; 9 digits name every float32. */
const SAFE_DIGITS = 6;
const MAX_DIGITS = 9;
const MIN_NORMAL = 2 ** -126;

/** `shortFloat32` as text: of a finite number a JSON number. Pure. */
export function float32Text(value: number): string {
  return numberText(shortFloat32(value));
}

/**
 * The float64 with the shortest decimal that reads back as this float32: 0.1, where the float64 would say 0.10000000149011612.
 * (2^-96, 2^87 and 2^90, whose shortest decimal is not their nearest of that length, take one digit more.)
 * Returns a number unchanged that is not a float32 (Math.fround(value) !== value) or not finite. Pure.
 */
export function shortFloat32(value: number): number {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 16_777_216) return value;
  if (Math.fround(value) !== value || size === Number.POSITIVE_INFINITY) return value;
  return size >= 1e-3 && size < 16_777_216 ? shortByScaling(value, size) : shortByPrecision(value);
}

/** Quotients of an integer below 2^53 and a power of ten up to 10^22 are rounded correctly: each is the float64 its decimal names. */
function shortByScaling(value: number, size: number): number {
  let decimals = SAFE_DIGITS + 2;
  for (let bound = 1e-2; size >= bound && decimals > 0; bound *= 10) decimals--;
  for (let digits = SAFE_DIGITS; digits <= MAX_DIGITS; digits++, decimals++) {
    const power = POWERS[decimals];
    if (power === undefined) break;
    const short = Math.round(value * power) / power;
    if (Math.fround(short) === value) return short;
  }
  return shortByPrecision(value);
}

function shortByPrecision(value: number): number {
  for (let digits = Math.abs(value) < MIN_NORMAL ? 1 : SAFE_DIGITS; digits < MAX_DIGITS; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(MAX_DIGITS));
}

/** A finite number in its shortest digits. The sign of a negative zero stays, which `String` leaves out. */
export const numberText = (value: number): string => (Object.is(value, -0) ? "-0" : String(value));

/** "1 request", "2 requests". */
export const countOf = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
