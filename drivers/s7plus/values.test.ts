import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DataType, Reading } from "../../src/model/value.ts";
import type { Kind } from "../lib/step7-types.ts";
import { parseAccessString, symbolText } from "./address.ts";
import { pathCrc } from "./crc.ts";
import { Cursor, Malformed } from "./cursor.ts";
import { decoderOf, type TypedSlot } from "./decode.ts";
import driver from "./driver.ts";
import { legacyAnswer, loginKindOf, loginStructure, newAnswer } from "./login.ts";
import { type Member, membersOf } from "./members.ts";
import { readObjects } from "./objects.ts";
import type { PlusLimits } from "./plan.ts";
import { stridesOf } from "./soft-types.ts";

const bytes = (text: string): Buffer => Buffer.from(text.replace(/[\s|]/g, ""), "hex");
const zeros = (count: number): string => "00".repeat(count);

/** The reading of a value, and that all of it was taken. */
function decoded(text: string, kind: Kind | undefined, count?: number, auto?: DataType, encoding?: string): Reading {
  const cursor = new Cursor(bytes(`${text} 99`));
  const slot: TypedSlot = { quality: "good", value: 0 };
  const reading = decoderOf({ kind, count, encoding }, auto, new Map())(cursor, slot);
  expect(cursor.left, "one byte behind the value").toBe(1);
  return { ...reading };
}

describe("values as the CPU sends them", () => {
  it.each<[string, Kind, number | undefined, unknown]>([
    ["000101", "BOOL", undefined, true],
    ["00025a", "CHAR", undefined, "Z"],
    ["0002df", "CHAR", undefined, "ß"],
    ["000aab", "BYTE", undefined, 0xab],
    ["0002c8", "BYTE", undefined, 200],
    ["0006f4", "SINT", undefined, -12],
    ["0007fff9", "INT", undefined, -7],
    ["000babcd", "WORD", undefined, 0xabcd],
    ["0008ffb4d279", "DINT", undefined, -1_234_567],
    ["00088fffb4d279", "DINT", undefined, -1_234_567],
    ["000cdeadbeef", "DWORD", undefined, 0xdeadbeef],
    ["00048fffffff7f", "DWORD", undefined, 0xffff_ffff],
    ["000e41bc0000", "REAL", undefined, 23.5],
    ["000fc000000000000000", "LREAL", undefined, -2],
    ["000331c1", "DATE", undefined, "2024-11-15"],
    ["000495ccd915", "TOD", undefined, 45_296_789],
    ["0008d6e6c800", "TIME", undefined, -86_400_000],
    ["000b2127", "S5TIME", undefined, 127_000],
    ["1002082611200925411236", "DT", undefined, "2026-11-20T09:25:41.123"],
    ["0005fffffffffffffffffe", "LWORD", undefined, 2n ** 64n - 2n],
    ["0009efffffffffffff7f", "LINT", undefined, -9_007_199_254_740_993n],
    ["0011fab4dfa200", "LTIME", undefined, -1_500_000_000n],
    ["001017979cfe3d85cd15", "LDT", undefined, "2023-11-14T22:13:20.123456789"],
    [`100216140548e46c6c6f${zeros(15)}`, "STRING", undefined, "Hällo"],
    [`1003120010000700470072 00fc00df0065002003a9${zeros(18)}`, "WSTRING", undefined, "Grüße Ω"],
    ["0017020000430000000000001234020c07ea0b1406091929075bcd15", "DTL", undefined, "2026-11-20T09:25:41.123456789"],
    ["000b1998", "WORD_BCD", undefined, 1998],
    ["0003f157", "BCD16", undefined, -157],
    ["000c12345678", "DWORD_BCD", undefined, 12_345_678],
    // 0x12345678 in groups of seven bits.
    ["000481 91 d1 ac 78".replaceAll(" ", ""), "DWORD_BCD", undefined, 12_345_678],
    ["000a42", "BYTE_BCD", undefined, 42],
    ["000d9999999999999999", "LWORD_BCD", undefined, 9_999_999_999_999_999n],
    ["100b0200429999", "WORD_BCD", 2, [42, 9999]],
    ["000280", "CHAR", undefined, "€"],
    ["0003d83d", "WCHAR", undefined, "\ufffd"],
    ["1002050403040506", "BYTE", 5, [4, 3, 4, 5, 6]],
    ["100704000a0014001effd8", "INT", 4, [10, 20, 30, -40]],
    ["1001020100", "BOOL", 2, [true, false]],
    ["1004037fff7f8100", "DWORD", 3, [127, 16_383, 128]],
  ])("%s as %s (%s)", (text, kind, count, value) => {
    expect(decoded(text, kind, count)).toEqual({ quality: "good", value });
  });

  it("a text has the encoding of the source", () => {
    expect(decoded("1002 06 04 04 b1 c3 20 31", "STRING", undefined, undefined, "gbk")).toEqual({ quality: "good", value: "泵 1" });
    expect(decoded("0002 cd", "CHAR", undefined, undefined, "windows-1251")).toEqual({ quality: "good", value: "Н" });
  });

  it("a text that nobody has written yet is as long as it has room", () => {
    expect(decoded("1002 04 ff ff 41 42", "STRING")).toEqual({ quality: "good", value: "AB" });
  });

  it.each<[string, Kind, number | undefined, object]>([
    ["000b12a4", "WORD_BCD", undefined, { fault: "not_a_number", detail: "0x000b12a4 is not a value of type WORD_BCD" }],
    ["100b02004299f9", "WORD_BCD", 2, { fault: "not_a_number", detail: "element 1: 0x99f9 is not a value of type WORD_BCD" }],
    ["00071998", "WORD_BCD", undefined, { fault: "type_mismatch" }],
    ["000e7fc00000", "REAL", undefined, { fault: "not_a_number", detail: "NaN" }],
    ["000eff800000", "REAL", undefined, { fault: "not_a_number", detail: "-Infinity" }],
    ["0007fff9", "REAL", undefined, { fault: "type_mismatch", detail: "the PLC sent int, which is not a value of type REAL" }],
    ["100702000a0014", "INT", undefined, { fault: "type_mismatch", detail: expect.stringContaining("an array of int") }],
    ["100702000a0014", "INT", 3, { fault: "type_mismatch", detail: expect.stringContaining("2 elements of an array, it should have 3") }],
    ["000b2aaa", "S5TIME", undefined, { fault: "not_a_number" }],
    ["10020826133209254112 36", "DT", undefined, { fault: "not_a_number", detail: expect.stringContaining("2613320925411236") }],
    ["100200", "STRING", undefined, { fault: "not_a_number" }],
    ["0017020000430000000000001234020c07ea0d1406091929075bcd15", "DTL", undefined, { fault: "not_a_number" }],
    ["001400 02 aabb", "INT", undefined, { fault: "type_mismatch", detail: expect.stringContaining("blob") }],
  ])("%s as %s (%s) is a fault", (text, kind, count, fault) => {
    expect(decoded(text, kind, count)).toMatchObject({ quality: "bad", ...fault });
  });

  it.each<[string, unknown, DataType]>([
    ["000101", true, { scalar: "bool" }],
    ["0007fff9", -7, { scalar: "int16" }],
    ["00128a0e0001", 0x8a0e0001, { scalar: "uint32" }],
    ["0009efffffffffffff7f", -9_007_199_254_740_993n, { scalar: "int64" }],
    ["1002 03 010203", [1, 2, 3], { scalar: "uint8", count: 3 }],
    ["0017020000430000000000001234020c07ea0b1406091929075bcd15", "2026-11-20T09:25:41.123456789", { scalar: "string" }],
  ])("%s of an access string without a type brings its own", (text, value, type) => {
    expect(decoded(text, undefined)).toEqual({ quality: "good", value, type });
  });

  it("whatever comes is a reading, or cannot be skipped", () => {
    const kinds: readonly (Kind | undefined)[] = [undefined, "BOOL", "DINT", "STRING", "WSTRING", "DT", "DTL", "LDT"];
    fc.assert(
      fc.property(
        fc.constantFrom(0x00, 0x10, 0x20, 0x40, 0x07),
        fc.integer({ min: 0, max: 0x1f }),
        fc.uint8Array({ maxLength: 40 }),
        fc.constantFrom(...kinds),
        fc.constantFrom(undefined, 1, 3),
        (flags, wire, rest, kind, count) => {
          const cursor = new Cursor(Buffer.from([flags, wire, ...rest]));
          try {
            const reading = decoderOf(
              { kind, count: kind === "DINT" ? count : undefined },
              undefined,
              new Map(),
            )(cursor, { quality: "good", value: 0 });
            expect(["good", "bad"]).toContain(reading.quality);
          } catch (error) {
            expect(error).toBeInstanceOf(Malformed);
          }
        },
      ),
      { numRuns: 3000 },
    );
  });
});

describe("addresses", () => {
  const parse = (text: string, type?: DataType) => driver.parseAddress(text, type, {}).address as { levels?: unknown; place?: unknown };
  it.each([
    ["Motor_DB.speed", [["Motor_DB"], ["speed"]]],
    ['"Motor_DB".speed[3]', [["Motor_DB"], ["speed", 3]]],
    ['"Temp 1"', [["Temp 1"]]],
    ["Tag Motor", [["Tag Motor"]]],
    [' "a.b"."c ""d"""."e[1]" ', [["a.b"], ['c "d"'], ["e[1]"]]],
    ["Line.grid[ -1, 2 ].x", [["Line"], ["grid", -1, 2], ["x"]]],
    ["Größe.µ", [["Größe"], ["µ"]]],
    ['"8A0E0001".x', [["8A0E0001"], ["x"]]],
    ["60.1", [["60"], ["1"]]],
    ["52", [["52"]]],
  ])("%s is a symbol", (text, levels) => {
    expect(parse(text).levels).toEqual(levels.map(([name, ...indices]) => ({ name, indices: indices.length > 0 ? indices : undefined })));
  });

  it.each([
    ["8A0E0001.A", { area: 0x8a0e0001, lids: [10] }],
    ["52.9", { area: 0x52, lids: [9] }],
    ["8a0e0002.d.2.1.a", { area: 0x8a0e0002, lids: [13, 2, 1, 10] }],
  ])("%s is an access string", (text, place) => {
    expect(parse(text)).toMatchObject({ levels: undefined, place });
    expect(parseAccessString(text)).toEqual(place);
  });

  it.each([
    "",
    ".",
    "a.",
    ".a",
    '"a',
    'a"b"',
    "a[]",
    "a[1",
    "a[1,2,3,4,5,6,7]",
    "a[x]",
    "a..b",
    "a\nb",
    '""',
    "a".repeat(129),
    `${"a.".repeat(40)}a`,
  ])("%j is none", (text) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ fault: "address_invalid" }));
  });

  it("what is found is written so that it is read again", () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[^\p{Cc}]{1,20}$/u), { minLength: 1, maxLength: 4 }), (names) => {
        const { levels } = parse(symbolText(names)) as { levels: readonly { name: string }[] | undefined };
        expect(levels?.map(({ name }) => name)).toEqual(names);
      }),
    );
    expect(symbolText(["ABCDEF01", "A"])).toBe('"ABCDEF01".A');
  });

  it("a matrix is not read as one value, and a text of characters is an array", () => {
    for (const type of [
      { scalar: "float64", count: 6, dimensions: [2, 3] },
      { scalar: "string", word: "CHAR", maxBytes: 8 },
    ] satisfies DataType[])
      expect(() => parse("DB.x", type)).toThrow(expect.objectContaining({ fault: "type_mismatch" }));
  });

  it("takes the length of a text as the CPU has it", () => {
    expect(driver.parseAddress("DB.x", { scalar: "string", maxBytes: 32_764 }, {}).type).toEqual({ scalar: "string", maxBytes: 32_764 });
  });
});

describe("planning", () => {
  const limits: PlusLimits = { maxPoints: 1000, maxBytes: 60_000, inFlight: 1, maxItems: 1000 };
  it("keeps requests below their size, and strings below the size of an answer", () => {
    const points = Array.from({ length: 500 }, (_, index) => ({
      index,
      ...driver.parseAddress(`8A0E0001.${(index + 9).toString(16)}`, undefined, {}),
    }));
    const reads = driver.plan(points, limits) as unknown as readonly { items: Buffer; points: readonly unknown[] }[];
    for (const { items } of reads) expect(items.length).toBeLessThanOrEqual(840);
    expect(reads.length).toBeLessThan(9);
    const apart = new Set(points.filter((_, i) => [3, 4, 200].includes(i)));
    const firsts = driver.plan(points.toReversed(), limits, apart).map(({ points: [first] }) => first?.index);
    expect(firsts).toEqual(expect.arrayContaining([0, 3, 4, 200]));
    const texts = points.map(({ index }) => ({
      index,
      ...driver.parseAddress(`8A0E0001.${index}`, { scalar: "string", word: "WSTRING", maxBytes: 32_000 }, {}),
    }));
    expect(driver.plan(texts, limits).every(({ points: { length } }) => length === 1)).toBe(true);
  });
});

describe("logging in", () => {
  it.each([
    ["1;6ES7 511-1AK02-0AB0;V2.9", "legacy"],
    ["1;6ES7 511-1AK02-0AB0;V3.0", "legacy"],
    ["1;6ES7 511-1AK02-0AB0;V3.1", "new"],
    ["1;6ES7 511-1AK01-0AB0;V2.8", "unsupported"],
    ["1;6ES7 214-1AG40-0XB0 ;V4.5", "legacy"],
    ["1;6ES7 214-1AG40-0XB0 ;V4.7", "new"],
    ["1;6ES7 212-1AG50-0XB0;V1.0", "new"],
    ["1;6ES7 672-7FC01-0YA0;V21.9", "legacy"],
    ["1;6ES7 512-1DM03-0AB0;V4.1", "new"],
    ["something else", "unknown"],
    [undefined, "unknown"],
  ])("%s takes the log-in %s", (device, kind) => {
    expect(loginKindOf(device)).toBe(kind);
  });

  it("a password alone goes as its hash, with a user as it is", () => {
    expect(loginStructure("", "geheim").toString("hex")).toBe(
      "001700009dd082bb5100040182bb520014000082bb5300140014906072001efddf3e11e6d2b5782f4777fe03873900",
    );
    expect(loginStructure("otto", "geheim").toString("hex")).toBe(
      "001700009dd082bb5100040282bb52001400046f74746f82bb530014000667656865696d00",
    );
  });

  it("the answer to a challenge shows neither password nor hash", () => {
    const challenge = Buffer.alloc(20, 0x5a);
    // SHA-1 of "geheim" begins with 90 60 72, as above.
    expect(legacyAnswer("geheim", challenge).toString("hex")).toMatch(/^100214ca3a28/);
    const answer = newAnswer("", "geheim", challenge, Buffer.alloc(32, 7));
    // Two blocks of 16 bytes and the padding, behind flags, type, root id and length.
    expect([answer.length, answer.toString("hex", 0, 4)]).toEqual([4 + 48, "00140030"]);
    expect(answer.includes("geheim")).toBe(false);
  });
});

const member = (name: string, softType: number, more: Partial<Member> = {}): Member => ({
  ...{ name, softType, lid: 9, dimensions: [], typeId: undefined, chars: undefined, ...more },
});

describe("what a type lists", () => {
  const M_AREA = `a1 90030000 837f 00 00 a3 8169 00 15 05 4d41726561 a3 8b5e 00 04 08
    ab 0024 09000000 09000000 09001111 01 8a80 00 0000 0000 0a000000 0a001111 04 8a80 00 0400 0400 0000
    ac 000b 09 546167204d6f746f72 00 0006 04 4d573130 00 0000 a2`;

  it("members with their names, also from lists of several blocks", () => {
    const [object] = readObjects(new Cursor(bytes(M_AREA)));
    expect(object && [...membersOf(object)]).toEqual([member("Tag Motor", 1), member("MW10", 4, { lid: 10 })]);
  });

  it("cut at any place, it is Malformed", () => {
    const whole = bytes(M_AREA);
    for (let end = 1; end < whole.length; end++) expect(() => readObjects(new Cursor(whole.subarray(0, end)))).toThrow(Malformed);
  });

  it("rows of packed bits are filled to whole bytes, but for a single one", () => {
    const two = [
      { lower: 0, count: 2 },
      { lower: 0, count: 10 },
    ];
    expect(stridesOf(member("bits", 40, { dimensions: two }))).toEqual([16, 1]);
    expect(
      stridesOf(
        member("bits", 40, {
          dimensions: [
            { lower: 0, count: 2 },
            { lower: 1, count: 8 },
          ],
        }),
      ),
    ).toEqual([8, 1]);
    expect(stridesOf(member("flags", 40, { dimensions: two.slice(1) }))).toEqual([1]);
    expect(stridesOf(member("grid", 5, { dimensions: two }))).toEqual([10, 1]);
  });

  it("what the CPU checks a name and type with", () => {
    expect(pathCrc([member("Test2", 7)])).toBe(0x4ca7_0840);
    expect(pathCrc([member("flag", 1)])).toBe(0xfc8b_a389);
    expect(pathCrc([member("flag", 40)])).toBe(0xfc8b_a389);
  });
});
