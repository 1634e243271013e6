import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { typeOf } from "../driver.ts";
import type { Slot } from "../lib/reused-readings.ts";
import { parseAddress } from "./address.ts";
import { type Layout, placeOf } from "./areas.ts";
import { decoderOf } from "./decode.ts";
import { settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";

const SETTINGS = settingsSchema.parse({});

/** What the words of a variable say, in hexadecimal as they come. */
function read(text: string, words: string, settings = SETTINGS, layout: Layout = "cs") {
  const [name = "", word] = text.split(":");
  const { address, type } = parseAddress(name, word === undefined ? undefined : typeOf({ parseType }, word), settings);
  const slot: Slot = { quality: "good", value: 0 };
  const data = Buffer.from(`ffff${words.replaceAll(" ", "")}ffff`, "hex");
  const place = placeOf(address, layout);
  if (typeof place === "string") throw new Error(place);
  const reading = decoderOf({ ...address, place }, type.count, new Map())(data, 2, slot);
  if (reading.quality === "bad") return `${reading.fault}: ${reading.detail}`;
  expect(reading).toBe(slot);
  return reading.value;
}

// Protocol notes, 4.3: words are big-endian, and the low word of a longer value comes first.
describe("values", () => {
  it.each([
    ["D0", "1234", 0x1234],
    ["D0:INT", "fffe", -2],
    ["D0:SINT", "12fe", -2],
    ["D0:USINT", "12fe", 254],
    ["D0:UDINT", "5678 1234", 0x12345678],
    ["D0:DINT", "fffe ffff", -2],
    ["D0:REAL", "0000 41ac", 21.5],
    ["D0:LINT", "0001 0000 0000 8000", -0x7fff_ffff_ffff_ffffn],
    ["D0:ULINT", "def0 9abc 5678 1234", 0x123456789abcdef0n],
    ["D0:LREAL", "0000 0000 8000 4035", 21.5],
    ["D0:BCD", "1998", 1998],
    ["D0:UDINT_BCD", "5678 1234", 12_345_678],
    ["D0:LBCD", "5678 1234", 12_345_678],
    ["D0:ULINT_BCD", "3456 9012 5678 1234", 1_234_567_890_123_456n],
    ["D0:ULINT_BCD", "9999 9999 9999 9999", 9_999_999_999_999_999n],
    ["D0:string(6)", "4265 7274 6100", "Berta"],
    ["D0:string(5)", "4265 7274 61ff", "Berta"],
    ["D0:string(4)[2]", "4142 4300 5859 5a20", ["ABC", "XYZ"]],
    ["D0[3]", "0001 0002 ffff", [1, 2, 65_535]],
    ["D0:DINT[2]", "0001 0000 ffff ffff", [1, -1]],
    ["D0:BCD[2]", "0042 9999", [42, 9999]],
    ["D0.00", "0001", true],
    ["D0.00", "fffe", false],
    ["D0.07", "0080", true],
    ["D0.08", "0100", true],
    ["D0.15", "8000", true],
    ["D0.15", "7fff", false],
    ["D0.14[4]", "4000 0002", [true, false, false, true]],
    ["T5", "0123", 123],
    ["T5:UINT", "0123", 0x123],
    ["T5:BOOL", "01", true],
    ["T5:BOOL", "00", false],
    ["T5:BOOL", "fe", false],
    ["T5:BOOL[3]", "01 00 01", [true, false, true]],
    ["IR0", "0001 0064", 0x1_0064],
    ["IR15", "fedc ba98", 0xfedc_ba98],
    ["IR0[2]", "0000 c000 0001 ffff", [0xc000, 0x1_ffff]],
    ["DR0", "1234", 0x1234],
    ["DR0:INT[2]", "fffe 0007", [-2, 7]],
  ])("%s of %s", (text, words, value) => expect(read(text, words)).toEqual(value));

  it("reads index registers of one word where the controller has those (CV)", () => {
    expect([read("IR0", "ba98", SETTINGS, "cv"), read("IR0[2]", "0001 c000", SETTINGS, "cv")]).toEqual([0xba98, [1, 0xc000]]);
  });

  it("reads texts in the encoding of the source", () => {
    expect(read("D0:string(4)", "837c 8393", settingsSchema.parse({ encoding: "shift_jis" }))).toBe("ポン");
    expect(read("D0:string(4)", "3520 8000")).toBe("5 €");
  });

  it.each([
    ["D0:BCD", "12a4", /^not_a_number: 0x12a4 is not a value of type UINT_BCD$/],
    ["D0:UDINT_BCD", "f678 1234", /^not_a_number: 0xf6781234 is not/],
    ["D0:ULINT_BCD", "0000 0000 0000 a000", /ULINT_BCD/],
    ["D0:BCD[2]", "0042 99f9", /^not_a_number: element 1: 0x99f9 is not/],
    ["D0:REAL", "0000 7fc0", /^not_a_number: NaN$/],
    ["D0:LREAL", "0000 0000 0000 7ff0", /^not_a_number: Infinity$/],
  ])("%s of %s is a fault", (text, words, detail) => expect(read(text, words)).toMatch(detail));

  it("reads every BCD number as its digits", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 99_999_999 }), (number) => {
        const digits = String(number).padStart(8, "0");
        expect(read("D0:UDINT_BCD", digits.slice(4) + digits.slice(0, 4))).toBe(number);
      }),
    );
  });
});
