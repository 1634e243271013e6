import { areDimensionsOf, type DataType, type Scalar, type ScalarType, type Value } from "../../model/value.ts";

/** A variable's type as an OPC UA server says it (OPC 10000-3, 5.6.2). */
export interface NodeType {
  /** Identifier of the DataType node in namespace 0; of built-in types also the encoding byte of a Variant (OPC 10000-6, 5.1.2). */
  readonly dataType: number;
  /** -2 any, -1 scalar, otherwise the number of dimensions. */
  readonly valueRank: number;
  readonly arrayDimensions: readonly number[] | null;
}

/** What a Variant holds (OPC 10000-6, 5.2.2.16). 64-bit integers are [high, low] pairs. */
export interface VariantContent {
  readonly dataType: number;
  readonly kind: "scalar" | "array" | "matrix";
  readonly value: unknown;
  readonly dimensions: number[] | null;
}

const BUILT_IN: { readonly [S in ScalarType]: number } = {
  bool: 1,
  int8: 2,
  uint8: 3,
  int16: 4,
  uint16: 5,
  int32: 6,
  uint32: 7,
  int64: 8,
  uint64: 9,
  float32: 10,
  float64: 11,
  string: 12,
};

/** BaseDataType (OPC 10000-5, 12.2.1): any. */
const ANY = 24;

export function nodeTypeOf({ scalar, count, dimensions }: DataType): NodeType {
  if (scalar === "auto") return { dataType: ANY, valueRank: -2, arrayDimensions: null };
  const dataType = BUILT_IN[scalar];
  if (count === undefined) return { dataType, valueRank: -1, arrayDimensions: null };
  const arrayDimensions = dimensions && dimensions.length > 1 && areDimensionsOf(dimensions, count) ? dimensions : [count];
  return { dataType, valueRank: arrayDimensions.length, arrayDimensions };
}

/**
 * What a Variant of this type holds for a value; undefined where the value is not of the type: the library would find out only while it
 * encodes. An `auto` type is the value's own. Pure.
 */
export function contentOf(value: Value, type: DataType): VariantContent | undefined {
  if (typeof value !== "object") {
    const dataType = dataTypeOf(value, type);
    return fits(value, dataType) ? { dataType, kind: "scalar", value: elementOf(value, dataType), dimensions: null } : undefined;
  }
  const dataType = dataTypeOf(value[0], type);
  if (!value.every((element) => fits(element, dataType))) return undefined;
  const { dimensions } = type;
  const isMatrix = dimensions !== undefined && dimensions.length > 1 && areDimensionsOf(dimensions, value.length) && value.length > 0;
  return {
    dataType,
    kind: isMatrix ? "matrix" : "array",
    value: elementsOf(value, dataType),
    dimensions: isMatrix ? [...dimensions] : null,
  };
}

function dataTypeOf(sample: Scalar | undefined, { scalar }: DataType): number {
  if (scalar !== "auto") return BUILT_IN[scalar];
  switch (typeof sample) {
    case "boolean":
      return BUILT_IN.bool;
    case "number":
      return BUILT_IN.float64;
    case "bigint":
      return BUILT_IN.int64;
    default:
      return BUILT_IN.string;
  }
}

const INTEGERS: Readonly<Record<number, readonly [min: number, max: number]>> = {
  [BUILT_IN.int8]: [-(2 ** 7), 2 ** 7 - 1],
  [BUILT_IN.uint8]: [0, 2 ** 8 - 1],
  [BUILT_IN.int16]: [-(2 ** 15), 2 ** 15 - 1],
  [BUILT_IN.uint16]: [0, 2 ** 16 - 1],
  [BUILT_IN.int32]: [-(2 ** 31), 2 ** 31 - 1],
  [BUILT_IN.uint32]: [0, 2 ** 32 - 1],
};

function fits(value: Scalar, dataType: number): boolean {
  switch (dataType) {
    case BUILT_IN.bool:
      return typeof value === "boolean";
    case BUILT_IN.string:
      return typeof value === "string";
    case BUILT_IN.int64:
      return typeof value === "bigint" && BigInt.asIntN(64, value) === value;
    case BUILT_IN.uint64:
      return typeof value === "bigint" && BigInt.asUintN(64, value) === value;
    case BUILT_IN.float32:
    case BUILT_IN.float64:
      return typeof value === "number";
    default: {
      const [min, max] = INTEGERS[dataType] ?? [0, -1];
      return typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
    }
  }
}

const elementOf = (value: Scalar, dataType: number): unknown =>
  dataType === BUILT_IN.int64 || dataType === BUILT_IN.uint64 ? highLow(value as bigint) : value;

/** The library encodes number arrays fastest as typed arrays. */
const TYPED: Readonly<Record<number, { from(values: ArrayLike<number>): unknown }>> = {
  [BUILT_IN.int8]: Int8Array,
  [BUILT_IN.uint8]: Uint8Array,
  [BUILT_IN.int16]: Int16Array,
  [BUILT_IN.uint16]: Uint16Array,
  [BUILT_IN.int32]: Int32Array,
  [BUILT_IN.uint32]: Uint32Array,
  [BUILT_IN.float32]: Float32Array,
  [BUILT_IN.float64]: Float64Array,
};

function elementsOf(values: readonly Scalar[], dataType: number): unknown {
  const typed = TYPED[dataType];
  return typed ? typed.from(values as readonly number[]) : values.map((value) => elementOf(value, dataType));
}

/** Two's complement, so that a negative int64 has the bits it has on the wire. */
function highLow(value: bigint): [high: number, low: number] {
  const bits = BigInt.asUintN(64, value);
  return [Number(bits >> 32n), Number(bits & 0xffff_ffffn)];
}
