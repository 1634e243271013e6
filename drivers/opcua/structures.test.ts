import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ExtensionBody } from "./binary.ts";
import { type Definition, decodeStructure, type Field, jsonText } from "./structures.ts";

const field = (name: string, builtIn: number, more: Partial<Field> = {}): Field => ({
  name,
  type: { builtIn },
  valueRank: -1,
  isOptional: false,
  ...more,
});
const [INT32, INT64, FLOAT, STRING] = [6, 8, 10, 12];

describe("decodeStructure", () => {
  it("reads fields in their order, arrays, matrices and structures in structures", () => {
    const inner: Definition = { kind: "structure", fields: [field("a", INT32)] };
    const definition: Definition = {
      kind: "structure",
      fields: [
        field("n", INT64),
        field("list", INT32, { valueRank: 1 }),
        field("m", INT32, { valueRank: 2 }),
        { ...field("inner", 0), type: { structure: inner } },
        field("f", FLOAT),
      ],
    };
    const bytes = Buffer.alloc(8 + 12 + 12 + 8 + 4 + 4);
    bytes.writeBigInt64LE(-9_007_199_254_740_993n, 0);
    for (const [i, value] of [2, 1, -1, 2, 1, 2, 8, 9].entries()) bytes.writeInt32LE(value, 8 + 4 * i);
    bytes.writeInt32LE(5, 40);
    bytes.writeFloatLE(0.1, 44);
    expect(jsonText(decodeStructure(definition, bytes), () => null)).toBe(
      '{"n":-9007199254740993,"list":[1,-1],"m":{"dimensions":[1,2],"values":[8,9]},"inner":{"a":5},"f":0.1}',
    );
  });

  it("leaves out absent optional fields, and takes one field of a union", () => {
    const optional: Definition = {
      kind: "optional",
      fields: [field("a", INT32), field("b", INT32, { isOptional: true }), field("c", INT32, { isOptional: true })],
    };
    expect({ ...decodeStructure(optional, Buffer.from([2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0])) }).toEqual({ a: 1, c: 3 });
    const union: Definition = { kind: "union", fields: [field("a", INT32), field("s", STRING)] };
    expect({ ...decodeStructure(union, Buffer.from([2, 0, 0, 0, 1, 0, 0, 0, 65])) }).toEqual({ s: "A" });
    expect({ ...decodeStructure(union, Buffer.from([0, 0, 0, 0])) }).toEqual({});
  });

  it("bounds a structure that holds itself", () => {
    const itself: Definition = { kind: "structure", fields: [] };
    itself.fields.push({ name: "again", type: { structure: itself }, valueRank: -1, isOptional: false });
    expect(() => decodeStructure(itself, Buffer.alloc(10))).toThrow(RangeError);
  });

  it("refuses a matrix whose dimensions are negative, though they multiply to what is there", () => {
    const definition: Definition = { kind: "structure", fields: [field("m", INT32, { valueRank: 2 })] };
    const body = (...numbers: readonly number[]): Buffer => {
      const bytes = Buffer.alloc(numbers.length * 4);
      numbers.forEach((n, i) => void bytes.writeInt32LE(n, i * 4));
      return bytes;
    };
    expect(() => decodeStructure(definition, body(2, -2, -1, 7, 8))).toThrow(RangeError);
    expect(decodeStructure(definition, body(2, 2, 1, 7, 8))).toEqual({ m: { dimensions: [2, 1], values: [7, 8] } });
    expect(decodeStructure(definition, body(0))).toEqual({ m: { dimensions: [], values: [] } });
  });

  it("names the fields that are no numbers, which are null in the JSON", () => {
    const inner: Definition = { kind: "structure", fields: [field("f", FLOAT)] };
    const definition: Definition = {
      kind: "structure",
      fields: [field("list", FLOAT, { valueRank: 1 }), { ...field("inner", 0), type: { structure: inner } }],
    };
    const bytes = Buffer.alloc(16);
    bytes.writeInt32LE(2, 0);
    bytes.writeFloatLE(1, 4);
    bytes.writeFloatLE(Number.NaN, 8);
    bytes.writeFloatLE(Number.NEGATIVE_INFINITY, 12);
    const odd: string[] = [];
    expect(jsonText(decodeStructure(definition, bytes), () => null, odd)).toBe('{"list":[1,null],"inner":{"f":null}}');
    expect(odd).toEqual(["list[1] is NaN", "inner.f is -Infinity"]);
  });

  it("takes any name for a field", () => {
    const definition: Definition = { kind: "structure", fields: [field("__proto__", INT32)] };
    expect(jsonText(decodeStructure(definition, Buffer.alloc(4)), () => null)).toBe('{"__proto__":0}');
  });

  it("answers any bytes with an object or a RangeError", () => {
    const definition: Definition = {
      kind: "optional",
      fields: [1, 8, 10, 12, 13, 14, 15, 17, 18, 20, 21, 22, 23, 24].map((type, i) =>
        field(`f${type}`, type, { valueRank: (i % 3) - 1, isOptional: i % 2 === 0 }),
      ),
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          expect(typeof jsonText(decodeStructure(definition, bytes), ({ encoding }) => encoding)).toBe("string");
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

it("writes structures in structures as what they expand to", () => {
  expect(jsonText([new ExtensionBody("i=1", Buffer.alloc(0)), 2n ** 64n], () => ({ x: 1n }))).toBe('[{"x":1},18446744073709551616]');
});
