import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reading, Value } from "../../src/model/value.ts";
import { typeOf } from "../driver.ts";
import { parseType } from "../lib/step7-types.ts";
import { parseAddress } from "./address.ts";
import { decoderOf } from "./decode.ts";
import { settingsSchema } from "./settings.ts";

const SETTINGS = settingsSchema.parse({});

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
function decode(word: string, bytes: Buffer, address = "DB1.DBX0.0", settings = SETTINGS): Reading {
  const parsed = parseAddress(address, typeOf({ parseType }, word), settings);
  return decoderOf(parsed.address, parsed.type, new Map())(bytes, 0, { quality: "good", value: 0 });
}
const text = (characters: string) => Buffer.from(characters, "latin1").toString("hex");

// Layouts: protocol notes, 5, after STEP 7's data types (S7-1200 System Manual, 4.4; STEP 7 Programming, B.1).
describe("values", () => {
  it.each<[string, string, Value]>([
    ["BOOL", "01", true],
    ["BOOL[10]", "81 02", [true, false, false, false, false, false, false, true, false, true]],
    ["BYTE", "ff", 255],
    ["SINT", "ff", -1],
    ["CHAR", "e4", "ä"],
    ["CHAR(6)", "41e4 42 20 00 43", "AäB"],
    ["CHAR[3]", "414243", ["A", "B", "C"]],
    ["WORD", "fffe", 65_534],
    ["INT", "fffe", -2],
    ["WCHAR", "20ac", "€"],
    ["DWORD", "fffffffe", 4_294_967_294],
    ["DINT", "fffffffe", -2],
    ["REAL", "41480000", 12.5],
    ["REAL[2]", "41480000 c1480000", [12.5, -12.5]],
    ["LWORD", "fffffffffffffffe", 18_446_744_073_709_551_614n],
    ["LINT", "0020000000000001", 9_007_199_254_740_993n],
    ["LREAL", "3ff8000000000000", 1.5],
    ["STRING[10]", `0a 05 ${text("Grün!")} 5858585858`, "Grün!"],
    ["STRING[4]", `04 09 ${text("abcd")}`, "abcd"],
    ["STRING[4]", `fe 03 ${text("abcd")}`, "abc"],
    ["STRING[4]", "00 fe 58585858", ""],
    ["string(3)[2]", `03 02 ${text("ab_")}00 03 03 ${text("xyz")}`, ["ab", "xyz"]],
    ["WSTRING[3]", "0003 0002 20ac 0041 0058", "€A"],
    ["WSTRING[2]", "ffff ffff 0041 0042", "AB"],
    ["TIME", "ffffffff", -1],
    ["LTIME", "ffffffffffffffff", -1n],
    ["DATE", "0000", "1990-01-01"],
    ["DATE", "34a2", "2026-11-22"],
    ["TOD", "0337f980", 54_000_000],
    ["LTOD", "0000000000000001", 1n],
    ["DT", "26 11 22 16 30 00 12 31", "2026-11-22T16:30:00.123"],
    ["DT", "90 01 01 00 00 00 00 02", "1990-01-01T00:00:00.000"],
    ["DT", "89 12 31 23 59 59 99 97", "2089-12-31T23:59:59.999"],
    ["DTL", "07ea 0b 16 01 10 1e 00 075bcd15", "2026-11-22T16:30:00.123456789"],
    ["LDT", "0000000000000001", "1970-01-01T00:00:00.000000001"],
    ["LDT", "ffffffffffffffff", "1969-12-31T23:59:59.999999999"],
    ["S5TIME", "0127", 1270],
    ["S5TIME", "3999", 9_990_000],
    ["COUNTER", "0999", 999],
    ["BYTE_BCD", "42", 42],
    ["BCD", "1998", 1998],
    ["LBCD", "12345678", 12_345_678],
    ["LWORD_BCD", "9999999999999999", 9_999_999_999_999_999n],
    // Statement List for S7-300 and S7-400, BTI: +915 and, with the sign F, -157.
    ["BCD16", "0915", 915],
    ["BCD16", "f157", -157],
    ["BCD32", "f9999999", -9_999_999],
    ["BCD[2]", "0042 9999", [42, 9999]],
    ["CHAR", "80", "€"],
    ["STRING[4]", "04 03 93 41 94", "“A”"],
    // Halves of surrogate pairs, alone and within a text.
    ["WCHAR", "d83d", "\ufffd"],
    ["WCHAR[2]", "d83d de42", ["\ufffd", "\ufffd"]],
    ["WSTRING[3]", "0003 0003 d83d de42 d83d", "🙂\ufffd"],
  ])("%s %s", (word, bytes, value) => expect(decode(word, hex(bytes))).toEqual({ quality: "good", value }));

  it.each([
    ["CHAR(4)", "b1c3 2031", "泵 1"],
    ["STRING[4]", "04 04 b1c3 2031", "泵 1"],
  ])("reads %s in the encoding of the source", (word, bytes, value) => {
    const settings = settingsSchema.parse({ encoding: "gbk" });
    expect(decode(word, hex(bytes), "DB1.DBB0", settings)).toEqual({ quality: "good", value });
  });

  it("takes the bit that the address names", () => {
    expect([0, 1, 2, 3, 4, 5, 6, 7].map((bit) => decode("BOOL", hex("a5"), `M0.${bit}`))).toEqual(
      [1, 0, 1, 0, 0, 1, 0, 1].map((bit) => ({ quality: "good", value: bit === 1 })),
    );
    expect(decode("BOOL[3]", hex("c001"), "DB1.DBX0.6")).toEqual({ quality: "good", value: [true, true, true] });
  });

  it.each([
    ["BCD", "12a4", "0x12a4 is not a value of type WORD_BCD"],
    ["BCD16", "1234", "0x1234 is not a value of type BCD16"],
    ["LBCD[2]", "00000001 0000000f", "element 1: 0x0000000f is not a value of type DWORD_BCD"],
    ["REAL", "7fc00000", "NaN"],
    ["LREAL", "fff0000000000000", "-Infinity"],
    ["S5TIME", "0a00", "0x0a00 is not a value of type S5TIME"],
    ["COUNTER[2]", "0001 00f0", "element 1: 0x00f0 is not a value of type COUNTER"],
    ["DT", "0000000000000000", "0x0000000000000000 is not a value of type DT"],
    ["DT", "26 02 29 00 00 00 00 01", "0x2602290000000001 is not a value of type DT"],
    ["DT", "2a 01 01 00 00 00 00 01", "0x2a01010000000001 is not a value of type DT"],
    ["DTL", "000000000000000000000000", "0x000000000000000000000000 is not a value of type DTL"],
    ["DTL", "07ea 0b 1f 01 10 1e 00 00000000", "0x07ea0b1f01101e0000000000 is not a value of type DTL"],
  ])("%s %s is a fault, with its bytes", (word, bytes, detail) =>
    expect(decode(word, hex(bytes))).toEqual({ quality: "bad", fault: "not_a_number", detail }),
  );

  it("one infinity in an array is that element's, and loses no other", () =>
    expect(decode("REAL[2]", hex("41480000 7f800000"))).toEqual({ quality: "good", value: [12.5, Number.POSITIVE_INFINITY] }));

  it("never fails over bytes, whatever they are", () => {
    const words = [
      "BOOL[9]",
      "CHAR(30)",
      "BYTE_BCD",
      "BCD",
      "LBCD",
      "LWORD_BCD",
      "BCD16",
      "BCD32",
      "WCHAR",
      "STRING[30]",
      "WSTRING[14]",
      "DATE",
      "DT[3]",
      "LDT",
      "DTL[2]",
      "S5TIME",
      "COUNTER",
      "REAL",
      "LTOD",
    ];
    fc.assert(
      fc.property(fc.constantFrom(...words), fc.uint8Array({ minLength: 32, maxLength: 32 }), (word, bytes) => {
        const reading = decode(word, Buffer.from(bytes));
        if (reading.quality === "bad") expect(reading.fault).toBe("not_a_number");
        else expect(JSON.stringify(reading.value, (_, one) => (typeof one === "bigint" ? String(one) : one))).toBeDefined();
      }),
      { numRuns: 2000 },
    );
  });
});
