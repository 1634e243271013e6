import fc from "fast-check";
import { BinaryStream } from "node-opcua-binary-stream";
import { Variant, VariantArrayType } from "node-opcua-client";
import { describe, expect, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import { type DataType, SCALAR_TYPES, type ScalarType } from "../../model/value.ts";
import { contentOf, nodeTypeOf } from "./data-type.ts";

describe("nodeTypeOf", () => {
  test.each([
    [{ scalar: "auto" }, 24, -2, null],
    [{ scalar: "float64" }, 11, -1, null],
    [{ scalar: "uint8", count: 4 }, 3, 1, [4]],
    [{ scalar: "string", maxBytes: 20 }, 12, -1, null],
    [{ scalar: "int32", count: 6, dimensions: [2, 3] }, 6, 2, [2, 3]],
  ] as const)("%j", (type, dataType, valueRank, arrayDimensions) => {
    expect(nodeTypeOf(type)).toEqual({ dataType, valueRank, arrayDimensions });
  });
});

const SAMPLES: { readonly [S in ScalarType]: fc.Arbitrary<boolean | number | bigint | string> } = {
  bool: fc.boolean(),
  int8: fc.integer({ min: -128, max: 127 }),
  uint8: fc.integer({ min: 0, max: 255 }),
  int16: fc.integer({ min: -32_768, max: 32_767 }),
  uint16: fc.integer({ min: 0, max: 65_535 }),
  int32: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  uint32: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  int64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  uint64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  float32: fc.float({ noNaN: true }),
  float64: fc.double({ noNaN: true }),
  string: anyText(),
};

describe("contentOf", () => {
  test.each(SCALAR_TYPES)("%s is read back by a client as it was, alone, in arrays and matrices", (scalar) => {
    fc.assert(
      fc.property(fc.array(SAMPLES[scalar], { minLength: 6, maxLength: 6 }), (values) => {
        const [first] = values;
        if (first === undefined) return;
        expect(roundTrip(first, { scalar }, scalar)).toEqual([first]);
        expect(roundTrip(values, { scalar, count: 6 }, scalar)).toEqual(values);
        expect(roundTrip(values, { scalar, count: 6, dimensions: [2, 3] }, scalar)).toEqual(values);
      }),
      { numRuns: 30 },
    );
  });

  test("whatever passes can be encoded: any value of any type with any dimensions, and the node says what the value is", () => {
    const number = fc.oneof(fc.integer({ min: -3, max: 7 }), fc.double(), fc.constantFrom(-0, Number.NaN, 2 ** 31, 2 ** 53, 1e300));
    const element = fc.oneof(fc.boolean(), fc.double(), fc.maxSafeInteger(), fc.bigInt(), anyText());
    const typeOf = fc.record({ scalar: fc.constantFrom("auto" as const, ...SCALAR_TYPES), dimensions: fc.array(number, { maxLength: 9 }) });
    fc.assert(
      fc.property(
        typeOf,
        fc.oneof(element, fc.array(element, { maxLength: 8 }), fc.array(fc.integer({ min: 0, max: 100 }))),
        (type, value) => {
          const count = Array.isArray(value) ? Math.max(1, value.length) : undefined;
          const given = { ...type, ...(count !== undefined && { count }) };
          const node = nodeTypeOf(given);
          for (const n of node.arrayDimensions ?? []) expect(n >= 0 && n < 2 ** 32 && Number.isInteger(n)).toBe(true);
          const content = contentOf(value, given);
          if (content) expect(() => encode(content)).not.toThrow();
          if (content?.dimensions) expect(content.dimensions.reduce((so, n) => so * n, 1)).toBe(Array.isArray(value) && value.length);
        },
      ),
      { numRuns: 3000 },
    );
    expect(contentOf([1, 2, 3, 4, 5, 6], { scalar: "int32", count: 6, dimensions: [-2, -3] })).toMatchObject({ kind: "array" });
    expect(nodeTypeOf({ scalar: "int32", count: 6, dimensions: [-2, -3] })).toMatchObject({ valueRank: 1, arrayDimensions: [6] });
  });

  test("a value that is not of the type is none", () => {
    const any = fc.oneof(fc.boolean(), fc.double(), fc.bigInt(), fc.string(), fc.array(fc.oneof(fc.double(), fc.string(), fc.bigInt())));
    fc.assert(
      fc.property(any, fc.constantFrom(...SCALAR_TYPES), (value, scalar) => {
        const content = contentOf(value, { scalar });
        if (content) expect(() => encode(content)).not.toThrow();
      }),
    );
    expect(contentOf("1", { scalar: "int32" })).toBeUndefined();
    expect(contentOf(256, { scalar: "uint8" })).toBeUndefined();
    expect(contentOf(0.5, { scalar: "int16" })).toBeUndefined();
    expect(contentOf(1, { scalar: "int64" })).toBeUndefined();
    expect(contentOf(2n ** 63n, { scalar: "int64" })).toBeUndefined();
    expect(contentOf([1, "2"], { scalar: "float64", count: 2 })).toBeUndefined();
  });

  test("an auto type is the value's own", () => {
    expect([true, 1.5, 1n, "a"].map((value) => contentOf(value, { scalar: "auto" })?.dataType)).toEqual([1, 11, 8, 12]);
  });

  test("a matrix whose dimensions do not fit is an array", () => {
    expect(contentOf([1, 2, 3], { scalar: "float64", count: 4, dimensions: [2, 2] })).toMatchObject({ kind: "array", dimensions: null });
  });
});

type Content = NonNullable<ReturnType<typeof contentOf>>;
const ARRAY_TYPE = { scalar: VariantArrayType.Scalar, array: VariantArrayType.Array, matrix: VariantArrayType.Matrix };

function encode({ dataType, kind, value, dimensions }: Content): Variant {
  const variant = new Variant(null);
  Object.assign(variant, { dataType, arrayType: ARRAY_TYPE[kind], value, dimensions });
  const stream = new BinaryStream(100_000);
  variant.encode(stream);
  stream.rewind();
  const read = new Variant(null);
  read.decode(stream);
  return read;
}

function roundTrip(value: Parameters<typeof contentOf>[0], type: DataType, scalar: ScalarType): unknown[] {
  const content = contentOf(value, type);
  if (!content) throw new Error("it does not fit");
  const read = encode(content);
  if (type.dimensions) expect(read.dimensions).toEqual(type.dimensions);
  const elements: unknown[] = content.kind === "scalar" ? [read.value] : [...read.value];
  return elements.map((element) => {
    if (scalar !== "int64" && scalar !== "uint64") return element;
    const [high = 0, low = 0] = element as number[];
    const bits = (BigInt(high) << 32n) | BigInt(low);
    return scalar === "int64" ? BigInt.asIntN(64, bits) : bits;
  });
}
