import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import s7plus from "../../drivers/s7plus/driver.ts";
import { TagFile } from "./format.ts";
import { shownEntries, xlsx, zip } from "./testing-files.ts";
import { tiaTags } from "./tia-tags.ts";

const read = async (bytes: Uint8Array, type: string) => (await shownEntries(tiaTags, new TagFile("PLCTags.xlsx", bytes), { type })) ?? [];

const HEAD = [
  "Name",
  "Path",
  "Data Type",
  "Logical Address",
  "Comment",
  "Hmi Visible",
  "Hmi Accessible",
  "Hmi Writeable",
  "Typeobject ID",
  "Version ID",
];
const row = (name: string, type: string, address: string, comment = "", accessible = "True") => [
  ...[name, "Default tag table", type, address, comment, "True", accessible, "True", "", ""],
];
const TABLE = {
  "PLC Tags": [
    HEAD,
    row("Temp 1", "Int", "%IW64", "inlet"),
    row("Level", "Real", "%MD20"),
    row("Valve", "Bool", "%Q0.0"),
    row("Start", "Bool", "%E1.7"),
    row("Total", "LReal", "%M100.0"),
    row("In a block", "Word", "%DB1.DBW2"),
    row("Delay", "Timer", "%T5"),
    row("Parts", "Counter", "%C3"),
    row("Words", "Array[1..4] of Word", "%IW70"),
    row("Recipe", '"Recipe"', "%M200.0"),
    row("Hidden", "Byte", "%MB7", "", "False"),
    row("Nowhere", "Bool", ""),
    [],
  ],
  "TagTable Properties": [
    ["Path", "BelongsToUnit", "Accessibility"],
    ["Default tag table", "", ""],
  ],
};

test("tags for s7: their addresses and types", async () => {
  const entries = await read(xlsx(TABLE), "s7");
  expect(entries).toEqual([
    "PLC Tags, row 2 Temp 1 = IW64 INT (inlet)",
    "PLC Tags, row 3 Level = MD20 REAL",
    "PLC Tags, row 4 Valve = Q0.0 BOOL",
    "PLC Tags, row 5 Start = E1.7 BOOL",
    "PLC Tags, row 6 Total = M100.0 LREAL",
    "PLC Tags, row 7 In a block = DB1.DBW2 WORD",
    "PLC Tags, row 8 Delay = T5 TIMER",
    "PLC Tags, row 9 Parts = C3 COUNTER",
    "PLC Tags, row 10 Words = IW70 WORD[4]",
    'PLC Tags, row 11 Recipe: the type "Recipe" is a structure: add its members with collector variables add',
    "PLC Tags, row 12 Hidden = MB7 BYTE",
    "PLC Tags, row 13 Nowhere: it has no logical address",
  ]);
  for (const entry of entries) {
    const [, address = "", type = ""] = / = (\S+) (\S+)/.exec(entry) ?? [];
    if (address !== "") expect(() => s7.parseAddress(address, typeOf(s7, type), s7.settings.parse({})), entry).not.toThrow();
  }
});

test("tags for s7plus: their symbols", async () => {
  const entries = await read(xlsx(TABLE), "s7plus");
  expect(entries).toHaveLength(12);
  expect(entries[0]).toBe('PLC Tags, row 2 Temp 1 = "Temp 1" (inlet)');
  expect(entries[10]).toBe("PLC Tags, row 12 Hidden: it is not accessible from HMI/OPC UA: switch that on in the tag table");
  for (const entry of entries) {
    const address = / = ("[^"]*")/.exec(entry)?.[1];
    if (address !== undefined) expect(() => s7plus.parseAddress(address, undefined, s7plus.settings.parse({})), entry).not.toThrow();
  }
});

test("other spreadsheets, damaged ones and other types are refused; other files are not taken", async () => {
  expect(await read(xlsx({ A: [["Name", "Value"]], B: [] }), "s7")).toEqual([]);
  expect(await read(zip([{ name: "a.txt", content: "x" }]), "s7")).toEqual([
    "refused: the zip file holds no workbook of a spreadsheet (xl/workbook.xml)",
  ]);
  expect(await read(xlsx(TABLE).subarray(0, -30), "s7")).toEqual([expect.stringMatching(/^refused: the zip file is damaged or cut off/)]);
  expect(await read(xlsx(TABLE), "fins")).toEqual([
    "refused: holds tags of a SIMATIC S7, which data sources of the types s7 and s7plus read, not fins",
  ]);
  expect(
    await shownEntries(tiaTags, new TagFile("a.csv", Buffer.from("Name;Data Type;Logical Address\n")), { type: "s7" }),
  ).toBeUndefined();
});
