import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import s7plus from "../../drivers/s7plus/driver.ts";
import { TagFile, type Wanted } from "./format.ts";
import { step7Blocks } from "./step7-blocks.ts";
import { shownEntries } from "./testing-files.ts";

const read = async (text: string, wanted: Wanted) =>
  (await shownEntries(step7Blocks, new TagFile("a.db", Buffer.from(text)), wanted)) ?? [];

const TYPES = `TYPE "Axis"
VERSION : 0.1
   STRUCT
      Position : LReal;   // mm
      Ready : Bool;
      "at end" : Bool;
   END_STRUCT;
END_TYPE
`;
const MEMBERS = `
   STRUCT
      Speed : Int;   // rpm
      Name : String[20];
      Names : Array[1..2] of String[3];
      Marks : Array[0..9] of Bool;
      Grid : Array[0..1, 1..3] of Int;
      Axes : Array[1..2] of "Axis";
      Secret { ExternalAccessible := 'False'} : Int;
      Stamp : DTL;
      Delay : IEC_TIMER;
      Last : Byte;
   END_STRUCT;
BEGIN
END_DATA_BLOCK
`;
const STANDARD = `${TYPES}DATA_BLOCK "Motor"\n{ S7_Optimized_Access := 'FALSE' }\nVERSION : 0.1\nNON_RETAIN${MEMBERS}`;
const OPTIMIZED = STANDARD.replace("FALSE", "TRUE");

test("a block with standard access: offsets for s7", async () => {
  const entries = await read(STANDARD, { type: "s7", blockNumbers: new Map([["", 12]]) });
  expect(entries).toEqual([
    "14 Motor.Speed = DB12.DBW0 INT (rpm)",
    "15 Motor.Name = DB12.DBB2 STRING(20)",
    "16 Motor.Names = DB12.DBB24 STRING(3)[2]",
    "17 Motor.Marks = DB12.DBX36.0 BOOL[10]",
    "18 Motor.Grid[0] = DB12.DBW38 INT[3]",
    "18 Motor.Grid[1] = DB12.DBW44 INT[3]",
    "19 Motor.Axes[1].Position = DB12.DBD50 LREAL (mm)".replace("19", "4"),
    "5 Motor.Axes[1].Ready = DB12.DBX58.0 BOOL",
    "6 Motor.Axes[1].at end = DB12.DBX58.1 BOOL",
    "4 Motor.Axes[2].Position = DB12.DBD60 LREAL (mm)",
    "5 Motor.Axes[2].Ready = DB12.DBX68.0 BOOL",
    "6 Motor.Axes[2].at end = DB12.DBX68.1 BOOL",
    "20 Motor.Secret = DB12.DBW70 INT",
    "21 Motor.Stamp = DB12.DBD72 DTL",
    "22 Motor.Delay: a IEC_TIMER is not read; name its members with collector variables add",
    "23 Motor.Last = DB12.DBB100 BYTE",
  ]);
  const cells = entries.flatMap((entry) => /= (\S+) (\S+)/.exec(entry)?.slice(1) ?? []);
  for (let i = 0; i < cells.length; i += 2)
    expect(() => s7.parseAddress(cells[i] ?? "", typeOf(s7, cells[i + 1] ?? ""), s7.settings.parse({})), cells[i]).not.toThrow();
});

test("any block: symbols for s7plus", async () => {
  const entries = await read(OPTIMIZED, { type: "s7plus" });
  expect(entries).toEqual([
    '14 Motor.Speed = "Motor".Speed (rpm)',
    '15 Motor.Name = "Motor".Name',
    '16 Motor.Names[1] = "Motor".Names[1]',
    '16 Motor.Names[2] = "Motor".Names[2]',
    '17 Motor.Marks = "Motor".Marks',
    ...[0, 1].flatMap((i) => [1, 2, 3].map((j) => `18 Motor.Grid[${i},${j}] = "Motor".Grid[${i},${j}]`)),
    ...[1, 2].flatMap((i) => [
      `4 Motor.Axes[${i}].Position = "Motor".Axes[${i}].Position (mm)`,
      `5 Motor.Axes[${i}].Ready = "Motor".Axes[${i}].Ready`,
      `6 Motor.Axes[${i}].at end = "Motor".Axes[${i}]."at end"`,
    ]),
    "20 Motor.Secret: it is not accessible from HMI/OPC UA: switch that on in the block's declaration",
    '21 Motor.Stamp = "Motor".Stamp',
    "22 Motor.Delay: a IEC_TIMER is not read; name its members with collector variables add",
    '23 Motor.Last = "Motor".Last',
  ]);
  for (const entry of entries) {
    const address = / = (.*?)(?: \(.*)?$/.exec(entry)?.[1];
    if (address !== undefined) expect(() => s7plus.parseAddress(address, undefined, s7plus.settings.parse({})), address).not.toThrow();
  }
});

test("a block that s7 cannot read yet is named with the option that helps", async () => {
  expect(await read(OPTIMIZED, { type: "s7" })).toEqual([
    expect.stringMatching(/^9 Motor: the block has optimised access, .* type s7plus/),
  ]);
  const unnumbered =
    '9 Motor: the file does not say the number of the data block: name it with --db 12, or --db "Motor=12" where there are several';
  expect(await read(STANDARD, { type: "s7" })).toEqual([unnumbered]);
  const two = `${STANDARD}DATA_BLOCK DB7\nSTRUCT a : INT; END_STRUCT;\nEND_DATA_BLOCK\n`;
  // One number cannot stand for two blocks.
  expect(await read(two, { type: "s7", blockNumbers: new Map([["", 12]]) })).toEqual([unnumbered, "28 DB7.a = DB7.DBW0 INT"]);
  const both = await read(two, { type: "s7", blockNumbers: new Map([["Motor", 5]]) });
  expect([both[0], both.at(-1)]).toEqual(["14 Motor.Speed = DB5.DBW0 INT (rpm)", "28 DB7.a = DB7.DBW0 INT"]);
  // A person's number wins, since blocks may be numbered again; a name that no block has is told.
  const renumbered = new Map([
    ["DB7", 8],
    ["Valve", 9],
  ]);
  expect(await read(two, { type: "s7", blockNumbers: renumbered })).toEqual([
    'note: --db: the file has no data block "Valve"',
    unnumbered,
    "28 DB7.a = DB8.DBW0 INT",
  ]);
  expect(await read(STANDARD, { type: "modbus_tcp" })).toEqual([
    "refused: holds data blocks of a SIMATIC S7, which data sources of the types s7 and s7plus read, not modbus_tcp",
  ]);
});

test("each elementary type has a word of the driver, and a structure hides its members from HMI", async () => {
  const words = [
    ...[
      "BOOL",
      "BYTE",
      "CHAR",
      "SINT",
      "USINT",
      "WORD",
      "INT",
      "UINT",
      "WCHAR",
      "DATE",
      "S5TIME",
      "DWORD",
      "DINT",
      "UDINT",
      "REAL",
      "TIME",
    ],
    ...["TOD", "TIME_OF_DAY", "LWORD", "LINT", "ULINT", "LREAL", "LTIME", "LTOD", "LTIME_OF_DAY", "DT", "DATE_AND_TIME", "LDT"],
    ...["DATE_AND_LTIME", "DTL", "STRING", "WSTRING", "WSTRING[7]"],
  ];
  const members = words.map((word, i) => `m${i} : ${word}; a${i} : ARRAY[1..3] OF ${word};`).join("\n");
  const entries = await read(`DATA_BLOCK DB1\nSTRUCT\n${members}\nEND_STRUCT;\nEND_DATA_BLOCK`, { type: "s7" });
  expect(entries).toHaveLength(words.length * 2);
  for (const entry of entries) {
    const [, address = "", word = ""] = / = (\S+) (\S+)/.exec(entry) ?? [];
    const type = typeOf(s7, word);
    expect(type, entry).toBeDefined();
    expect(() => s7.parseAddress(address, type, s7.settings.parse({})), entry).not.toThrow();
  }
  const hidden =
    "DATA_BLOCK \"A\"\nSTRUCT\ns { ExternalAccessible := 'False'} : STRUCT\nx : INT;\nEND_STRUCT;\nEND_STRUCT;\nEND_DATA_BLOCK";
  expect(await read(hidden, { type: "s7plus" })).toEqual([
    "4 A.s.x: it is not accessible from HMI/OPC UA: switch that on in the block's declaration",
  ]);
});

test("a type that the file lacks costs what follows it for s7, and itself for s7plus", async () => {
  const lacking = STANDARD.slice(TYPES.length);
  const numbered = await read(lacking, { type: "s7", blockNumbers: new Map([["", 1]]) });
  expect(numbered.slice(6)).toEqual([
    ...[1, 2].map((i) => `11 Motor.Axes[${i}]: the type "Axis" is not in this file; export it with the block`),
    "11 Motor: what follows in the block has no known place, because a type before it is not known",
    "12 Motor.Secret: it has no known place, because a type before it is not known",
    "13 Motor.Stamp: it has no known place, because a type before it is not known",
    "14 Motor.Delay: a IEC_TIMER is not read; name its members with collector variables add",
    "15 Motor.Last: it has no known place, because a type before it is not known",
  ]);
  expect((await read(lacking, { type: "s7plus" })).filter((entry) => entry.includes(" = "))).toHaveLength(13);
  const instance = 'DATA_BLOCK DB3\n"FB_Valve"\nBEGIN\nEND_DATA_BLOCK\n';
  expect(await read(instance, { type: "s7" })).toEqual([
    '1 DB3: the block is of the type "FB_Valve", which is not in this file; export it with the block',
  ]);
  expect(await read(TYPES, { type: "s7" })).toEqual([
    "refused: declares no data block; export the block itself, with the PLC data types that it uses",
  ]);
});

test("arrays of structures are taken up to a bound", async () => {
  const many = `${TYPES}DATA_BLOCK DB1\nSTRUCT\na : Array[1..4000] of "Axis";\nb : Array[1..50000] of Int;\nEND_STRUCT;\nEND_DATA_BLOCK`;
  expect(await read(many, { type: "s7" })).toEqual([
    "11 DB1.a: it has 12000 values, more than 10000: add those that are needed with collector variables add",
    "12 DB1.b = DB1.DBW40000 INT[50000]",
  ]);
  const own = 'TYPE "A"\nSTRUCT a : "A"; END_STRUCT;\nEND_TYPE\nDATA_BLOCK DB1\nSTRUCT\nx : "A";\nEND_STRUCT;\nEND_DATA_BLOCK';
  expect(await read(own, { type: "s7" })).toEqual(["6 DB1.x: its types contain themselves, or lie in each other too deep"]);
});

test("a block that is cut off refuses the file, since what follows is missing too", async () => {
  const cut = "DATA_BLOCK DB7\nSTRUCT\nq : INT;\nEND_STRUCT;\nEND_DATA_BLOCK\nDATA_BLOCK DB8\nSTRUCT\nq : INT; r : RE";
  expect(await read(cut, { type: "s7" })).toEqual(["6 refused: DATA_BLOCK has no END_DATA_BLOCK: the rest of the file is missing"]);
});

test("a place beyond 2^31 bits is not another place", async () => {
  const far = "DATA_BLOCK DB1\nSTRUCT\na : ARRAY[0..536870911] OF BYTE;\nb : INT;\nc : BOOL;\nEND_STRUCT;\nEND_DATA_BLOCK";
  const entries = await read(far, { type: "s7" });
  expect(entries.slice(1)).toEqual(["4 DB1.b = DB1.DBW536870912 INT", "5 DB1.c = DB1.DBX536870914.0 BOOL"]);
  expect(() => s7.parseAddress("DB1.DBW536870912", typeOf(s7, "INT"), s7.settings.parse({}))).toThrow();
});

test("an array of structures without members holds no value, whatever its bounds", async () => {
  const empty = "DATA_BLOCK DB1\nSTRUCT\na : ARRAY[0..2000000000] OF STRUCT END_STRUCT;\nb : INT;\nEND_STRUCT;\nEND_DATA_BLOCK";
  expect(await read(empty, { type: "s7" })).toEqual(["4 DB1.b = DB1.DBW0 INT"]);
});
