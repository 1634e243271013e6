import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { looksLike } from "./looks-like.ts";
import type { DataType, ScalarType } from "./value.ts";

const bitsOf = (real: number, isSigned = false): number => {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatBE(real);
  return isSigned ? bytes.readInt32BE() : bytes.readUInt32BE();
};
const look = (scalar: ScalarType, values: readonly number[], more: Partial<DataType> = {}) => looksLike({ scalar, ...more }, values);

describe("a double word that holds a REAL", () => {
  it("is named after three readings, with the value as a REAL", () => {
    const values = [21.5, 21.53, 21.49].map((real) => bitsOf(real));
    expect(look("uint32", values)).toEqual({ type: "REAL", value: Math.fround(21.49), readings: 3 });
    expect(look("uint32", values.slice(1))).toBeUndefined();
  });

  it("is named where it has a sign, is round and stays, or is zero at times", () => {
    expect(
      look(
        "int32",
        [-12.5, -12.25, -12.75].map((real) => bitsOf(real, true)),
      ),
    ).toMatchObject({ type: "REAL", value: -12.75 });
    expect(
      look(
        "uint32",
        [1500, 1500, 1500].map((real) => bitsOf(real)),
      ),
    ).toMatchObject({ type: "REAL", value: 1500 });
    expect(look("uint32", [bitsOf(3.25), 0, bitsOf(3.5), bitsOf(3.75)])).toMatchObject({ type: "REAL" });
  });

  it.each<[string, readonly number[]]>([
    ["counters", [4711, 4712, 4713]],
    ["zeros", [0, 0, 0]],
    ["a large counter", [1_100_000_001, 1_100_000_002, 1_100_000_003]],
    ["bits", [0xffff_ffff, 0x8000_0000, 1]],
    ["one value among others that no REAL has", [bitsOf(21.5), bitsOf(21.6), 5]],
  ])("is not seen in %s", (_, values) => expect(look("uint32", values)).toBeUndefined());

  it("is seen in whatever a sensor measures", () => {
    const sensor = fc.array(fc.double({ min: 1, max: 9999, noNaN: true }), { minLength: 3, maxLength: 20 });
    fc.assert(
      fc.property(sensor, (reals) => {
        const values = reals.map((real) => bitsOf(real));
        fc.pre(Math.max(...values) - Math.min(...values) >= 256);
        expect(look("uint32", values)?.type).toBe("REAL");
      }),
    );
  });
});

describe("a word that may be BCD", () => {
  it("is named where all values are digits and three of them differ", () => {
    expect(look("uint16", [0x1997, 0x1998, 0x1999, 0x2000])).toEqual({ type: "BCD", value: 2000, readings: 4 });
    expect(look("uint32", [0x0001_2345, 0x0001_2346, 0x0001_2350])).toEqual({ type: "LBCD", value: 12_350, readings: 3 });
  });

  it.each<[string, ScalarType, readonly number[]]>([
    ["its last digit alone changes", "uint16", [0x1997, 0x1998, 0x1999]],
    ["one value has other digits", "uint16", [0x1997, 0x1998, 0x199a]],
    ["it stays", "uint16", [0x1998, 0x1998, 0x1998]],
    ["both are the same", "uint16", [1, 2, 3, 4]],
    ["it has a sign", "int16", [0x1997, 0x1998, 0x2001]],
    ["it is a byte", "uint8", [0x17, 0x18, 0x21]],
  ])("is not named where %s", (_, scalar, values) => expect(look(scalar, values)).toBeUndefined());
});

it("says nothing of arrays, texts and what has no value, and never fails", () => {
  expect(look("uint16", [0x1997, 0x1998, 0x2001], { count: 3 })).toBeUndefined();
  expect(looksLike({ scalar: "string" }, ["a", "b", "c"])).toBeUndefined();
  expect(looksLike({ scalar: "uint16" }, [0x1997, "x", 0x1999])).toBeUndefined();
  fc.assert(
    fc.property(fc.constantFrom<ScalarType>("uint16", "uint32", "int32", "float64"), fc.array(fc.double()), (scalar, values) => {
      const found = look(scalar, values);
      expect(found === undefined || Number.isFinite(found.value)).toBe(true);
    }),
  );
});
