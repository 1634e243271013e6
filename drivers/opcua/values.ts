import { type Doubt, doubtOf } from "../../src/model/doubt.ts";
import { type Fault, FaultError } from "../../src/model/fault.ts";
import {
  areDimensionsOf,
  type DataType,
  formatDataType,
  MAX_COUNT,
  MAX_DIMENSIONS,
  type Reading,
  SCALAR_TYPES,
  type Scalar,
  type ScalarType,
  type Value,
} from "../../src/model/value.ts";
import { convert } from "../lib/convert.ts";
import { EARLIEST_TIME, LATEST_TIME, type RawValue } from "./binary.ts";
import { BUILT_IN_NAMES, DATE_TIME, EXTENSION_OBJECT, scalarOfBuiltIn, VARIANT } from "./built-in.ts";
import { type Expand, type Step, selected } from "./selection.ts";
import { faultOf, qualityOf } from "./status-codes.ts";

/**
 * Turns what is no plain value (structures above all) into JSON. `odd` gets the fields that are no numbers, in words. Throws RangeError for bytes that are not what they should be, FaultError
 * where it cannot be said yet.
 */
export type ToJson = (value: unknown, odd?: string[], path?: string) => string;
/** `BadNodeIdUnknown (0x80340000): …` for a status. */
export type Describe = (status: number) => string;

const bad = (fault: Fault, detail: string): Reading => ({ quality: "bad", fault, detail });

/**
 * One answer of the server as a reading of a variable whose type is `wanted`; `auto` takes the type that came. A narrower or wider number
 * type is taken where the value fits, never by guessing. Pure.
 */
export function toReading(raw: RawValue, wanted: DataType, toJson: ToJson, describe: Describe): Reading {
  return guarded(() => readingOf(raw, wanted, toJson, describe));
}

/** toReading of a part of the value. Pure. */
export function toPartReading(
  raw: RawValue,
  { steps, expand }: { readonly steps: readonly Step[]; readonly expand: Expand },
  wanted: DataType,
  toJson: ToJson,
  describe: Describe,
): Reading {
  const isBad = raw.type === 0 || qualityOf(raw.status) === "bad";
  if (isBad && faultOf(raw.status) === "not_found") return bad("not_found", `${describe(raw.status)}; ${HASH_HINT}`);
  return guarded(() => readingOf(isBad ? raw : selected(raw, steps, expand), wanted, toJson, describe));
}

const HASH_HINT = "# begins a part of the value: a # of the name is written %23, and &# in a browse path";

function guarded(work: () => Reading): Reading {
  try {
    return work();
  } catch (error) {
    // A structure whose type is not known yet, or a part that the value does not have.
    if (error instanceof FaultError) return bad(error.fault, error.message);
    // A structure that is not of its definition, or nested deeper than anything that a server means.
    if (!(error instanceof RangeError)) throw error;
    return bad("device_error", `the value cannot be taken apart: ${error.message}`);
  }
}

function readingOf(raw: RawValue, wanted: DataType, toJson: ToJson, describe: Describe): Reading {
  const quality = raw.status === 0 ? "good" : qualityOf(raw.status);
  if (quality === "bad") return bad(faultOf(raw.status), describe(raw.status));
  if (raw.type === 0)
    return quality === "good"
      ? bad("device_error", "the server has no value (null), and calls that good")
      : bad("no_answer", `no value; ${describe(raw.status)}`);
  const { sourceTime } = raw;
  const scalar = scalarOfBuiltIn(raw.type);
  if (raw.isArray) return arrayReading(raw, scalar, wanted, quality, toJson);
  const odd: string[] = [];
  const value = scalarOf(raw.value, raw.type, toJson, odd);
  if (wanted.scalar === "auto") {
    if (!finite(value)) return notANumber(value);
    if (odd.length > 0) return { ...gradedBy(quality, odd, raw.type), value, sourceTime, type: TYPES[scalar] };
    return sourceTime === undefined ? { quality, value, type: TYPES[scalar] } : { quality, value, sourceTime, type: TYPES[scalar] };
  }
  if (wanted.count !== undefined) return bad("type_mismatch", `the server sends one ${nameOf(raw)}, no ${formatDataType(wanted)}`);
  const converted = convert(value, scalar, wanted.scalar);
  if (converted === undefined) return misfit(value, raw, wanted);
  if (!finite(converted)) return notANumber(converted);
  if (odd.length > 0) return { ...gradedBy(quality, odd, raw.type), value: converted, sourceTime };
  return sourceTime === undefined ? { quality, value: converted } : { quality, value: converted, sourceTime };
}

const FLOATS: ReadonlySet<DataType["scalar"]> = new Set(["float32", "float64"]);

/** `odd`: in words, fields of structures that are no numbers, and times that are none. */
function gradedBy(
  quality: "good" | "uncertain",
  odd: readonly string[],
  type: number,
): { readonly quality: "good" | "uncertain"; readonly doubt?: Doubt } {
  if (odd.length === 0) return { quality };
  const doubt = doubtOf(odd);
  return { quality: "uncertain", doubt: type === DATE_TIME ? { ...doubt, fault: "out_of_range" } : doubt };
}

/** One object for each type: a thousand readings share them. */
const TYPES = Object.fromEntries(SCALAR_TYPES.map((scalar) => [scalar, { scalar }])) as Readonly<Record<ScalarType, DataType>>;

/** The type of a reading of one value of a built-in type. */
export const typeOfBuiltIn = (type: number): DataType => TYPES[scalarOfBuiltIn(type)];

function arrayReading(raw: RawValue, scalar: ScalarType, wanted: DataType, quality: "good" | "uncertain", toJson: ToJson): Reading {
  const elements: readonly unknown[] = Array.isArray(raw.value) ? raw.value : [];
  if (elements.length > MAX_COUNT)
    return bad("type_mismatch", `the server sends ${elements.length} elements; a variable has at most ${MAX_COUNT}`);
  const wrongShape = dimensionsFault(raw.dimensions, elements.length);
  if (wrongShape) return wrongShape;
  const odd: string[] = [];
  const values = elements.map((element, i) => scalarOf(element, raw.type, toJson, odd, `[${i}]`));
  const sourceTime = raw.sourceTime === undefined ? undefined : { sourceTime: raw.sourceTime };
  const shape = shapeOf(raw, values.length);
  if (wanted.scalar === "auto") return { ...gradedBy(quality, odd, raw.type), value: values, ...sourceTime, type: { scalar, ...shape } };
  if (wanted.count === undefined)
    return bad("type_mismatch", `the server sends an array of ${values.length} ${nameOf(raw)}, no ${formatDataType(wanted)}`);
  if (wanted.count !== values.length || (wanted.dimensions && `${wanted.dimensions}` !== `${raw.dimensions ?? ""}`))
    return bad(
      "type_mismatch",
      `the server sends ${values.length === 0 ? "an empty array" : formatDataType({ scalar, ...shape })}, not ${formatDataType(wanted)}`,
    );
  const converted: Scalar[] = [];
  for (const value of values) {
    // What is no number stays that element's, where the type has a place for it.
    const one = !finite(value) && FLOATS.has(wanted.scalar) ? value : convert(value, scalar, wanted.scalar);
    if (one === undefined) return finite(value) ? misfit(value, raw, wanted) : notANumber(value);
    converted.push(one);
  }
  return { ...gradedBy(quality, odd, raw.type), value: converted, ...sourceTime };
}

/** Dimensions that contradict the elements are a decoding error (OPC 10000-6, 5.2.2.16): nobody knows which of both is right. */
function dimensionsFault(dimensions: readonly number[] | null, length: number): Reading | undefined {
  if (!dimensions || areDimensionsOf(dimensions, length)) return undefined;
  if (dimensions.length > MAX_DIMENSIONS)
    return bad("type_mismatch", `the server sends a matrix of ${dimensions.length} dimensions; a variable has at most ${MAX_DIMENSIONS}`);
  return bad("device_error", `the server sends ${length} elements and says that they are a matrix of [${dimensions.join(", ")}]`);
}

function shapeOf({ dimensions }: RawValue, length: number): Pick<DataType, "count" | "dimensions"> {
  const count = Math.max(1, length);
  return dimensions && length > 0 ? { count, dimensions: [...dimensions] } : { count };
}

const nameOf = ({ type }: RawValue): string => BUILT_IN_NAMES[type] ?? `type ${type}`;
const finite = (value: Scalar): boolean => typeof value !== "number" || Number.isFinite(value);
const notANumber = (value: Scalar): Reading => bad("not_a_number", `the server sends ${String(value)}`);

function misfit(value: Value, raw: RawValue, wanted: DataType): Reading {
  const words = `the server sends ${nameOf(raw)}, the variable is ${formatDataType(wanted)}`;
  return (typeof value === "number" || typeof value === "bigint") && wanted.scalar !== "bool" && wanted.scalar !== "string"
    ? bad("out_of_range", `${words}, which cannot hold ${value}`)
    : bad("type_mismatch", words);
}

/** One element, as the reader gives it; what is neither number nor text becomes JSON. */
function scalarOf(value: unknown, type: number, toJson: ToJson, odd: string[], path = ""): Scalar {
  switch (typeof value) {
    case "boolean":
    case "number":
    case "bigint":
      return value;
    case "string":
      if (type === DATE_TIME && (value === EARLIEST_TIME || value === LATEST_TIME))
        odd.push(`${path === "" ? "the time" : path} is ${value}, an end of the scale: the server has no time`);
      return value;
    default:
      // A null text is an empty one: many servers do not tell them apart.
      return value === null && type !== EXTENSION_OBJECT && type !== VARIANT ? "" : toJson(value, odd, path);
  }
}
