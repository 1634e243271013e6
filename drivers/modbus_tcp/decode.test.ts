import { expect, it } from "vitest";
import { parseDataType } from "../../src/model/value.ts";
import { parseAddress } from "./address.ts";
import { decoderOf, offsetOf } from "./decode.ts";
import { settingsSchema } from "./settings.ts";

/** Reads a variable from the data bytes of an answer that begins at `first`. */
function read(text: string, type: string | undefined, hex: string, first = 0) {
  const parsed = parseAddress(text, type === undefined ? undefined : parseDataType(type), settingsSchema.parse({}));
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
