import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NUMBER_BYTES, type NumberType } from "../../src/model/value.ts";
import { notANumber, numberReader, WORD_ORDERS, type WordOrder } from "./bytes.ts";

const TYPES = Object.keys(NUMBER_BYTES) as NumberType[];

/** The place where byte i of the most-significant-first value lies on the wire, as the docstring of WORD_ORDERS spells it. */
const LETTERS: Readonly<Record<WordOrder, Readonly<Record<number, string>>>> = {
  ABCD: { 2: "AB", 4: "ABCD", 8: "ABCDEFGH" },
  BADC: { 2: "BA", 4: "BADC", 8: "BADCFEHG" },
  CDAB: { 2: "AB", 4: "CDAB", 8: "GHEFCDAB" },
  DCBA: { 2: "BA", 4: "DCBA", 8: "HGFEDCBA" },
};

/** Most significant first, written without the code under test. */
function bytesOf(type: NumberType, value: number | bigint): Buffer {
  const view = new DataView(new ArrayBuffer(NUMBER_BYTES[type]));
  const set = {
    int8: () => view.setInt8(0, Number(value)),
    uint8: () => view.setUint8(0, Number(value)),
    int16: () => view.setInt16(0, Number(value)),
    uint16: () => view.setUint16(0, Number(value)),
    int32: () => view.setInt32(0, Number(value)),
    uint32: () => view.setUint32(0, Number(value)),
    int64: () => view.setBigInt64(0, BigInt(value)),
    uint64: () => view.setBigUint64(0, BigInt(value)),
    float32: () => view.setFloat32(0, Number(value)),
    float64: () => view.setFloat64(0, Number(value)),
  };
  set[type]();
  return Buffer.from(view.buffer);
}

const anyValue = (type: NumberType): fc.Arbitrary<number | bigint> => {
  const bits = NUMBER_BYTES[type] * 8;
  if (type === "float32") return fc.float();
  if (type === "float64") return fc.double();
  if (bits === 64) return type === "int64" ? fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n) : fc.bigInt(0n, 2n ** 64n - 1n);
  return type.startsWith("u")
    ? fc.integer({ min: 0, max: 2 ** bits - 1 })
    : fc.integer({ min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 });
};

describe("numberReader", () => {
  it.each(TYPES.flatMap((type) => WORD_ORDERS.map((order) => [type, order] as const)))("reads %s in the order %s", (type, order) => {
    const read = numberReader(type, order);
    fc.assert(
      fc.property(anyValue(type), fc.nat(9), (value, at) => {
        const inOrder = bytesOf(type, value);
        const letters = LETTERS[order][inOrder.length] ?? "A";
        const wire = Buffer.alloc(at + inOrder.length + 3, 0xa5);
        for (const [i, letter] of [...letters].entries()) wire[at + i] = inOrder[letter.charCodeAt(0) - 65] ?? 0;
        expect(read(wire, at)).toBe(value);
      }),
    );
  });

  it("never reads beyond the bytes", () => {
    for (const type of TYPES)
      for (const order of WORD_ORDERS) expect(() => numberReader(type, order)(Buffer.alloc(NUMBER_BYTES[type] - 1), 0)).toThrow(RangeError);
  });
});

it("tells values from what is no number", () => {
  for (const value of [0, -1.5, true, "NaN", 5n]) expect(notANumber(value)).toBeUndefined();
  expect(notANumber(Number.NaN)).toBe("NaN");
  expect(notANumber(Number.NEGATIVE_INFINITY)).toBe("-Infinity");
});
