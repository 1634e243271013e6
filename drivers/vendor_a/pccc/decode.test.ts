import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDataType } from "../../../src/model/value.ts";
import { parseType } from "../address.ts";
import { fileWire, parseFileAddress } from "./address.ts";
import { fileDecoder } from "./decode.ts";
import type { FileFamily } from "./files.ts";
import { placeOf } from "./place.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

function read(
  text: string,
  bytes: Buffer,
  { type, family = "slc", isRaw = false }: { type?: string; family?: FileFamily; isRaw?: boolean } = {},
) {
  const wanted = type === undefined ? undefined : (parseDataType(type) ?? parseType(type));
  const parsed = parseFileAddress(text, wanted, "windows-1252");
  const place = placeOf(parsed.address, family);
  const reading = fileDecoder({ ...parsed.address, ...(isRaw && { isRaw: true as const }) }, parsed.type, place)(bytes, 0, {
    quality: "good",
    value: 0,
  });
  return reading.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading.value;
}

describe("elements of data files", () => {
  it.each<[string, string, unknown]>([
    ["N7:0", "ff ff", -1],
    ["N7:0{2}", "0100 0080", [1, -32_768]],
    ["B3:0", "00 80", 32_768],
    ["B3:0/15", "00 80", true],
    ["B3:0/7", "00 80", false],
    ["L10:0", "00 6c ca 88", -2_000_000_000],
    ["L10:0/31", "00 00 00 80", true],
    ["F8:0", "00 00 ac 41", 21.5],
    ["T4:0.PRE", "0060 f401 7b00", 500],
    ["T4:0.ACC", "0060 f401 7b00", 123],
    ["T4:0/DN", "0020 f401 7b00", true],
    ["T4:0", "0060 f401 7b00", '{"EN":false,"TT":true,"DN":true,"PRE":500,"ACC":123}'],
    ["A11:0{2}", "4241 4443", "ABCD"],
  ])("%s of %s", (text, bytes, value) => expect(read(text, hex(bytes))).toEqual(value));

  it("in a PLC-5 have the words of a float the other way round", () =>
    expect(read("F8:0", hex("ac41 0000"), { family: "plc5" })).toBe(21.5));

  it("are texts whose characters are swapped in each word, as long as they say and have room for", () => {
    const text = (length: number, bytes: string) =>
      Buffer.concat([Buffer.of(length & 0xff, length >> 8), hex(bytes), Buffer.alloc(82)]).subarray(0, 84);
    expect(read("ST9:0", text(2, "4241"))).toBe("AB");
    expect(read("ST9:0", text(3, "4241 0043"))).toBe("ABC");
    expect(read("ST9:0", text(0, ""))).toBe("");
    expect(read("ST9:0", Buffer.concat([hex("ffff"), Buffer.alloc(82, "x")]))).toBe("x".repeat(82));
    expect(read("ST9:0{2}", Buffer.concat([text(2, "4241"), text(1, "0043")]))).toEqual(["AB", "C"]);
  });

  it("give a fault where they are not numbers", () => {
    expect(read("F8:0", hex("0000c07f"))).toBe("not_a_number: NaN");
    expect(read("N7:0", hex("3412"), { type: "BCD" })).toBe(1234);
    expect(read("N7:0", hex("fa12"), { type: "BCD" })).toMatch(/^not_a_number: 0xfa12 is not a number in decimal digits/);
  });

  it("give their bytes as they come on the wire", () => {
    expect(read("T4:0.ACC", hex("0060 f401 7b00"), { isRaw: true })).toEqual([0x7b, 0]);
    expect(read("N7:0{2}", hex("0100 0080"), { isRaw: true })).toEqual([1, 0, 0, 0x80]);
    expect(read("L10:0/31", hex("0102 0304"), { isRaw: true })).toEqual([3, 4]);
    expect(read("L10:0/15", hex("0102 0304"), { isRaw: true })).toEqual([1, 2]);
    const { address } = parseFileAddress("N7:0/3", undefined, "windows-1252");
    expect(fileWire(address)).toBeUndefined();
    expect(fileWire({ ...address, place: placeOf(address, "slc") })).toMatchObject({ form: "the word that holds it", orders: [] });
  });

  it("give values or faults, whatever their bytes (property)", () => {
    const texts = fc.constantFrom("N7:0", "F8:0", "L10:0", "T4:0", "C5:0/CU", "R6:0.POS", "ST9:0", "A11:0", "B3/3", "I:1/3");
    fc.assert(
      fc.property(texts, fc.uint8Array({ minLength: 84, maxLength: 84 }), (text, bytes) => {
        expect(typeof read(text, Buffer.from(bytes))).toMatch(/number|boolean|string/);
      }),
      { numRuns: 1000 },
    );
  });
});
