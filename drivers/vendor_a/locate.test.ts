import { describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { formatDataType, parseDataType } from "../../src/model/value.ts";
import { typeOf } from "../driver.ts";
import type { Slot } from "../lib/reused-readings.ts";
import { parseTag, parseType } from "./address.ts";
import { decoderOf } from "./decode.ts";
import { indicesOf, type KnownSymbol, locate, locateAlone, type Place, type Source } from "./locate.ts";
import { settingsSchema } from "./settings.ts";
import { makeStructure, parseDefinition, parseTemplateHead } from "./template.ts";
import { ATOMICS, elementaryType, type Family, STRUCTURE, type Structure, valuesIn } from "./types.ts";

const SETTINGS = settingsSchema.parse({});

/** A definition as it comes: members with their info, type and offset, then names. */
function definition(name: string, members: readonly (readonly [name: string, info: number, type: number, offset: number])[]): Buffer {
  const infos = members.map(([, info, type, offset]) => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt16LE(info, 0);
    bytes.writeUInt16LE(type, 2);
    bytes.writeUInt32LE(offset, 4);
    return bytes;
  });
  return Buffer.concat([...infos, Buffer.from([name, ...members.map(([member]) => member)].join("\0"), "latin1")]);
}

function structure(id: number, bytes: number, raw: Buffer, members: number, inner: readonly Structure[] = []): Structure {
  const draft = parseDefinition(id, { bytes: raw.length, structureBytes: bytes, members, handle: id + 0x1000 }, raw);
  if (typeof draft === "string") throw new Error(draft);
  const made = makeStructure(draft, (wanted) => inner.find((one) => one.id === wanted), "logix");
  if (!made) throw new Error("a structure in it is missing");
  return made;
}

const STRING = structure(
  0xfce,
  88,
  definition("ASCIISTRING82", [
    ["LEN", 0, 0xc4, 0],
    ["DATA", 82, 0x20c2, 4],
  ]),
  2,
);
const TIMER = structure(
  0xf83,
  12,
  definition("TIMER", [
    ["CTL", 0, 0xc4, 0],
    ["PRE", 0, 0xc4, 4],
    ["ACC", 0, 0xc4, 8],
    ["EN", 7, 0xc1, 3],
    ["DN", 5, 0xc1, 3],
  ]),
  5,
);
const MOTOR = structure(
  0x101,
  136,
  definition("Motor;nEBECEAEAEA", [
    ["ZZZZZZZZZZMotor0", 0, 0xc2, 0],
    ["On", 0, 0xc1, 0],
    ["Fault", 10, 0xc1, 0],
    ["Speed", 0, 0xca, 4],
    ["Steps", 4, 0x20c4, 8],
    ["Flags", 2, 0x20d3, 24],
    ["Delay", 0, 0x8f83, 32],
    ["Name", 0, 0x8fce, 44],
  ]),
  8,
  [STRING, TIMER],
);

describe("templates", () => {
  it("reads what is said of one", () => {
    const bytes = Buffer.from("0400 0400 0000 0f000000 0500 0000 58000000 0200 0000 0200 0100 0000 ce0f".replaceAll(" ", ""), "hex");
    expect(parseTemplateHead(bytes, 0, bytes.length)).toEqual({ bytes: 40, structureBytes: 88, members: 2, handle: 0xfce });
    // One attribute is refused, and has no value then.
    bytes.writeUInt16LE(0x14, 4);
    expect(parseTemplateHead(Buffer.concat([bytes.subarray(0, 6), bytes.subarray(10)]), 0, bytes.length - 4)).toContain("does not say");
  });

  it("knows strings, hidden hosts and packed bits", () => {
    expect(STRING).toMatchObject({ name: "STRING", chars: 82 });
    expect(TIMER.members.map(({ name, isHidden, offset, bit }) => [name, isHidden, offset, bit])).toEqual([
      ["CTL", true, 0, undefined],
      ["PRE", false, 4, undefined],
      ["ACC", false, 8, undefined],
      ["EN", false, 3, 7],
      ["DN", false, 3, 5],
    ]);
    expect(MOTOR).toMatchObject({ name: "Motor", handle: 0x1101, bytes: 136 });
    expect(MOTOR.members.map(({ name, isHidden, offset, bit, count }) => [name, isHidden, offset, bit, count])).toEqual([
      ["ZZZZZZZZZZMotor0", true, 0, undefined, undefined],
      ["On", false, 0, 0, undefined],
      ["Fault", false, 1, 2, undefined],
      ["Speed", false, 4, undefined, undefined],
      ["Steps", false, 8, undefined, 4],
      ["Flags", false, 24, undefined, 2],
      ["Delay", false, 32, undefined, undefined],
      ["Name", false, 44, undefined, undefined],
    ]);
  });

  it("leaves out members beyond the end, and takes names that are missing", () => {
    const odd = structure(
      0x102,
      4,
      definition("Odd;n", [
        ["A", 0, 0xc4, 0],
        ["B", 0, 0xc4, 2],
        ["", 0, 0xc2, 0],
      ]),
      3,
    );
    expect(odd.members.map(({ name, isHidden }) => [name, isHidden])).toEqual([
      ["A", false],
      ["", true],
    ]);
    expect(parseDefinition(1, { bytes: 9, structureBytes: 4, members: 2, handle: 1 }, Buffer.alloc(9))).toContain("9 bytes with 2 members");
  });
});

const SYMBOLS: readonly KnownSymbol[] = [
  { name: "Count", type: { code: 0xc4 }, dimensions: [] },
  { name: "Ready", type: { code: 0xc1 }, dimensions: [] },
  { name: "Big", type: { code: 0xc5 }, dimensions: [] },
  { name: "Level", type: { code: 0xca }, dimensions: [] },
  { name: "Arr", type: { code: 0xc3 }, dimensions: [10] },
  { name: "Matrix", type: { code: 0xc4 }, dimensions: [2, 3] },
  { name: "Bits", type: { code: 0xd3, isBits: true }, dimensions: [3] },
  { name: "Words", type: { code: 0xd3 }, dimensions: [3] },
  { name: "Motor", type: { structure: MOTOR }, dimensions: [] },
  { name: "Motors", type: { structure: MOTOR }, dimensions: [5] },
  { name: "Odd", type: { code: 0xbe }, dimensions: [] },
  { name: "Huge", type: { code: 0xc4 }, dimensions: [100_000] },
];

function find(text: string, type?: string) {
  const parsed = parseTag(text, type === undefined ? undefined : typeOf({ parseType }, type), SETTINGS);
  const root = String(parsed.address.steps[0]).toLowerCase();
  const symbol = SYMBOLS.find(({ name }) => name.toLowerCase() === root);
  if (!symbol) throw new Error(`no symbol ${root}`);
  return locate(parsed.address, parsed.type, symbol);
}

/** `name[start]xcount@offset.bit` of each way to read it, and the type. */
function shown(text: string, type?: string): string {
  const { place, type: found } = find(text, type);
  const words = place.sources.map(
    ({ name, start, count, offset, bit }: Source) => `${name}[${start}]x${count}@${offset}${bit === undefined ? "" : `.${bit}`}`,
  );
  return `${words.join(" ")} ${formatDataType(found)}`;
}

describe("places", () => {
  it.each([
    ["count", undefined, "Count[0]x1@0 int32"],
    ["Count", "UDINT", "Count[0]x1@0 uint32"],
    ["Count", "LBCD", "Count[0]x1@0 uint32"],
    ["Arr[2]", "BCD[3]", "Arr[2]x3@0 uint16[3]"],
    ["Count.9", undefined, "Count[0]x1@1.1 bool"],
    ["Big.63", undefined, "Big[0]x1@7.7 bool"],
    ["Ready", undefined, "Ready[0]x1@0 bool"],
    ["Arr", undefined, "Arr[0]x10@0 int16[10]"],
    ["Arr", "INT[4]", "Arr[0]x4@0 int16[4]"],
    ["Arr[3]", undefined, "Arr[3]x1@0 int16"],
    ["Arr[3]", "INT[4]", "Arr[3]x4@0 int16[4]"],
    ["Arr[3]{4}", undefined, "Arr[3]x4@0 int16[4]"],
    ["Arr[3].15", undefined, "Arr[3]x1@1.7 bool"],
    ["Matrix", undefined, "Matrix[0]x6@0 int32[2x3]"],
    ["Matrix[1,2]", undefined, "Matrix[5]x1@0 int32"],
    ["Bits", undefined, "Bits[0]x3@0.0 bool[96]"],
    ["Bits[33]", undefined, "Bits[1]x1@0.1 bool"],
    ["Bits[30]", "BOOL[4]", "Bits[0]x2@3.6 bool[4]"],
    ["Bits[1]", "DWORD", "Bits[1]x1@0 uint32"],
    ["Bits", "DWORD[3]", "Bits[0]x3@0 uint32[3]"],
    ["Words", undefined, "Words[0]x3@0 uint32[3]"],
    ["Words[2]", undefined, "Words[2]x1@0 uint32"],
    ["Words[2]", "DWORD", "Words[2]x1@0 uint32"],
    ["Words[2].9", undefined, "Words[2]x1@1.1 bool"],
    ["Words[33]", "BOOL", "Words[1]x1@0.1 bool"],
    ["Motor", undefined, "Motor[0]x1@0 string"],
    ["motor.speed", undefined, "Motor[0]x1@4 Motor.Speed[0]x1@0 float32"],
    ["Motor.Fault", undefined, "Motor[0]x1@1.2 Motor.Fault[0]x1@0 bool"],
    ["Motor.Steps[2]", undefined, "Motor[0]x1@16 Motor.Steps[2]x1@0 int32"],
    ["Motor.Steps", undefined, "Motor[0]x1@8 Motor.Steps[0]x4@0 int32[4]"],
    ["Motor.Flags[33]", undefined, "Motor[0]x1@28.1 Motor.Flags[1]x1@0.1 bool"],
    ["Motor.Delay.DN", undefined, "Motor[0]x1@35.5 Motor.Delay[0]x1@3.5 Motor.Delay.DN[0]x1@0 bool"],
    ["Motor.Delay.ACC.3", undefined, "Motor[0]x1@40.3 Motor.Delay[0]x1@8.3 Motor.Delay.ACC[0]x1@0.3 bool"],
    ["Motor.Name", undefined, "Motor[0]x1@44 Motor.Name[0]x1@0 string"],
    ["Motors", undefined, "Motors[0]x5@0 string[5]"],
    ["Motors[3]", undefined, "Motors[3]x1@0 string"],
    ["Motors[3].Delay.PRE", undefined, "Motors[3]x1@36 Motors[3].Delay[0]x1@4 Motors[3].Delay.PRE[0]x1@0 int32"],
    ["Huge[99990]{10}", undefined, "Huge[99990]x10@0 int32[10]"],
  ])("finds %s as %s", (text, type, words) => {
    expect(shown(text, type)).toBe(words);
  });

  it("knows paths, types and handles of what it reads", () => {
    const { place } = find("Motors[3].Steps[1]");
    expect(place.sources).toMatchObject([
      { path: ["Motors"], dimensions: [5], bytes: 136, code: STRUCTURE, handle: 0x1101 },
      { path: ["Motors", 3, "Steps"], dimensions: [4], bytes: 4, code: 0xc4, handle: 0 },
    ]);
    expect(indicesOf(5, [2, 3])).toEqual([1, 2]);
    expect(indicesOf(0, [])).toEqual([]);
  });

  it.each([
    ["Arr[10]", undefined, "out_of_range", "Arr is [10], its last element ends in 9"],
    ["Matrix[1,3]", undefined, "out_of_range", "[2,3]"],
    ["Bits[96]", undefined, "out_of_range", "[96]"],
    ["Arr[8]{3}", undefined, "out_of_range", "there are 2"],
    ["Bits[1].0", undefined, "type_mismatch", "write Bits[32] for bit 0 of its word 1, or Bits[1] for its element 1"],
    ["Bits[40].0", undefined, "type_mismatch", "write Bits[40] for its element 40"],
    ["Bits.5", undefined, "type_mismatch", "write Bits[5] for bit 5 of its word 0, or Bits[0]"],
    ["Bits[96]", "DWORD", "out_of_range", "[3]"],
    ["Motor.Flags[1].3", undefined, "type_mismatch", "write Motor.Flags[35] for bit 3"],
    ["Words[3]", undefined, "out_of_range", "[3]"],
    ["Count{2}", undefined, "out_of_range", "it is not an array"],
    ["Count.32", undefined, "out_of_range", "bits 0 to 31"],
    ["Arr", "INT", "type_mismatch", "INT[10]"],
    ["Arr", "DINT[4]", "type_mismatch", "INT[10]"],
    ["Matrix[1]", undefined, "type_mismatch", "2 dimensions"],
    ["Count[0]", undefined, "type_mismatch", "not an array"],
    ["Count", "INT", "type_mismatch", "DINT on the controller, not int16"],
    ["Count", "BOOL", "type_mismatch", "DINT"],
    ["Count", "BCD", "type_mismatch", "DINT on the controller, not WORD_BCD"],
    ["Count.3", "BCD", "type_mismatch", "a bit is a BOOL, not WORD_BCD"],
    ["Level.3", undefined, "type_mismatch", "only whole numbers have bits"],
    ["Arr.3", undefined, "type_mismatch", "name one element"],
    ["Motors.Speed", undefined, "type_mismatch", "Motors[0].Speed"],
    ["Motor", "DINT", "type_mismatch", "Motor"],
    ["Odd", undefined, "type_mismatch", "type 0x00BE"],
    ["Huge", undefined, "type_mismatch", "at most 65535"],
    ["Motor.Torque", undefined, "not_found", "Motor (Motor) has no member Torque"],
    ["Count.Value", undefined, "not_found", "has no member Value"],
  ])("refuses %s as %s: %s", (text, type, fault, words) => {
    expect(() => find(text, type)).toThrow(expect.objectContaining({ fault, message: expect.stringContaining(words) }));
  });

  it("refuses structures whose members lie over each other more often than anybody reads", () => {
    const over = (id: number, type: number, inner: readonly Structure[]): Structure => {
      const members = Array.from({ length: 100 }, (_, i) => [`M${i}`, 0, type, 0] as const);
      return structure(id, 1, definition("Over;n", members), members.length, inner);
    };
    let nested = over(0x110, 0xc2, []);
    for (let depth = 1; depth < 8; depth++) nested = over(0x110 + depth, 0x8000 | nested.id, [nested]);
    expect(valuesIn(nested)).toBeGreaterThan(100 ** 8);
    const { address, type } = parseTag("Over", undefined, SETTINGS);
    expect(() => locate(address, type, { name: "Over", type: { structure: nested }, dimensions: [] })).toThrow(
      expect.objectContaining({ fault: "type_mismatch", message: expect.stringContaining("more than 200000 values") }),
    );
    expect(() => locate(address, type, { name: "Over", type: { code: 0xc4 }, dimensions: [0] })).toThrow("it has no elements");
  });

  it("reads what is in no list by the type that a read of it has", () => {
    expect(alone("Arr[2]", 0xc4, "DINT[5]")).toMatchObject({
      type: { scalar: "int32", count: 5 },
      place: { sources: [{ path: ["Arr", 2], dimensions: [], start: 0, count: 5, bytes: 4, code: 0xc4 }] },
    });
    expect(alone("Program:Main.Status.9", 0xc3)).toMatchObject({
      type: { scalar: "bool" },
      place: { sources: [{ name: "Program:Main.Status", path: ["Program:Main", "Status"], offset: 1, bit: 1 }] },
    });
    expect(() => alone("Motor", STRUCTURE)).toThrow(expect.objectContaining({ fault: "type_mismatch" }));
  });

  it("reads elements of an array of BOOL that is in no list out of its words", () => {
    const source = (text: string, type?: string) => alone(text, 0xd3, type).place.sources[0];
    expect(source("Bits[33]")).toMatchObject({ name: "Bits[1]", path: ["Bits", 1], count: 1, offset: 0, bit: 1 });
    expect(source("Bits[30]", "BOOL[4]")).toMatchObject({ path: ["Bits", 0], count: 2, offset: 3, bit: 6 });
    expect(source("Bits[1]", "DWORD")).toMatchObject({ path: ["Bits", 1], count: 1, offset: 0 });
    expect(source("Bits[1]", "DWORD")?.bit).toBeUndefined();
    expect(() => alone("Bits", 0xd3)).toThrow(expect.objectContaining({ message: expect.stringContaining("Bits[0]") }));
    expect(() => alone("Bits[1].0", 0xd3)).toThrow(expect.objectContaining({ message: expect.stringContaining("write Bits[32]") }));
  });

  it.each([
    ["Count.40", 0xc4, "out_of_range", "bits 0 to 31"],
    ["Level.3", 0xca, "type_mismatch", "only whole numbers have bits"],
    ["Ready.5", 0xc1, "type_mismatch", "only whole numbers have bits"],
  ])("refuses a bit of %s, of the type %i, that is in no list", (text, code, fault, words) => {
    expect(() => alone(text, code)).toThrow(expect.objectContaining({ fault, message: expect.stringContaining(words) }));
  });
});

function alone(text: string, code: number, type?: string, family: Family = "logix") {
  const parsed = parseTag(text, type === undefined ? undefined : parseDataType(type), SETTINGS);
  return locateAlone(parsed.address, parsed.type, code, family);
}

describe("each wire type, listed or not, of each family", () => {
  const WORDS = 3;
  const FORMS = [
    "T",
    "T.5",
    "T.63",
    "T[1]",
    "T[2]",
    "T[40]",
    "T[95]",
    "T[96]",
    "T[1].0",
    "T[40].0",
    "T[2].31",
    "T{3}",
    "T[1]{2}",
    "T[31]{2}",
  ];
  const TYPES = [undefined, "BOOL", "DWORD", "DINT", "REAL", "STRING", "BOOL[2]", "DWORD[2]"];
  const rows = [...ATOMICS.keys()].flatMap((code) =>
    (["logix", "micro800"] as const).flatMap((family) => ["alone", "scalar", "array"].map((kind) => [code, family, kind] as const)),
  );

  /** Elements that an address names by its index and its count; the bits of words where it is of BOOL. */
  const found = (text: string, type: string | undefined, [code, family, kind]: (typeof rows)[number]) => {
    if (kind === "alone") return alone(text, code, type, family).place;
    const dimensions = kind === "array" ? [WORDS] : [];
    const parsed = parseTag(text, type === undefined ? undefined : parseDataType(type), SETTINGS);
    return locate(parsed.address, parsed.type, { name: "T", type: elementaryType(code, dimensions.length, family), dimensions }).place;
  };

  it.each(rows)("of the type %i, %s, %s: no form throws and none wraps", (...row) => {
    for (const text of FORMS)
      for (const type of TYPES) {
        let place: Place;
        try {
          place = found(text, type, row);
        } catch (error) {
          expect(error).toBeInstanceOf(FaultError);
          continue;
        }
        const source = place.sources.at(-1);
        if (!source) throw new Error("a place without a source");
        const { path, start, count, bytes, offset, bit } = source;
        const first = start + Number(path[1] ?? 0);
        const index = Number(/\[(\d+)\]/.exec(text)?.[1] ?? 0);
        const ownBit = /\.(\d+)$/.exec(text)?.[1];
        // The place names the same element, or the same bit of it, as the address does.
        const place0 = bit === undefined ? first : first * bytes * 8 + offset * 8 + bit;
        const expected = bit === undefined ? index : ownBit === undefined ? index : index * bytes * 8 + Number(ownBit);
        expect([text, type, place0]).toEqual([text, type, expected]);
        if (row[2] !== "alone") expect(start + count).toBeLessThanOrEqual(row[2] === "array" ? WORDS : 1);
        const data = Buffer.alloc(Math.max(1, count * bytes));
        const slot: Slot = { quality: "good", value: 0 };
        expect(() => decoderOf(place, source, {}, new Map())(data, offset, data.length, slot)).not.toThrow();
      }
  });
});
