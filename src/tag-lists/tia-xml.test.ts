import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const TABLE = `<?xml version='1.0' encoding='utf-8'?>
<Tagtable name='Motors &amp; pumps'>
  <Tag type='Real' hmiVisible='True' hmiWriteable='True' hmiAccessible='True' retain='False' remark='Speed &lt;rpm&gt;' addr='%MD20'>Motor &quot;A&quot;</Tag>
  <Tag type='Bool' hmiVisible='True' hmiWriteable='True' hmiAccessible='False' retain='False' remark='' addr='%Q1.2'>Valve</Tag>
  <Tag type='"Recipe"' hmiAccessible='True' remark='' addr='%M200.0'>Recipe</Tag>
  <Tag type='Int' hmiAccessible='True' remark='' addr=''>Nowhere</Tag>
  <Constant type='Int' remark='' value='222'>Limit</Constant>
</Tagtable>
`;
const tag = (id: number, name: string, type: string, address: string, comment: string, isAccessible = true): string =>
  `<SW.Tags.PlcTag ID="${id}" CompositionName="Tags"><AttributeList><DataTypeName>${type}</DataTypeName>
<ExternalAccessible>${isAccessible}</ExternalAccessible><LogicalAddress>${address}</LogicalAddress><Name>${name}</Name></AttributeList>
<ObjectList><MultilingualText ID="A${id}" CompositionName="Comment"><ObjectList>
<MultilingualTextItem ID="B${id}"><AttributeList><Culture>de-DE</Culture><Text /></AttributeList></MultilingualTextItem>
<MultilingualTextItem ID="C${id}"><AttributeList><Culture>en-US</Culture><Text>${comment}</Text></AttributeList></MultilingualTextItem>
</ObjectList></MultilingualText></ObjectList></SW.Tags.PlcTag>`;
const OPENNESS = `<?xml version="1.0" encoding="utf-8"?>
<Document><Engineering version="V18" /><SW.Tags.PlcTagTable ID="0"><AttributeList><Name>Default tag table</Name></AttributeList><ObjectList>
<SW.Tags.PlcUserConstant ID="9"><AttributeList><Name>Limit</Name><Value>3</Value></AttributeList></SW.Tags.PlcUserConstant>
${tag(1, "Temp 1", "Int", "%IW64", "inlet")}
${tag(2, "Hidden", "Word", "%MW10", "", false)}
</ObjectList></SW.Tags.PlcTagTable></Document>`;

test("the export of a tag table: addresses for s7, symbols for s7plus", async () => {
  const list = await readList(TABLE, { type: "s7" });
  expect([list?.program, list?.what]).toEqual(["TIA Portal", "PLC tags (XML)"]);
  expect(variablesOf(list)).toEqual([
    { name: 'Motor "A"', address: "MD20", type: "REAL", comment: "Speed <rpm>" },
    { name: "Valve", address: "Q1.2", type: "BOOL" },
  ]);
  for (const { address, type } of list?.variables ?? [])
    expect(() => s7.parseAddress(address, typeOf(s7, type ?? ""), s7.settings.parse({})), address).not.toThrow();
  expect(problemsOf(list)).toEqual([
    ["5 Recipe", 'the type "Recipe" is a structure: add its members with collector variables add'],
    ["6 Nowhere", "it has no logical address"],
  ]);
  const plus = await readList(TABLE, { type: "s7plus" });
  expect(plus?.variables.map(({ address }) => address)).toEqual(['"Motor ""A"""', '"Recipe"', '"Nowhere"']);
});

test("the export of Openness: comments of any language, constants left out", async () => {
  expect(variablesOf(await readList(OPENNESS, { type: "s7" }))).toEqual([
    { name: "Temp 1", address: "IW64", type: "INT", comment: "inlet" },
    { name: "Hidden", address: "MW10", type: "WORD" },
  ]);
  const plus = await readList(OPENNESS, { type: "s7plus" });
  expect([variablesOf(plus), plus?.problemCount]).toEqual([[{ name: "Temp 1", address: '"Temp 1"', comment: "inlet" }], 1]);
});

test("a file that is cut off, or for another type of data source, is refused", async () => {
  for (const text of [TABLE, OPENNESS]) {
    expect((await readList(text.slice(0, -30), { type: "s7" }))?.refused).toBe(true);
    expect(problemsOf(await readList(text))[0]?.[1]).toMatch(/^holds tags of a SIMATIC S7/);
  }
});

test("symbol tables of STEP 7 and TIA Portal (SDF): blanks in addresses, blocks, remarks", async () => {
  const v5 = await readList(
    '" "," "," ","a tool"\r\n"Pump","M     750.0","BOOL","runs"\r\n"Level","MD      20","REAL",""\r\n"Main","OB      1","OB      1",""\r\n',
    {
      type: "s7",
    },
  );
  expect([v5?.what, variablesOf(v5)]).toEqual([
    "symbol table (SDF)",
    [
      { name: "Pump", address: "M750.0", type: "BOOL", comment: "runs" },
      { name: "Level", address: "MD20", type: "REAL" },
    ],
  ]);
  expect(problemsOf(v5)).toEqual([["4 Main", "is the symbol of a block or table, and no value"]]);
  const tia = await readList(
    '"A","%I0.0","Bool","True","True","False","first, of all","","True"\n"B","%IW2","Int","True","True","False","say "x","y"","","True"\n',
    {
      type: "s7plus",
    },
  );
  expect(variablesOf(tia)).toEqual([{ name: "A", address: '"A"', comment: "first, of all" }]);
  expect(tia?.problems.map(({ message }) => message)).toEqual([expect.stringMatching(/closing "|fields; a symbol has/)]);
});

test("lists of ours and of others are not taken for symbol tables", async () => {
  for (const text of ['"name","address","type","unit"\n"a","M0.0","bool",""\n', '"a","b","c","d"\n', '""\n', "M,1,2,3\n"])
    expect((await readList(text, { type: "s7" }))?.what, text).toBeUndefined();
  const cut = await readList('"A","M 0.0","BOOL",""\n"B","M 0', { type: "s7" });
  expect(cut?.refused).toBe(true);
});
