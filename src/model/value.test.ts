import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DataType, formatDataType, parseDataType, SCALAR_TYPES } from "./value.ts";

const sizes = fc.integer({ min: 1, max: 65_535 });
const types: fc.Arbitrary<DataType> = fc
  .tuple(fc.constantFrom(...SCALAR_TYPES), fc.option(sizes, { nil: undefined }), fc.option(sizes, { nil: undefined }))
  .map(([scalar, maxBytes, count]) => ({
    scalar,
    ...(scalar === "string" && maxBytes !== undefined && { maxBytes }),
    ...(count !== undefined && { count }),
  }));

describe("types", () => {
  test("what is written is read back, whatever its case", () => {
    fc.assert(
      fc.property(types, (type) => {
        const text = formatDataType(type);
        expect(parseDataType(text)).toEqual(type);
        expect(parseDataType(` ${text.toUpperCase()} `)).toEqual(type);
      }),
    );
  });

  test("what is read is written back", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^(uint16|string|float32)(\(\d{0,6}\))?(\[\d{0,6}\])?$/), (text) => {
        const type = parseDataType(text);
        fc.pre(type !== undefined);
        if (type) expect(parseDataType(formatDataType(type))).toEqual(type);
      }),
    );
  });

  test.each([
    ["bool", { scalar: "bool" }],
    ["string(20)", { scalar: "string", maxBytes: 20 }],
    ["float32[10]", { scalar: "float32", count: 10 }],
    ["float64[2x3]", { scalar: "float64", count: 6, dimensions: [2, 3] }],
    ["string(20)[3]", { scalar: "string", maxBytes: 20, count: 3 }],
    ["uint8[65535]", { scalar: "uint8", count: 65_535 }],
    ["REAL", { scalar: "float32" }],
    ["DINT[4]", { scalar: "int32", count: 4 }],
    ["word", { scalar: "uint16" }],
    ["LReal[2x2]", { scalar: "float64", count: 4, dimensions: [2, 2] }],
  ])("%s", (text, type) => {
    expect(parseDataType(text)).toEqual(type);
  });

  test.each([
    "",
    "int17",
    "s5time",
    "uint16(2)",
    "string(0)",
    "string(65536)",
    "string()",
    "float32[0]",
    "float32[65536]",
    "float32[1][2]",
    "float32[3](2)",
    "uint 16",
    "constructor",
  ])("%j is no type", (text) => {
    expect(parseDataType(text)).toBeUndefined();
  });
});
