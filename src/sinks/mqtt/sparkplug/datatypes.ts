import { Buffer } from "node:buffer";
import type { DataType, Scalar, ScalarType, Value } from "../../../model/value.ts";

/** Sparkplug 3.0, 6.4.16: numbers of the data types of scalars. */
export const DATATYPES = {
  int8: 1,
  int16: 2,
  int32: 3,
  int64: 4,
  uint8: 5,
  uint16: 6,
  uint32: 7,
  uint64: 8,
  float32: 9,
  float64: 10,
  bool: 11,
  string: 12,
} as const satisfies Readonly<Record<ScalarType, number>>;

/** Those of arrays. */
const ARRAY_DATATYPES = {
  int8: 22,
  int16: 23,
  int32: 24,
  int64: 25,
  uint8: 26,
  uint16: 27,
  uint32: 28,
  uint64: 29,
  float32: 30,
  float64: 31,
  bool: 32,
  string: 33,
} as const satisfies Readonly<Record<ScalarType, number>>;

/** A type as Sparkplug has it. A structure is JSON text in the collector, and text here. */
export interface SparkplugType {
  readonly datatype: number;
  readonly scalar: ScalarType;
  readonly isArray: boolean;
}

/** The Sparkplug type of a variable; one whose type the device has not said yet (`auto`) is a text without a value until then. */
export function sparkplugType({ scalar: given, count }: DataType): SparkplugType {
  const scalar = given === "auto" ? "string" : given;
  const isArray = count !== undefined;
  return { datatype: isArray ? ARRAY_DATATYPES[scalar] : DATATYPES[scalar], scalar, isArray };
}

/** Why a value cannot be written as this type, in words; undefined: it can. */
export function valueProblem({ scalar, isArray }: SparkplugType, value: Value): string | undefined {
  const wanted = jsTypeOf(scalar);
  if (!isArray) return typeof value === wanted ? undefined : `the value is not of the type ${scalar}`;
  const elements = typeof value === "object" ? value : [];
  if (typeof value !== "object" || !elements.every((element) => typeof element === wanted)) return `expected an array of ${scalar}`;
  // StringArray ends each element with NUL.
  if (scalar === "string" && elements.some((element) => typeof element === "string" && element.includes("\0")))
    return "an element holds a NUL character, which a StringArray cannot hold";
  return undefined;
}

function jsTypeOf(scalar: ScalarType): string {
  if (scalar === "string") return "string";
  if (scalar === "bool") return "boolean";
  return scalar === "int64" || scalar === "uint64" ? "bigint" : "number";
}

/** Sparkplug 3.0, 6.4.17: an array as packed bytes, numbers little-endian. The value is of the type (`valueProblem`). */
export function packArray(scalar: ScalarType, value: readonly Scalar[]): Buffer {
  if (scalar === "string") return Buffer.concat((value as readonly string[]).map((text) => Buffer.from(`${text}\0`)));
  if (scalar === "bool") return packBits(value as readonly boolean[]);
  if (scalar === "int64" || scalar === "uint64") {
    const packed = Buffer.alloc(value.length * 8);
    for (const [i, one] of (value as readonly bigint[]).entries()) packed.writeBigUInt64LE(BigInt.asUintN(64, one), i * 8);
    return packed;
  }
  return packNumbers(scalar, value as readonly number[]);
}

/** The count in four bytes, then eight a byte, the first one in the highest bit. */
function packBits(bits: readonly boolean[]): Buffer {
  const packed = Buffer.alloc(4 + Math.ceil(bits.length / 8));
  packed.writeUInt32LE(bits.length);
  for (const [i, bit] of bits.entries()) if (bit) packed[4 + (i >> 3)] = (packed[4 + (i >> 3)] ?? 0) | (0x80 >> (i & 7));
  return packed;
}

function packNumbers(scalar: Exclude<ScalarType, "string" | "bool" | "int64" | "uint64">, numbers: readonly number[]): Buffer {
  const arrays = {
    int8: Int8Array,
    uint8: Uint8Array,
    int16: Int16Array,
    uint16: Uint16Array,
    int32: Int32Array,
    uint32: Uint32Array,
    float32: Float32Array,
    float64: Float64Array,
  } as const;
  const packed = new arrays[scalar](numbers);
  const bytes = Buffer.from(packed.buffer);
  // Typed arrays have the order of the machine.
  if (BIG_ENDIAN && packed.BYTES_PER_ELEMENT === 2) bytes.swap16();
  else if (BIG_ENDIAN && packed.BYTES_PER_ELEMENT === 4) bytes.swap32();
  else if (BIG_ENDIAN && packed.BYTES_PER_ELEMENT === 8) bytes.swap64();
  return bytes;
}

const BIG_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 0;
