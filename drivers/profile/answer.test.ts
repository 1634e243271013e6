import { expect, it } from "vitest";
import { BINARY_FORMATS, type BinaryFormat, type ProfileVariable } from "../../src/model/profile.ts";
import type { Value } from "../../src/model/value.ts";
import { rawTypeOf, readingOf } from "./answer.ts";

const inBytes = (format: BinaryFormat, more: Partial<ProfileVariable> = {}): ProfileVariable => ({
  request: "state",
  bytes: { at: 0, format },
  radix: 10,
  ...more,
});
function read(variable: ProfileVariable, hex: string, encoding?: string) {
  return readingOf(variable, Buffer.from(hex.replaceAll(" ", ""), "hex"), rawTypeOf(variable), encoding);
}

it.each<[BinaryFormat, string, string, Value]>([
  ["u16be", "0102", "uint16", 258],
  ["i32le", "feffffff", "int32", -2],
  ["f64be", "3ff8000000000000", "float64", 1.5],
  ["u48be", "000000000102", "uint64", 258n],
  ["u48le", "020100000000", "uint64", 258n],
  ["i48le", "feffffffffff", "int64", -2n],
  ["f16be", "3e00", "float32", 1.5],
  ["f16le", "003e", "float32", 1.5],
  ["bcd8", "42", "uint8", 42],
  ["bcd16be", "1998", "uint16", 1998],
  ["bcd16le", "9819", "uint16", 1998],
  ["bcd32be", "12345678", "uint32", 12_345_678],
  ["bcd32le", "78563412", "uint32", 12_345_678],
  ["bcd64be", "9999999999999999", "uint64", 9_999_999_999_999_999n],
])("reads %s", (format, hex, type, value) => {
  expect(rawTypeOf(inBytes(format))).toBe(type);
  expect(read(inBytes(format), hex)).toEqual({ quality: "good", value });
});

it("refuses bytes that are not a number, and those that the answer does not have", () => {
  expect(read(inBytes("bcd16le"), "a412")).toEqual({
    quality: "bad",
    fault: "not_a_number",
    detail: "0xa412 is not a value of the format bcd16le",
  });
  expect(read(inBytes("f16be"), "7e00")).toEqual({ quality: "bad", fault: "not_a_number", detail: "NaN" });
  for (const format of BINARY_FORMATS) expect(read(inBytes(format), "")).toMatchObject({ quality: "bad", fault: "not_found" });
});

it("scales digits, and takes a bit out of 48", () => {
  expect(read(inBytes("bcd16be", { factor: 0.1 }), "1998")).toEqual({ quality: "good", value: 199.8 });
  expect(read({ request: "state", bytes: { at: 0, format: "u48be", bit: 47 }, radix: 10 }, "800000000000")).toEqual({
    quality: "good",
    value: true,
  });
});

it("reads texts in the encoding of the source", () => {
  const text: ProfileVariable = { request: "state", whole: true, type: "string", radix: 10 };
  expect(read(text, "b1c3 2031", "gbk")).toEqual({ quality: "good", value: "泵 1" });
  expect(read(text, "3520 80")).toEqual({ quality: "good", value: "5 €" });
});
