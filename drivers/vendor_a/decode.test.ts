import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Value } from "../../src/model/value.ts";
import type { CodingName } from "../lib/coded-numbers.ts";
import type { Slot } from "../lib/reused-readings.ts";
import { decoderOf } from "./decode.ts";
import type { Place } from "./locate.ts";
import { ATOMICS, type MemberType, type Structure } from "./types.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

interface As {
  readonly scalar?: Place["scalar"];
  readonly count?: number;
  readonly bit?: number;
  readonly coding?: CodingName;
  readonly encoding?: string;
}

function read(type: MemberType, bytes: Buffer, { scalar, count, bit, ...said }: As = {}) {
  const own = "structure" in type ? "string" : (ATOMICS.get(type.code)?.scalar ?? "string");
  const place: Place = { sources: [], type, scalar: scalar ?? own, count, isAuto: false };
  const source = {
    name: "",
    path: [],
    dimensions: [],
    start: 0,
    count: 1,
    bytes: 0,
    code: 0,
    handle: 0,
    offset: 0,
    ...(bit !== undefined && { bit }),
  };
  const slot: Slot = { quality: "good", value: 0 };
  return decoderOf(place, source, said, new Map())(bytes, 0, bytes.length, slot);
}

const good = (value: Value) => ({ quality: "good", value });

describe("values", () => {
  it.each<[number, string, Value]>([
    [0xc1, "00", false],
    [0xc1, "ff", true],
    [0xc1, "01", true],
    [0xc2, "80", -128],
    [0xc3, "00 80", -32_768],
    [0xc4, "fe ff ff ff", -2],
    [0xc5, "01 00 00 00 00 00 20 00", 9_007_199_254_740_993n],
    [0xc6, "ff", 255],
    [0xc7, "ff ff", 65_535],
    [0xc8, "ff ff ff ff", 4_294_967_295],
    [0xc9, "ff ff ff ff ff ff ff ff", 18_446_744_073_709_551_615n],
    [0xca, "00 00 44 41", 12.25],
    [0xcb, "18 2d 44 54 fb 21 09 40", Math.PI],
    [0xd1, "a5", 165],
    [0xd2, "34 12", 0x1234],
    [0xd3, "78 56 34 12", 0x12345678],
    [0xd4, "01 00 00 00 00 00 00 80", 0x8000000000000001n],
    [0xd0, "03 00 41 62 63", "Abc"],
    [0xda, "03 4d fc 68", "Müh"],
    [0xdb, "10 27 00 00", 10_000],
    [0xd6, "dc 05 00 00", 1.5],
    [0xd7, "60 e3 16 00 00 00 00 00", 1500],
    [0xdf, "01 00 00 00 00 00 20 00", 9_007_199_254_740_993n],
    [0xc0, "40 42 0f 00 00 00 00 00", "1970-01-01T00:00:01.000000"],
    [0xc0, "ff ff ff ff ff ff ff ff", "1969-12-31T23:59:59.999999"],
    [0xcc, "15 cd 5b 07 00 00 00 00", "1970-01-01T00:00:00.123456789"],
  ])("reads the type 0x%s of %s", (code, bytes, value) => {
    expect(read({ code }, hex(bytes))).toEqual(good(value));
  });

  it("reads arrays, bits and numbers as others of their width", () => {
    expect(read({ code: 0xc3 }, hex("0100 ffff 0200"), { count: 3 })).toEqual(good([1, -1, 2]));
    expect(read({ code: 0xc3 }, hex("ffff"), { scalar: "uint16" })).toEqual(good(65_535));
    expect(read({ code: 0xda }, hex("02 4162 00 01 43"), { count: 3 })).toEqual(good(["Ab", "", "C"]));
    expect(read({ code: 0xd3 }, hex("00 02"), { scalar: "bool", bit: 1 })).toEqual(good(false));
    expect(read({ code: 0xd3 }, hex("40 81"), { scalar: "bool", bit: 6, count: 4 })).toEqual(good([true, false, true, false]));
    expect(read({ code: 0xc1 }, hex("00 ff"), { count: 2 })).toEqual(good([false, true]));
  });

  it("reads decimal digits, and texts in the encoding of the source", () => {
    expect(read({ code: 0xc3 }, hex("9819"), { scalar: "uint16", coding: "WORD_BCD" })).toEqual(good(1998));
    expect(read({ code: 0xc4 }, hex("78563412 01000000"), { scalar: "uint32", coding: "DWORD_BCD", count: 2 })).toEqual(
      good([12_345_678, 1]),
    );
    expect(read({ code: 0xc3 }, hex("a412"), { scalar: "uint16", coding: "WORD_BCD" })).toEqual({
      quality: "bad",
      fault: "not_a_number",
      detail: "0xa412 is not a value of type WORD_BCD",
    });
    expect(read({ code: 0xda }, hex("04 b1c3 2031"), { encoding: "gbk" })).toEqual(good("泵 1"));
    expect(read({ code: 0xda }, hex("01 80"))).toEqual(good("€"));
    const text: Structure = { id: 0xfce, name: "STRING", handle: 0xfce, bytes: 12, members: [], chars: 6 };
    expect(read({ structure: text }, hex("02000000 837c 00000000 0000"), { encoding: "shift_jis" })).toEqual(good("ポ"));
  });

  it("refuses what is no value", () => {
    expect(read({ code: 0xca }, hex("0000c07f"))).toMatchObject({ fault: "not_a_number", detail: "NaN" });
    expect(read({ code: 0xca }, hex("0000803f 0000807f"), { count: 2 })).toEqual(good([1, Number.POSITIVE_INFINITY]));
    expect(read({ code: 0xc0 }, hex("ffffffffffffff7f"))).toMatchObject({ fault: "not_a_number" });
    expect(read({ code: 0xda }, hex("05 4142"))).toMatchObject({ fault: "device_error" });
  });
});

const STRING: Structure = { id: 0xfce, name: "STRING", handle: 0xfce, bytes: 12, members: [], chars: 6 };
const INNER: Structure = {
  id: 2,
  name: "Inner",
  handle: 2,
  bytes: 4,
  members: [
    { name: "Host", offset: 0, type: { code: 0xc2 }, isHidden: true },
    { name: "On", offset: 0, type: { code: 0xc1 }, bit: 3, isHidden: false },
    { name: "Count", offset: 2, type: { code: 0xc3 }, isHidden: false },
  ],
};
const OUTER: Structure = {
  id: 3,
  name: "Outer",
  handle: 3,
  bytes: 40,
  members: [
    { name: "Level", offset: 0, type: { code: 0xca }, isHidden: false },
    { name: "Serial", offset: 8, type: { code: 0xc5 }, isHidden: false },
    { name: "Inner", offset: 16, type: { structure: INNER }, count: 2, isHidden: false },
    { name: "Name", offset: 24, type: { structure: STRING }, isHidden: false },
    { name: "__proto__", offset: 36, type: { code: 0xc2 }, isHidden: false },
    { name: "Odd", offset: 37, type: { code: 0xbe }, isHidden: false },
  ],
};

describe("structures", () => {
  it("are JSON, with all digits, short floats, and without what only carries others", () => {
    const bytes = hex("cdcccc3d 00000000 0100000000002000 08000100 0000feff 03000000 4162634445460000 07 000000");
    expect(read({ structure: OUTER }, bytes)).toEqual(
      good('{"Level":0.1,"Serial":9007199254740993,"Inner":[{"On":true,"Count":1},{"On":false,"Count":-2}],"Name":"Abc","__proto__":7}'),
    );
    bytes.writeFloatLE(Number.NaN, 0);
    expect(read({ structure: OUTER }, bytes)).toMatchObject({ value: expect.stringContaining('"Level":null') });
  });

  it("that are strings have at most what they have room for", () => {
    expect(read({ structure: STRING }, hex("03000000 4142434445460000"))).toEqual(good("ABC"));
    expect(read({ structure: STRING }, hex("ffff0000 4142434445460000"))).toEqual(good("ABCDEF"));
    expect(read({ structure: STRING }, hex("ffffffff 4142434445460000"))).toEqual(good(""));
    expect(read({ structure: STRING }, hex("01000000 4142434445460000 02000000 5859000000000000"), { count: 2 })).toEqual(
      good(["A", "XY"]),
    );
  });

  it("never fail over bytes of the right length", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 40, maxLength: 40 }), (bytes) => {
        const reading = read({ structure: OUTER }, Buffer.from(bytes));
        if (reading.quality === "good") JSON.parse(String(reading.value));
      }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...ATOMICS.keys()), fc.uint8Array({ minLength: 32, maxLength: 32 }), (code, bytes) => {
        expect(["good", "bad"]).toContain(read({ code }, Buffer.from(bytes)).quality);
      }),
    );
  });
});
