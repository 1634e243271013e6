import type { Fault } from "./fault.ts";
import { type DataType, formatDataType, type Value } from "./value.ts";

/** True: a variable of this type can have the value, as the buffer keeps it; no value is of a type that is not settled. Pure. */
export function fitsType(value: Value, { scalar, count }: DataType): boolean {
  if (count === undefined) return fitsScalar(scalar, value);
  return Array.isArray(value) && value.every((element) => fitsElement(scalar, element));
}

/** Of an array, whose elements may be without a value: NaN and the infinities. */
export const fitsElement = (scalar: DataType["scalar"], value: Value): boolean =>
  fitsScalar(scalar, value) || ((scalar === "float32" || scalar === "float64") && typeof value === "number" && !Number.isFinite(value));

/** Works as fitsType does, of a scalar. */
export function fitsScalar(scalar: DataType["scalar"], value: Value): boolean {
  switch (scalar) {
    case "auto":
      return false;
    case "bool":
      return typeof value === "boolean";
    case "string":
      return typeof value === "string";
    case "int64":
      return typeof value === "bigint" && value >= -(2n ** 63n) && value < 2n ** 63n;
    case "uint64":
      return typeof value === "bigint" && value >= 0n && value < 2n ** 64n;
    case "float64":
      return Number.isFinite(value);
    case "float32":
      return typeof value === "number" && Number.isFinite(Math.fround(value));
    case "int8":
      return typeof value === "number" && (value << 24) >> 24 === value;
    case "uint8":
      return typeof value === "number" && (value & 0xff) === value;
    case "int16":
      return typeof value === "number" && (value << 16) >> 16 === value;
    case "uint16":
      return typeof value === "number" && (value & 0xffff) === value;
    case "int32":
      return typeof value === "number" && (value | 0) === value;
    case "uint32":
      return typeof value === "number" && value >>> 0 === value;
  }
}

/** What becomes of a value that does not fit. */
export interface Unfit {
  readonly fault: Fault;
  readonly detail: string;
}

/** Pure. */
export function unfit(type: DataType, value: Value): Unfit {
  if (typeof value === "number" && !Number.isFinite(value)) return { fault: "not_a_number", detail: String(value) };
  const shown = Array.isArray(value) ? `an array of ${value.length}` : String(value).slice(0, 40);
  return { fault: "type_mismatch", detail: `${shown} (${typeof value}) is not a ${formatDataType(type)}` };
}
