import { expect, it } from "vitest";
import { typeOf } from "../driver.ts";
import { parseAddress } from "./address.ts";
import { decoderOf, offsetOf } from "./decode.ts";
import { settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";

/** Reads a variable from the data bytes of an answer that begins at `first`. */
function read(text: string, type: string | undefined, hex: string, first = 0, settings: object = {}) {
  const parsed = parseAddress(text, type === undefined ? undefined : typeOf({ parseType }, type), settingsSchema.parse(settings));
  const decode = decoderOf(parsed.address, parsed.type, new Map());
  return decode(Buffer.from(hex.replaceAll(" ", ""), "hex"), offsetOf(parsed.address, parsed.type, first), { quality: "good", value: 0 });
}

it.each([
  ["holding:0", "uint16", "ffff", 65_535],
  ["holding:0@BADC", "uint16", "0100", 1],
  ["holding:0@CDAB", "uint16", "0100", 256],
  ["holding:1", "int16", "0000 fff9", -7],
  // An 8-bit value is the low byte of its register.
  ["holding:0", "uint8", "12f4", 0xf4],
  ["holding:0", "int8", "12f4", -12],
  ["holding:0@BADC", "int8", "f412", -12],
  ["holding:0[2]", "int8", "12f4 0001", [-12, 1]],
  ["holding:0", "int32", "88ca 6c00", -2_000_000_000],
  ["holding:0@CDAB", "float32", "0000 3fc0", 1.5],
  ["holding:0", "uint64", "0020 0000 0000 0001", 9_007_199_254_740_993n],
  ["holding:0", "float32[2]", "3fc0 0000 bf80 0000", [1.5, -1]],
  // MODBUS Application Protocol V1.1b3, 6.1: the first coil is the lowest bit of the first byte.
  ["coil:0", undefined, "cd6b05", true],
  ["coil:1", undefined, "cd6b05", false],
  ["coil:8[4]", undefined, "cd6b05", [true, true, false, true]],
  ["holding:0.0", undefined, "8005", true],
  ["holding:0.1", undefined, "8005", false],
  ["holding:0.15", undefined, "8005", true],
  ["holding:0.15@BADC", undefined, "0580", true],
  ["holding:0.8@BADC", undefined, "0580", false],
  ["holding:0.14[4]", undefined, "8005 0002", [false, true, false, true]],
  ["holding:0", "string(4)", "4142 4344", "ABCD"],
  ["holding:0@DCBA", "string(4)", "4241 4443", "ABCD"],
  ["holding:0@BADC", "string(3)", "4241 4443", "ABC"],
  ["holding:0", "string(3)", "4142 4344", "ABC"],
  ["holding:0[2]", "string(3)", "4142 4300 4445 4600", ["ABC", "DEF"]],
  ["holding:0", "BCD", "1998", 1998],
  ["holding:0@BADC", "BCD", "9819", 1998],
  ["holding:0", "LBCD", "1234 5678", 12_345_678],
  ["holding:0@CDAB", "LBCD", "5678 1234", 12_345_678],
  ["holding:0@DCBA", "UDINT_BCD", "7856 3412", 12_345_678],
  ["holding:0", "LWORD_BCD", "9999 9999 9999 9999", 9_999_999_999_999_999n],
  ["holding:0[3]", "BCD", "0000 0042 9999", [0, 42, 9999]],
  // Schneider Electric FAQ FA146443: registers 1700 to 1703 of a PM800 hold 1,234,567 Wh, the lowest digits first.
  ["holding:0@CDAB", "MOD10(4)", "11d7 007b 0000 0000", 1_234_567n],
  ["holding:0", "MOD10(4)", "0000 0000 007b 11d7", 1_234_567n],
  ["holding:0", "MOD10(3)", "0001 0000 0001", 100_000_001n],
  ["holding:0", "MOD10(2)", "04d2 162e", 12_345_678],
  ["holding:0", "MOD10(1)", "270f", 9999],
  ["holding:0", "INT48", "ffff ffff fffe", -2n],
  ["holding:0@CDAB", "INT48", "fffe ffff ffff", -2n],
  ["holding:0@BADC", "UINT48", "0100 0000 0200", 4_294_967_298n],
  ["holding:0@DCBA", "UINT48", "0200 0000 0100", 4_294_967_298n],
  ["holding:0[2]", "UINT48", "0000 0000 0001 ffff ffff ffff", [1n, 281_474_976_710_655n]],
  ["holding:0", "FLOAT16", "3555", 0.333_251_953_125],
  ["holding:0@BADC", "HALF", "00c0", -2],
  ["holding:0[2]", "float16", "3c00 7e00", [1, Number.NaN]],
  ["input:0.3", undefined, "0008", true],
  ["holding:0.0", "bool[16]", "8001", [true, ...Array.from({ length: 14 }, () => false), true]],
  ["holding:0", "string(4)", "3520 8000", "5 €"],
])("reads %s %s from %s", (text, type, hex, value) => {
  expect(read(text, type, hex)).toEqual({ quality: "good", value });
});

it("finds its place in an answer that begins before it", () => {
  expect(read("holding:12", "uint16", "0000 0000 0007", 10)).toEqual({ quality: "good", value: 7 });
  expect(read("holding:11.4", undefined, "0000 0010", 10)).toEqual({ quality: "good", value: true });
  expect(read("coil:19", undefined, "00 02", 10)).toEqual({ quality: "good", value: true });
});

it.each([
  ["holding:0", "float32", "7fc0 0000", "NaN"],
  ["holding:0", "float32", "ff80 0000", "-Infinity"],
  ["holding:0", "float64", "7ff0 0000 0000 0000", "Infinity"],
])("says that %s %s from %s is no number", (text, type, hex, detail) => {
  expect(read(text, type, hex)).toEqual({ quality: "bad", fault: "not_a_number", detail });
});

it("one NaN in an array is that element's, and loses no other", () => {
  expect(read("holding:0[2]", "float32", "3fc0 0000 7fc0 0000")).toEqual({ quality: "good", value: [1.5, Number.NaN] });
});

it.each([
  ["holding:0", "BCD", "12a4", "0x12a4 is not a value of type WORD_BCD"],
  ["holding:0@CDAB", "LBCD", "567f 1234", "0x567f1234 is not a value of type DWORD_BCD"],
  ["holding:0[2]", "BCD", "0042 99f9", "element 1: 0x99f9 is not a value of type WORD_BCD"],
  ["holding:0", "MOD10(2)", "0001 2710", "0x00012710 is not a value of type MOD10(2)"],
  ["holding:0", "MOD10(4)", "ffff 0000 0000 0000", "0xffff000000000000 is not a value of type MOD10(4)"],
  ["holding:0", "FLOAT16", "7c00", "Infinity"],
])("says that %s %s has no number in %s", (text, type, hex, detail) => {
  expect(read(text, type, hex)).toEqual({ quality: "bad", fault: "not_a_number", detail });
});

it.each([
  ["gbk", "b1c3 2031", "泵 1"],
  ["shift_jis", "837c 8393", "ポン"],
  ["windows-1251", "cde0 f1ee", "Насо"],
  ["utf-16be", "6cf5 0000", "泵"],
  ["latin1", "8000 0000", "€"],
])("reads a text in %s", (encoding, hex, value) => {
  expect(read("holding:0", "string(4)", hex, 0, { encoding })).toEqual({ quality: "good", value });
  const swapped = Buffer.from(hex.replace(" ", ""), "hex").swap16().toString("hex");
  expect(read("holding:0@BADC", "string(4)", swapped, 0, { encoding })).toEqual({ quality: "good", value });
});

it("keeps decoders of other codings and encodings apart", () => {
  const known = new Map();
  const decoders = [
    ["WORD_BCD", {}],
    ["uint16", {}],
    ["MOD10(1)", {}],
    ["string(2)", {}],
    ["string(2)", { encoding: "gbk" }],
  ].map(([type, settings]) => {
    const parsed = parseAddress("holding:0", typeOf({ parseType }, String(type)), settingsSchema.parse(settings));
    return decoderOf(parsed.address, parsed.type, known);
  });
  expect(new Set(decoders).size).toBe(decoders.length);
});
