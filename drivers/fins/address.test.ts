import { describe, expect, it } from "vitest";
import type { DataType } from "../../src/model/value.ts";
import { typeOf } from "../driver.ts";
import { type FinsVariable, parseAddress, wireOf } from "./address.ts";
import { type Area, classicLayout, isNewer, type Layout, placeOf } from "./areas.ts";
import { settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";

const SETTINGS = settingsSchema.parse({});

const parse = (text: string) => {
  const [address = "", word] = text.split(":");
  const type = word === undefined ? undefined : typeOf({ parseType }, word);
  if (word !== undefined && !type) throw new Error(`${word} is no type`);
  return parseAddress(address, type, SETTINGS);
};
const short = ({ address, type }: { readonly address: FinsVariable; readonly type: DataType }): string => {
  const { area, bank, start, count, isFlag, bit, kind } = address;
  const place = `${area}${bank === undefined ? "" : `${bank}_`}${start}+${count}`;
  return [place, kind, ...(kind === "BOOL" && !isFlag ? [`bit ${bit}`] : []), ...(type.count ? [`[${type.count}]`] : [])].join(" ");
};

describe("addresses", () => {
  it.each([
    ["D100", "D100+1 UINT"],
    ["d100", "D100+1 UINT"],
    [" DM100 ", "D100+1 UINT"],
    ["D100[8]", "D100+8 UINT [8]"],
    ["D100:INT", "D100+1 INT"],
    ["D100:int16[8]", "D100+8 INT [8]"],
    ["D100[8]:int16[8]", "D100+8 INT [8]"],
    ["D100:REAL", "D100+2 REAL"],
    ["D100:LREAL", "D100+4 LREAL"],
    ["D100:ULINT[2]", "D100+8 ULINT [2]"],
    ["D100:USINT", "D100+1 USINT"],
    ["D100:BCD", "D100+1 UINT_BCD"],
    ["D100:UDINT_BCD[3]", "D100+6 UDINT_BCD [3]"],
    ["D100:ULINT_BCD", "D100+4 ULINT_BCD"],
    ["D100:CHANNEL", "D100+1 UINT"],
    ["D100:string(12)", "D100+6 STRING"],
    ["D100:STRING[5]", "D100+3 STRING"],
    ["D100:string(5)[4]", "D100+12 STRING [4]"],
    ["D100.03", "D100+1 BOOL bit 3"],
    ["D100.3", "D100+1 BOOL bit 3"],
    ["D100.15:BOOL", "D100+1 BOOL bit 15"],
    ["D100.12[5]", "D100+2 BOOL bit 12 [5]"],
    ["D100.00:BOOL[16]", "D100+1 BOOL bit 0 [16]"],
    ["CIO100.01", "CIO100+1 BOOL bit 1"],
    ["WR10", "W10+1 UINT"],
    ["HR5", "H5+1 UINT"],
    ["AR12", "A12+1 UINT"],
    ["LR7", "L7+1 UINT"],
    ["L7", "L7+1 UINT"],
    ["G255", "G255+1 UINT"],
    ["E0_100", "E0_100+1 UINT"],
    ["EM0_100", "E0_100+1 UINT"],
    ["EC_7.07", "E12_7+1 BOOL bit 7"],
    ["e18_5", "E24_5+1 UINT"],
    ["E100", "E100+1 UINT"],
    ["EM100", "E100+1 UINT"],
    ["T5", "T5+1 UINT_BCD"],
    ["TIM005", "T5+1 UINT_BCD"],
    ["C3", "C3+1 UINT_BCD"],
    ["CNT3", "C3+1 UINT_BCD"],
    ["T5:UINT", "T5+1 UINT"],
    ["T5:uint16[3]", "T5+3 UINT [3]"],
    ["T5:BOOL", "T5+1 BOOL"],
    ["C3:BOOL[20]", "C3+20 BOOL [20]"],
    ["D65535", "D65535+1 UINT"],
    ["IR0", "IR0+1 UDINT"],
    ["ir05", "IR5+1 UDINT"],
    ["IR15:UDINT", "IR15+1 UDINT"],
    ["IR0:DWORD", "IR0+1 UDINT"],
    ["IR0[16]", "IR0+16 UDINT [16]"],
    ["IR4:uint32[3]", "IR4+3 UDINT [3]"],
    ["DR0", "DR0+1 UINT"],
    ["DR15:INT", "DR15+1 INT"],
    ["DR3:BCD", "DR3+1 UINT_BCD"],
    ["DR0[16]", "DR0+16 UINT [16]"],
  ])("reads %s", (text, expected) => expect(short(parse(text))).toBe(expected));

  it.each([
    ["100", "address_invalid", /write CIO100$/],
    ["IR16", "address_invalid", /write CIO16$/],
    ["IR100", "address_invalid", /write CIO100$/],
    ["IR010", "address_invalid", /write IR10 for the index register of a CS or CJ, or CIO10 for the word of a C200H/],
    ["IR05.03", "address_invalid", /write CIO5\.03$/],
    ["IR14[3]", "address_invalid", /ends at IR16, the last one is IR15/],
    ["DR16", "address_invalid", /the number is 16, the last register is DR15/],
    ["DR0.03", "address_invalid", /expected for example/],
    ["IR0:INT", "type_mismatch", /an index register is a UDINT \(uint32\), a memory address, not int16/],
    ["IR0:DINT", "type_mismatch", /not int32/],
    ["IR0:UDINT_BCD", "type_mismatch", /not uint32/],
    ["DR0:REAL", "type_mismatch", /a data register has one word: INT, UINT or BCD, not float32/],
    ["DR0:BOOL", "type_mismatch", /a data register has one word/],
    ["X100", "address_invalid", /expected for example/],
    ["D", "address_invalid", /expected for example/],
    ["D-1", "address_invalid", /expected for example/],
    ["DM 100", "address_invalid", /write D100$/],
    ["CONSTRUCTOR1", "address_invalid", /expected for example/],
    ["D65536", "address_invalid", /the number is 65536/],
    ["D65535:DINT", "address_invalid", /it ends at D65536, the last one is D65535/],
    ["D100.16", "address_invalid", /the bit is 16/],
    ["E19_0", "address_invalid", /the bank is 19, banks are 0 to 18 in hexadecimal/],
    ["T5.01", "address_invalid", /T5 of type BOOL is the completion flag/],
    ["D100[0]", "address_invalid", /the count is 0/],
    ["D100:BOOL", "type_mismatch", /a BOOL needs its bit, for example D100.00/],
    ["D100.03:INT", "type_mismatch", /a bit is a BOOL, not int16; leave out .03/],
    ["D100[8]:int16[4]", "type_mismatch", /the address counts 8 elements and the type 4/],
    ["D100:string", "type_mismatch", /a string needs its length/],
    ["D100:int16[2x4]", "type_mismatch", /one dimension/],
    ["T5:REAL", "type_mismatch", /a timer or counter has one word/],
    ["T5:string(4)", "type_mismatch", /a timer or counter has one word/],
  ])("refuses %s", (text, fault, words) => {
    expect(() => parse(text)).toThrow(words);
    expect(() => parse(text)).toThrow(expect.objectContaining({ fault }));
  });
});

describe("types", () => {
  it.each(["BCD", "uint_bcd", "WORD_BCD", "BCD8", "UDINT_BCD", "dword_bcd", "ULINT_BCD", "LWORD_BCD", "CHANNEL"])("knows %s", (word) => {
    expect(parseType(word)).toMatchObject({ word: expect.stringMatching(/^U/) });
    expect(parseType(`${word}[4]`)?.count).toBe(4);
  });
  it.each(["BCD[0]", "BCD[65536]", "BCD(4)", "S5TIME", "constructor", "", "REAL"])("leaves %s alone", (word) =>
    expect(parseType(word)).toBeUndefined(),
  );
});

const place = (area: Area, start: number, layout: Layout, more: { bank?: number; isFlag?: boolean; count?: number } = {}): string => {
  const found = placeOf({ area, start, bank: more.bank, isFlag: more.isFlag ?? false, count: more.count ?? 1 }, layout);
  return typeof found === "string" ? found : `${found.code.toString(16)} ${(found.base + start).toString(16).padStart(4, "0")}`;
};

// Protocol notes, 4.1 and 4.2.
describe("areas on the wire", () => {
  it.each<[Area, number, string, { bank?: number; isFlag?: boolean }?]>([
    ["CIO", 100, "b0 0064"],
    ["W", 10, "b1 000a"],
    ["H", 5, "b2 0005"],
    ["A", 401, "b3 0191"],
    ["T", 5, "89 0005"],
    ["C", 3, "89 8003"],
    ["T", 5, "9 0005", { isFlag: true }],
    ["C", 3, "9 8003", { isFlag: true }],
    ["D", 32_767, "82 7fff"],
    ["E", 100, "a0 0064", { bank: 0 }],
    ["E", 100, "ac 0064", { bank: 0xc }],
    ["E", 100, "ad 0064", { bank: 0xd }],
    ["E", 100, "af 0064", { bank: 0xf }],
    ["E", 100, "60 0064", { bank: 0x10 }],
    ["E", 100, "68 0064", { bank: 0x18 }],
    ["E", 100, "98 0064"],
    ["IR", 0, "dc 0100"],
    ["IR", 15, "dc 010f"],
    ["DR", 15, "bc 020f"],
  ])("of CS1 and newer: %s%i is %s", (area, start, expected, more) => expect(place(area, start, "cs", more)).toBe(expected));

  it.each<[Layout, Area, number, string, { bank?: number; isFlag?: boolean }?]>([
    ["c", "CIO", 255, "80 00ff"],
    ["c", "L", 0, "80 03e8"],
    ["c", "H", 0, "80 0428"],
    ["c", "A", 27, "80 04a7"],
    ["c", "T", 511, "81 01ff"],
    ["c", "C", 511, "81 01ff"],
    ["c", "C", 5, "1 0005", { isFlag: true }],
    ["c", "D", 9999, "82 270f"],
    ["cv", "CIO", 2555, "80 09fb"],
    ["cv", "G", 255, "80 0aff"],
    ["cv", "A", 0, "80 0b00"],
    ["cv", "A", 511, "80 0cff"],
    ["cv", "T", 1023, "81 03ff"],
    ["cv", "C", 0, "81 0800"],
    ["cv", "C", 3, "1 0803", { isFlag: true }],
    ["cv", "E", 5, "97 0005", { bank: 7 }],
    ["cv", "E", 5, "98 0005"],
    ["cv", "IR", 2, "9c 0002"],
    ["cv", "DR", 0, "9c 0003"],
    ["cv", "DR", 2, "9c 0005"],
    ["unknown", "D", 5, "82 0005"],
    ["unknown", "CIO", 255, "80 00ff"],
    ["unknown", "T", 5, "81 0005"],
  ])("of Classic, %s: %s%i is %s", (layout, area, start, expected, more) => expect(place(area, start, layout, more)).toBe(expected));

  it.each<[Layout, Area, number, RegExp, { bank?: number; count?: number }?]>([
    ["c", "W", 0, /C series has no W; where it is a CS, CJ or CP, set target_plc to Cs1OrNewer/],
    ["c", "E", 0, /C series has no E0_/, { bank: 0 }],
    ["c", "CIO", 256, /C series has CIO0 to CIO255/],
    ["c", "A", 20, /C series has A0 to A27/, { count: 9 }],
    ["cv", "H", 0, /CV series has no H/],
    ["cv", "E", 0, /CV series has no E8_/, { bank: 8 }],
    ["cv", "C", 1024, /CV series has C0 to C1023/],
    ["cs", "L", 0, /CS1 or newer \(target_plc Cs1OrNewer\) has no L$/],
    ["cs", "T", 4095, /has T0 to T4095/, { count: 2 }],
    ["c", "IR", 5, /C series has no IR; the word IR5 of a C200H is CIO5$/],
    ["c", "DR", 5, /C series has no DR; where it is a CS/],
    ["cv", "IR", 3, /CV series has IR0 to IR2$/],
    ["cs", "DR", 16, /has DR0 to DR15$/],
    ["unknown", "IR", 0, /has no IR; set plc_series to c or cv/],
    ["unknown", "H", 0, /not known has no H; set plc_series to c or cv/],
    ["unknown", "A", 0, /set plc_series/],
    ["unknown", "C", 0, /set plc_series/],
    ["unknown", "CIO", 256, /set plc_series/],
  ])("of %s: %s%i is none", (layout, area, start, words, more) => expect(place(area, start, layout, more)).toMatch(words));

  it.each<[string | undefined, Layout, boolean | undefined]>([
    ["C200HX-CPU64", "c", false],
    ["C1000H-CPU01", "c", false],
    ["CQM1H-CPU51", "c", false],
    ["CPM2A", "c", false],
    ["CV1000-CPU01", "cv", false],
    ["CVM1-CPU11", "cv", false],
    ["CJ2M-CPU33", "cv", true],
    ["CP1L-EL20", "cv", true],
    ["CS1G-CPU44", "cv", true],
    ["NX1P2", "cv", true],
    ["SomethingElse", "unknown", undefined],
    [undefined, "unknown", undefined],
  ])("the model %s has the layout %s", (model, layout, newer) => expect([classicLayout(model), isNewer(model)]).toEqual([layout, newer]));
});

it.each([
  ["D100", "UINT", ["binary UINT configured", "BCD UINT_BCD"]],
  ["D100", "BCD", ["binary UINT", "BCD UINT_BCD configured"]],
  ["D100", "DINT", ["binary DINT configured", "BCD UDINT_BCD"]],
  ["D100", "REAL", []],
] as const)("shows %s of the type %s as binary and as BCD, where it is a whole number", (text, word, codings) => {
  const { address } = parse(`${text}:${word}`);
  const found = wireOf(address)?.orders.map((one) => `${one.order} ${one.address.kind}${one.isConfigured ? " configured" : ""}`);
  expect(found).toEqual(codings);
});

it("shows the words of an index register, which has no other order: two of CS and newer, one of CV", () => {
  const { address } = parse("IR4[3]");
  const wordsOn = (layout: Layout) => {
    const place = placeOf(address, layout);
    if (typeof place === "string") throw new Error(place);
    const found = wireOf({ ...address, start: 0, place });
    return [found?.bytes.type, found?.orders];
  };
  expect([placeOf(address, "cs"), wordsOn("cs")]).toEqual([
    { code: 0xdc, base: 0x100, hasLongElements: true },
    [{ scalar: "uint16", count: 6 }, []],
  ]);
  expect(wireOf({ ...address, place: { code: 0x9c, base: 0 } })?.bytes.type).toEqual({ scalar: "uint16", count: 3 });
});
