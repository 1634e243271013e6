import type { Scalar, ScalarType } from "../../src/model/value.ts";

/** What whole numbers of a type can be. */
export const INTEGER_RANGES: Partial<Record<ScalarType, readonly [bigint, bigint]>> = {
  int8: [-128n, 127n],
  uint8: [0n, 255n],
  int16: [-32_768n, 32_767n],
  uint16: [0n, 65_535n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};

/** The value in another type of the same kind; undefined where it does not fit. A double as float32 is rounded, as float32 is. Pure. */
export function convert(value: Scalar, from: ScalarType, to: ScalarType): Scalar | undefined {
  if (from === to) return value;
  if (typeof value === "boolean" || typeof value === "string" || to === "bool" || to === "string") return undefined;
  if (to === "float32" || to === "float64") {
    if (from === "float32" || from === "float64") return to === "float32" ? Math.fround(Number(value)) : value;
    const number = Number(value);
    const kept = to === "float32" ? Math.fround(number) : number;
    return BigInt(kept) === BigInt(value) ? kept : undefined;
  }
  if (typeof value === "number" && !Number.isInteger(value)) return undefined;
  const whole = BigInt(value);
  const [least, most] = INTEGER_RANGES[to] ?? [0n, 0n];
  if (whole < least || whole > most) return undefined;
  return to === "int64" || to === "uint64" ? whole : Number(whole);
}
