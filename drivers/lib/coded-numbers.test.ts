import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fitsScalar } from "../../src/model/fits.ts";
import { WORD_ORDERS, type WordOrder } from "./bytes.ts";
import { CODINGS, type CodingName, codedReader, codingOf, parseCoded } from "./coded-numbers.ts";

const NAMES = Object.keys(CODINGS) as CodingName[];
const read = (name: CodingName, hex: string, order: WordOrder = "ABCD") =>
  codedReader(CODINGS[name], order)(Buffer.from(hex.replaceAll(" ", ""), "hex"), 0);

it.each<[CodingName, string, number | bigint]>([
  ["BYTE_BCD", "42", 42],
  ["WORD_BCD", "1234", 1234],
  ["WORD_BCD", "9999", 9999],
  ["DWORD_BCD", "1234 5678", 12_345_678],
  ["LWORD_BCD", "9999 9999 9999 9999", 9_999_999_999_999_999n],
  // Statement List for S7-300 and S7-400, BTI and BTD: +915 and -157, +157821.
  ["BCD16", "0915", 915],
  ["BCD16", "f157", -157],
  ["BCD16", "8157", -157],
  ["BCD16", "f000", 0],
  ["BCD32", "0015 7821", 157_821],
  ["BCD32", "f999 9999", -9_999_999],
  ["MOD10(1)", "270f", 9999],
  ["MOD10(2)", "000c 0d80", 123_456],
  ["MOD10(3)", "0001 0002 0003", 100_020_003n],
  ["MOD10(4)", "270f 270f 270f 270f", 9_999_999_999_999_999n],
  ["INT48", "8000 0000 0000", -(2n ** 47n)],
  ["INT48", "ffff ffff fffe", -2n],
  ["UINT48", "ffff ffff ffff", 2n ** 48n - 1n],
  // IEEE 754-2019, 3.4: one, two, the largest, the smallest normal, the smallest and the largest subnormal number.
  ["FLOAT16", "3c00", 1],
  ["FLOAT16", "c000", -2],
  ["FLOAT16", "7bff", 65_504],
  ["FLOAT16", "0400", 2 ** -14],
  ["FLOAT16", "0001", 2 ** -24],
  ["FLOAT16", "03ff", 2 ** -14 - 2 ** -24],
  ["FLOAT16", "fc00", Number.NEGATIVE_INFINITY],
  ["FLOAT16", "7e00", Number.NaN],
])("reads %s from %s", (name, hex, value) => expect(read(name, hex)).toBe(value));

// Schneider Electric FAQ FA146443: 1700 has 4567 and 1701 has 0123, the lowest digits first: 1,234,567 Wh.
it("reads the energy of the vendor's own example", () => {
  expect(read("MOD10(4)", "11d7 007b 0000 0000", "CDAB")).toBe(1_234_567n);
});

it.each<[CodingName, string]>([
  ["BYTE_BCD", "4a"],
  ["WORD_BCD", "12a4"],
  ["DWORD_BCD", "1234 567f"],
  ["LWORD_BCD", "0000 0000 a000 0000"],
  ["LWORD_BCD", "a000 0000 0000 0000"],
  ["BCD16", "1234"],
  ["BCD16", "0a00"],
  ["BCD32", "0000 00f0"],
  ["MOD10(1)", "2710"],
  ["MOD10(2)", "ffff 0000"],
  ["MOD10(3)", "0000 0000 2710"],
  ["MOD10(4)", "0000 2710 0000 0000"],
])("has no number for %s from %s", (name, hex) => expect(read(name, hex)).toBeUndefined());

/** Most significant byte first, written by texts and DataView. */
function bytesOf(name: CodingName, value: number | bigint): Buffer {
  const { bytes } = CODINGS[name];
  if (name === "FLOAT16") {
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, Number(value));
    const single = view.getUint32(0);
    const exponent = ((single >>> 23) & 0xff) - 127 + 15;
    return Buffer.from([((single >>> 24) & 0x80) | (exponent << 2) | ((single >>> 21) & 3), (single >>> 13) & 0xff]);
  }
  if (name === "INT48" || name === "UINT48") return Buffer.from(BigInt.asUintN(48, BigInt(value)).toString(16).padStart(12, "0"), "hex");
  const digits = String(value).replace("-", "");
  if (name.startsWith("MOD10")) {
    const groups = digits.padStart(bytes * 2, "0").match(/\d{4}/g) ?? [];
    return Buffer.from(groups.map((group) => Number(group).toString(16).padStart(4, "0")).join(""), "hex");
  }
  if (name === "BCD16" || name === "BCD32") return Buffer.from(`${value < 0 ? "f" : "0"}${digits.padStart(bytes * 2 - 1, "0")}`, "hex");
  return Buffer.from(digits.padStart(bytes * 2, "0"), "hex");
}

function anyOf(name: CodingName): fc.Arbitrary<number | bigint> {
  const { bytes, scalar } = CODINGS[name];
  if (name === "FLOAT16")
    return fc
      .tuple(
        fc.integer({ min: -2047, max: 2047 }).filter((n) => Math.abs(n) > 1023),
        fc.integer({ min: -14, max: 4 }),
      )
      .map(([n, e]) => n * 2 ** e);
  if (name === "INT48") return fc.bigInt(-(2n ** 47n), 2n ** 47n - 1n);
  if (name === "UINT48") return fc.bigInt(0n, 2n ** 48n - 1n);
  if (name === "BCD16" || name === "BCD32") return fc.integer({ min: -(10 ** (bytes * 2 - 1)) + 1, max: 10 ** (bytes * 2 - 1) - 1 });
  const most = 10n ** BigInt(bytes * 2) - 1n;
  return fc.bigInt(0n, most).map((value) => (scalar === "uint64" ? value : Number(value)));
}

/** By the letters of the orders: A is the most significant byte. */
const LETTERS: Readonly<Record<WordOrder, readonly string[]>> = {
  ABCD: ["AB", "ABCD", "ABCDEF", "ABCDEFGH"],
  BADC: ["BA", "BADC", "BADCFE", "BADCFEHG"],
  CDAB: ["AB", "CDAB", "EFCDAB", "GHEFCDAB"],
  DCBA: ["BA", "DCBA", "FEDCBA", "HGFEDCBA"],
};

describe.each(NAMES)("%s", (name) => {
  const { bytes, scalar } = CODINGS[name];

  it.each(WORD_ORDERS)("reads what another encoder wrote in the order %s", (order) => {
    const letters = bytes === 1 ? "A" : (LETTERS[order][bytes / 2 - 1] ?? "");
    fc.assert(
      fc.property(anyOf(name), fc.nat(5), (value, at) => {
        const inOrder = bytesOf(name, value);
        const wire = Buffer.alloc(at + bytes, 0xa5);
        for (const [i, letter] of [...letters].entries()) wire[at + i] = inOrder[letter.charCodeAt(0) - 65] ?? 0;
        expect(codedReader(CODINGS[name], order)(wire, at)).toBe(value);
        expect(fitsScalar(scalar, value)).toBe(true);
      }),
    );
  });

  it("gives a value of its type or none, whatever the bytes, and never reads beyond them", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: bytes, maxLength: bytes }), fc.constantFrom(...WORD_ORDERS), (any, order) => {
        const value = codedReader(CODINGS[name], order)(Buffer.from(any), 0);
        const isFloat = name === "FLOAT16" && !Number.isFinite(value);
        expect(value === undefined || isFloat || fitsScalar(scalar, value)).toBe(true);
        expect(() => codedReader(CODINGS[name], order)(Buffer.alloc(bytes), 1)).toThrow(RangeError);
      }),
    );
  });

  it("is found by the word of its type", () => expect(codingOf({ scalar, word: name })).toBe(CODINGS[name]));
});

describe("words", () => {
  const WORDS = new Map<string, CodingName>([
    ["BCD", "WORD_BCD"],
    ["MOD10(4)", "MOD10(4)"],
  ]);

  it.each([
    ["bcd", { scalar: "uint16", word: "WORD_BCD" }],
    ["BCD[8]", { scalar: "uint16", word: "WORD_BCD", count: 8 }],
    ["Mod10(4)[2]", { scalar: "uint64", word: "MOD10(4)", count: 2 }],
  ])("takes %s", (text, type) => expect(parseCoded(text, WORDS)).toEqual(type));

  it.each(["BCD[0]", "BCD[65536]", "BCD(4)", "MOD10", "MOD10(5)", "__proto__", "", "BCD[2x2]"])("does not know %j", (text) => {
    expect(parseCoded(text, WORDS)).toBeUndefined();
  });

  it("has no coding for a word of JavaScript's objects", () => expect(codingOf({ scalar: "uint16", word: "constructor" })).toBeUndefined());
});
