import { fitsType, unfit } from "../../src/model/fits.ts";
import { type DataType, parseDataType, type Reading, type Scalar, type Value } from "../../src/model/value.ts";
import { INTEGER_RANGES } from "../lib/convert.ts";
import type { RawReading } from "./contract.ts";

const WHOLE = /^-?\d{1,20}$/;

/** 64-bit numbers come as decimal digits in a text, since JSON's numbers lose the last ones. */
function wide(value: boolean | number | string): Scalar {
  if (typeof value === "string" && WHOLE.test(value)) return BigInt(value);
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
}

/** JSON can hold half of a surrogate pair. */
const wellFormed = (value: boolean | number | string): Scalar => (typeof value === "string" ? value.toWellFormed() : value);

/** What a plugin read, as a variable of this type; a value that is not of the type is a fault of that variable. Pure. */
export function readingOf(raw: RawReading, wanted: DataType): Reading {
  if ("fault" in raw) return { quality: "bad", fault: raw.fault, ...(raw.detail !== undefined && { detail: raw.detail }) };
  const own = raw.type === undefined ? undefined : parseDataType(raw.type);
  const type = wanted.scalar === "auto" ? own : wanted;
  if (!type) {
    const detail = raw.type === undefined ? "the plugin gave no type with the value" : `${raw.type} is not a type of the collector`;
    return { quality: "bad", fault: "type_mismatch", detail };
  }
  const is64 = type.scalar === "int64" || type.scalar === "uint64";
  const given = raw.value;
  const scalarOf = is64 ? wide : wellFormed;
  const value: Value = Array.isArray(given) ? given.map(scalarOf) : scalarOf(given as boolean | number | string);
  const isLength = type.count === undefined || (Array.isArray(value) && value.length === type.count);
  if (!isLength || !fitsType(value, type)) return { quality: "bad", ...misfit(type, value) };
  return {
    quality: raw.quality,
    value,
    ...(wanted.scalar === "auto" && { type }),
    ...(raw.source_time !== undefined && { sourceTime: Date.parse(raw.source_time) }),
  };
}

/** A whole number beyond its type is out of range; all else is of another type. */
function misfit(type: DataType, value: Value): ReturnType<typeof unfit> {
  const isWhole = typeof value === "bigint" || Number.isInteger(value);
  return isWhole && type.scalar !== "auto" && INTEGER_RANGES[type.scalar]
    ? { ...unfit(type, value), fault: "out_of_range" }
    : unfit(type, value);
}
