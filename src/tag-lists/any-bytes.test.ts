import fc from "fast-check";
import { expect, test } from "vitest";
import { readList } from "./testing.ts";
import { xlsx } from "./testing-files.ts";

const BEGINNINGS = [
  "",
  "PK\x03\x04",
  "<?xml version='1.0'?><RSLogix5000Content><Controller><Tags><Tag Name='A' DataType='A' ",
  "DATA_BLOCK \"A\"\n{ S7_Optimized_Access := 'FALSE' }\nSTRUCT\n a : ",
  'TYPE "A"\nSTRUCT a : "A"; END_STRUCT END_TYPE DATA_BLOCK DB1 "A" BEGIN ',
];

test("any bytes behind the beginning of any kind of file end in tags, problems, or nothing", async () => {
  const spreadsheet = xlsx({
    "PLC Tags": [
      ["Name", "Data Type", "Logical Address"],
      ["a", "Int", "%MW0"],
    ],
  }).toString("latin1");
  const start = fc.constantFrom(...BEGINNINGS, spreadsheet.slice(0, -60), spreadsheet.slice(0, 200));
  const type = fc.constantFrom("vendor_a", "s7", "s7plus", "modbus_tcp", "nothing");
  await fc.assert(
    fc.asyncProperty(start, fc.uint8Array({ maxLength: 60 }), type, async (before, behind, of) => {
      const bytes = Buffer.concat([Buffer.from(before, "latin1"), Buffer.from(behind)]);
      const list = await readList(bytes, { type: of, blockNumbers: new Map([["", 1]]) });
      if (list?.refused) expect([list.variables.length, list.problems.length > 0]).toEqual([0, true]);
    }),
    { numRuns: 300 },
  );
});

const tia = (name: string): string => `<Tag type='Int' hmiAccessible='True' remark='r' addr='%MW${name.length}2'>${name}</Tag>`;
/** One small file of each kind that is a text whose end can be told, with the type of data source that reads it. */
const SAMPLES: Readonly<Record<string, readonly [type: string, text: string]>> = {
  "Kepware JSON": [
    "modbus_tcp",
    JSON.stringify([
      { "common.ALLTYPES_NAME": "A", "servermain.TAG_ADDRESS": "400012", "servermain.TAG_DATA_TYPE": 5 },
      { "common.ALLTYPES_NAME": "B", "servermain.TAG_ADDRESS": "400034", "servermain.TAG_DATA_TYPE": 5 },
    ]),
  ],
  "Ignition CSV": ["modbus_tcp", "Path,Name,TagType,OPCServer,OPCItemPath,Enabled\n,A,0,,[D]HR12,TRUE\n,B,0,,[D]HR345,TRUE\n"],
  "Ignition JSON": [
    "modbus_tcp",
    JSON.stringify({ name: "", tags: [{ name: "A", tagType: "AtomicTag", valueSource: "opc", opcItemPath: "ns=1;s=[D]HR12" }] }),
  ],
  "Studio 5000 CSV": [
    "vendor_a",
    'TYPE,SCOPE,NAME,DESCRIPTION,DATATYPE,SPECIFIER,ATTRIBUTES\nTAG,,Aa,"x","DINT","",""\nTAG,P,Bb,"","INT","",""\n',
  ],
  L5X: [
    "vendor_a",
    '<RSLogix5000Content><Controller><Tags><Tag Name="Aa" DataType="DINT"/><Tag Name="Bb" DataType="INT" Dimensions="12"/></Tags></Controller></RSLogix5000Content>',
  ],
  "a data block": [
    "s7",
    "DATA_BLOCK DB12\nSTRUCT\n a : INT;\n b : ARRAY[0..12] OF BYTE; // c\n d : REAL := 1.5;\nEND_STRUCT;\nBEGIN\n a := 12;\nEND_DATA_BLOCK\n",
  ],
  "a tag table": ["s7", `<?xml version='1.0'?><Tagtable name='T'>${tia("Aa")}${tia("Bbb")}</Tagtable>`],
  "a symbol table": [
    "s7",
    '"A","%MW12","Int","True","True","False","say so","","True"\n"B","%MW345","Int","True","True","False","","","True"\n',
  ],
  "an old symbol table": ["s7", '"A","MW 12","INT","say so"\n"B","MW 345","INT",""\n'],
  Telegraf: [
    "modbus_tcp",
    '[[inputs.modbus]]\nname = "D"\nslave_id = 12\nholding_registers = [\n { name = "a", byte_order = "AB", data_type = "INT16", scale = 1.5, address = [12] },\n]\n',
  ],
  "Node-RED": [
    "modbus_tcp",
    JSON.stringify([{ id: "r", type: "modbus-read", name: "A", unitid: "12", dataType: "Coil", adr: "345", quantity: "16", server: "c" }]),
  ],
  "CX-Programmer": [
    "fins",
    'G:=\nBEGIN\n VariableList:=\n BEGIN_LIST_$#[1]\n  Aa,D100,INT,,,,"c";\n  Bb,W10.12,BOOL,,,,;\n END_LIST_$#[1];\nEND;\n',
  ],
};

test.each(Object.keys(SAMPLES))("%s that is cut at any place gives variables of the whole file, or none", async (kind) => {
  const [type, text] = SAMPLES[kind] ?? ["", ""];
  const of = async (some: string) => {
    const list = await readList(some, { type });
    return (list?.variables ?? []).map(({ comment: _, ...rest }) => JSON.stringify(rest));
  };
  const whole = await of(text);
  expect(whole.length).toBeGreaterThan(0);
  for (let cut = 0; cut < text.length; cut++)
    for (const variable of await of(text.slice(0, cut))) expect(whole, text.slice(0, cut)).toContain(variable);
});

test.each([
  ["Home Assistant", "modbus_tcp", "modbus:\n  - name: h\n    type: tcp\n    sensors:\n      - name: abc\n        address: 12"],
  [
    "Telegraf",
    "opcua",
    '[[inputs.opcua]]\nendpoint = "opc.tcp://h"\n[[inputs.opcua.nodes]]\nname = "a"\nnamespace = 1\nidentifier_type = "i"\nidentifier = 12',
  ],
])("%s that ends inside a line is refused, and is taken with its line end", async (_, type, text) => {
  const [cut, whole] = [await readList(text, { type }), await readList(`${text}\n`, { type })];
  expect(cut?.variables ?? []).toEqual([]);
  expect(JSON.stringify(cut?.problems)).toContain("may be cut off: add one where the file is whole");
  expect(whole?.variables).toHaveLength(1);
});
