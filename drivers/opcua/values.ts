import type { Fault } from "../../src/model/fault.ts";
import { type DataType, formatDataType, type Reading, type Scalar, type ScalarType, type Value } from "../../src/model/value.ts";
import { hexCode } from "./failure.ts";
import { faultOf, qualityOf } from "./status-codes.ts";

/** Of a value that came over the wire; what node-opcua's DataValue has, and what another decoder would have to give. */
export interface RawDataValue {
  readonly value?: RawVariant | null | undefined;
  readonly statusCode: { readonly value: number; readonly name: string; readonly description: string };
  readonly sourceTimestamp?: Date | null | undefined;
}

export interface RawVariant {
  /** Built-in type (OPC 10000-6, 5.1.2): 1 Boolean … 25 DiagnosticInfo; 0 is null. */
  readonly dataType: number;
  /** 0 scalar, 1 array, 2 matrix. */
  readonly arrayType: number;
  readonly value: unknown;
  readonly dimensions?: readonly number[] | null | undefined;
}

/** Turns what is no plain value (structures above all) into JSON. */
export type ToJson = (value: unknown, dataType: number) => string;

/** By number of the built-in type; what is not here is text. */
const SCALARS: Readonly<Record<number, ScalarType>> = {
  1: "bool",
  2: "int8",
  3: "uint8",
  4: "int16",
  5: "uint16",
  6: "int32",
  7: "uint32",
  8: "int64",
  9: "uint64",
  10: "float32",
  11: "float64",
  19: "uint32",
};
const BUILT_IN = [
  "Null Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString XmlElement NodeId",
  "ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject DataValue Variant DiagnosticInfo",
].flatMap((names) => names.split(" "));
const MAX_COUNT = 65_535;

const bad = (fault: Fault, detail: string): Reading => ({ quality: "bad", fault, detail });

/** `BadNodeIdUnknown (0x80340000): The node id refers to …`. */
export function describeCode({ value, name, description }: RawDataValue["statusCode"]): string {
  return `${name} (${hexCode(value)})${description === "" ? "" : `: ${description}`}`;
}

/**
 * One answer of the server as a reading of a variable whose type is `wanted`; `auto` takes the type that came. A narrower or wider number
 * type is taken where the value fits, never by guessing. Pure.
 */
export function toReading(raw: RawDataValue, wanted: DataType, toJson: ToJson): Reading {
  const { statusCode, value: variant } = raw;
  const quality = statusCode.value === 0 ? "good" : qualityOf(statusCode.value);
  if (quality === "bad") return bad(faultOf(statusCode.value), describeCode(statusCode));
  if (!variant || variant.dataType === 0)
    return quality === "good"
      ? bad("device_error", "the server has no value (null), and calls that good")
      : bad("no_answer", `no value; ${describeCode(statusCode)}`);
  const source = raw.sourceTimestamp?.getTime();
  const sourceTime = source !== undefined && source > 0 ? { sourceTime: source } : undefined;
  const scalar = SCALARS[variant.dataType] ?? "string";
  if (variant.arrayType === 0) {
    const value = scalarOf(variant.value, variant.dataType, toJson);
    if (wanted.scalar === "auto") return finite(value) ? { quality, value, ...sourceTime, type: { scalar } } : notANumber(value);
    if (wanted.count !== undefined) return bad("type_mismatch", `the server sends one ${nameOf(variant)}, no ${formatDataType(wanted)}`);
    const fitted = convert(value, scalar, wanted.scalar);
    if (fitted === undefined) return misfit(value, variant, wanted);
    return finite(fitted) ? { quality, value: fitted, ...sourceTime } : notANumber(fitted);
  }
  const values = elementsOf(variant, toJson);
  if (values.length > MAX_COUNT)
    return bad("type_mismatch", `the server sends ${values.length} elements; a variable has at most ${MAX_COUNT}`);
  const wrong = values.find((value) => !finite(value));
  if (wrong !== undefined) return notANumber(wrong);
  if (wanted.scalar === "auto") return { quality, value: values, ...sourceTime, type: { scalar, ...shapeOf(variant, values.length) } };
  if (wanted.count === undefined)
    return bad("type_mismatch", `the server sends an array of ${values.length} ${nameOf(variant)}, no ${formatDataType(wanted)}`);
  if (wanted.count !== values.length || (wanted.dimensions && `${wanted.dimensions}` !== `${variant.dimensions ?? ""}`))
    return bad(
      "type_mismatch",
      `the server sends ${formatDataType({ scalar, ...shapeOf(variant, values.length) })}, not ${formatDataType(wanted)}`,
    );
  const fitted: Scalar[] = [];
  for (const value of values) {
    const one = convert(value, scalar, wanted.scalar);
    if (one === undefined) return misfit(value, variant, wanted);
    if (!finite(one)) return notANumber(one);
    fitted.push(one);
  }
  return { quality, value: fitted, ...sourceTime };
}

function shapeOf({ dimensions, arrayType }: RawVariant, length: number): Pick<DataType, "count" | "dimensions"> {
  const count = Math.max(1, length);
  return arrayType === 2 && dimensions && dimensions.length > 1 && length > 0 ? { count, dimensions: [...dimensions] } : { count };
}

const nameOf = ({ dataType }: RawVariant): string => BUILT_IN[dataType] ?? `type ${dataType}`;
const finite = (value: Scalar): boolean => typeof value !== "number" || Number.isFinite(value);
const notANumber = (value: Scalar): Reading => bad("not_a_number", `the server sends ${String(value)}`);

function misfit(value: Value, variant: RawVariant, wanted: DataType): Reading {
  const words = `the server sends ${nameOf(variant)}, the variable is ${formatDataType(wanted)}`;
  return typeof value === "number" || typeof value === "bigint"
    ? bad("out_of_range", `${words}, which cannot hold ${value}`)
    : bad("type_mismatch", words);
}

function elementsOf({ value, dataType }: RawVariant, toJson: ToJson): Scalar[] {
  if (value === null || value === undefined) return [];
  // Numbers up to 32 bits and floating ones come as typed arrays.
  if (ArrayBuffer.isView(value) && dataType <= 11) return Array.from(value as unknown as ArrayLike<number>);
  return Array.isArray(value) ? value.map((element: unknown) => scalarOf(element, dataType, toJson)) : [];
}

/** One element, by its built-in type. 64-bit integers come as their high and low halves. */
function scalarOf(value: unknown, dataType: number, toJson: ToJson): Scalar {
  switch (dataType) {
    case 1:
      return value === true;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 10:
    case 11:
      return typeof value === "number" ? value : Number.NaN;
    case 8:
      return BigInt.asIntN(64, wide(value));
    case 9:
      return wide(value);
    case 13:
      return value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString() : "";
    case 15:
      return Buffer.isBuffer(value) ? value.toString("base64") : "";
    case 19:
      return hasNumber(value) ? value.value >>> 0 : 0;
    case 20:
      return qualifiedName(value);
    case 21:
      return typeof value === "object" && value !== null && "text" in value && typeof value.text === "string" ? value.text : "";
    case 22:
    case 23:
    case 24:
    case 25:
      return toJson(value, dataType);
    default:
      return value === null || value === undefined ? "" : String(value);
  }
}

/** High and low half of 64 bits; unsigned. */
export function wide(value: unknown): bigint {
  if (!Array.isArray(value) || value.length < 2) return 0n;
  return (BigInt(Number(value[0]) >>> 0) << 32n) | BigInt(Number(value[1]) >>> 0);
}

const hasNumber = (value: unknown): value is { readonly value: number } =>
  typeof value === "object" && value !== null && "value" in value && typeof value.value === "number";

/** `2:Temp`, and without the prefix in namespace 0. */
export function qualifiedName(value: unknown): string {
  if (typeof value !== "object" || value === null || !("name" in value) || typeof value.name !== "string") return "";
  const namespace = "namespaceIndex" in value && typeof value.namespaceIndex === "number" ? value.namespaceIndex : 0;
  return namespace === 0 ? value.name : `${namespace}:${value.name}`;
}

const RANGES: Partial<Record<ScalarType, readonly [bigint, bigint]>> = {
  int8: [-128n, 127n],
  uint8: [0n, 255n],
  int16: [-32_768n, 32_767n],
  uint16: [0n, 65_535n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};

/** The value in another type of the same kind; undefined where it does not fit. A double as float32 is rounded, as float32 is. */
function convert(value: Scalar, from: ScalarType, to: ScalarType): Scalar | undefined {
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
  const [least, most] = RANGES[to] ?? [0n, 0n];
  if (whole < least || whole > most) return undefined;
  return to === "int64" || to === "uint64" ? whole : Number(whole);
}
