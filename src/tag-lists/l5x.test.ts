import fc from "fast-check";
import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import vendorA from "../../drivers/vendor_a/driver.ts";
import { TagFile } from "./format.ts";
import { l5x } from "./l5x.ts";
import { shownEntries } from "./testing-files.ts";

const read = async (text: string, type = "vendor_a") => (await shownEntries(l5x, new TagFile("a.L5X", Buffer.from(text)), { type })) ?? [];

const project = (parts: string): string => `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<RSLogix5000Content SchemaRevision="1.0" SoftwareRevision="33.01" TargetName="P" TargetType="Controller" ContainsContext="false">
<Controller Use="Target" Name="P" ProcessorType="1756-L83E">
${parts}
</Controller>
</RSLogix5000Content>`;

const tag = (name: string, type: string, more = ""): string => `<Tag Name="${name}" TagType="Base" DataType="${type}" ${more}/>`;
const alias = (name: string, of: string, more = 'ExternalAccess="Read/Write"'): string =>
  `<Tag Name="${name}" TagType="Alias" Radix="Decimal" AliasFor="${of}" ${more}/>`;

const TYPES = `<DataTypes>
<DataType Name="Motor" Family="NoFamily" Class="User">
<Description><![CDATA[of the type, not of a tag]]></Description>
<Members>
<Member Name="ZZZZZZZZZZMotor0" DataType="SINT" Dimension="0" Radix="Decimal" Hidden="true" ExternalAccess="Read/Write"/>
<Member Name="Running" DataType="BIT" Dimension="0" Hidden="false" Target="ZZZZZZZZZZMotor0" BitNumber="0" ExternalAccess="Read/Write">
<Description><![CDATA[
is on
]]></Description>
</Member>
<Member Name="Speeds" DataType="REAL" Dimension="4" Radix="Float" Hidden="false" ExternalAccess="Read Only"/>
<Member Name="Secret" DataType="DINT" Dimension="0" Hidden="false" ExternalAccess="None"/>
<Member Name="Label" DataType="Label20" Dimension="0" Hidden="false" ExternalAccess="Read/Write"/>
<Member Name="Wait" DataType="TIMER" Dimension="0" Hidden="false" ExternalAccess="Read/Write"/>
</Members>
</DataType>
<DataType Name="Label20" Family="StringFamily" Class="User">
<Members>
<Member Name="LEN" DataType="DINT" Dimension="0" Hidden="false" ExternalAccess="Read/Write"/>
<Member Name="DATA" DataType="SINT" Dimension="20" Radix="ASCII" Hidden="false" ExternalAccess="Read/Write"/>
</Members>
</DataType>
</DataTypes>
<AddOnInstructionDefinitions>
<AddOnInstructionDefinition Name="Valve" Revision="1.0">
<Parameters>
<Parameter Name="EnableIn" TagType="Base" DataType="BOOL" Usage="Input" Visible="false" ExternalAccess="Read Only"/>
<Parameter Name="Source" TagType="Base" DataType="DINT" Usage="InOut" Dimensions="5"/>
<Parameter Name="Open" TagType="Alias" AliasFor="State.0" Usage="Output" ExternalAccess="Read Only"/>
</Parameters>
<LocalTags>
<LocalTag Name="State" DataType="DINT" ExternalAccess="Read Only"><Description><![CDATA[inner state]]></Description></LocalTag>
<LocalTag Name="Own" DataType="DINT" ExternalAccess="None"/>
</LocalTags>
</AddOnInstructionDefinition>
</AddOnInstructionDefinitions>`;

/** The members of a Motor, below a name and an address. */
const motor = (line: number, name: string, address: string): readonly string[] => [
  `${line} ${name}.Running = ${address}.Running (is on)`,
  `${line} ${name}.Speeds = ${address}.Speeds`,
  `${line} ${name}.Secret: External Access in the controller: None. It cannot be read`,
  `${line} ${name}.Label = ${address}.Label`,
  ...["PRE", "ACC", "EN", "TT", "DN"].map((part) => `${line} ${name}.Wait.${part} = ${address}.Wait.${part}`),
];

/** The line of the first tag behind TYPES. */
const FIRST = 3 + TYPES.split("\n").length + 2;

test("tags of the controller and of programs, structures by their members, texts, arrays, and Add-On Instructions", async () => {
  const text = project(`${TYPES}
<Tags>
<Tag Name="Speed" TagType="Base" DataType="REAL" Radix="Float" Constant="false" ExternalAccess="Read/Write">
<Description>
<LocalizedDescription Lang="en-US"><![CDATA[speed of the line]]></LocalizedDescription>
<LocalizedDescription Lang="de-DE"><![CDATA[Tempo]]></LocalizedDescription>
</Description>
<Comments><Comment Operand=".0"><![CDATA[a bit]]></Comment></Comments>
<Data Format="L5K"><![CDATA[1.0]]></Data>
</Tag>
${tag("Grid", "DINT", 'Dimensions="2 3" ExternalAccess="Read Only"')}
${tag("Closed", "DINT", 'ExternalAccess="None"')}
${tag("Labels", "Label20", 'Dimensions="2"')}
${tag("M", "Motor")}
${tag("Ms", "motor", 'Dimensions="1 2"')}
${tag("V1", "Valve")}
${tag("Axis", "AXIS_CIP_DRIVE")}
${tag("Long", "SINT", 'Dimensions="70000"')}
</Tags>
<Programs>
<Program Name="Main" TestEdits="false">
<Description><![CDATA[of the program]]></Description>
<Tags>
${tag("Count", "DINT")}
${tag("M", "Motor")}
</Tags>
</Program>
</Programs>`);
  const at = FIRST;
  expect(await read(text)).toEqual([
    `${at} Speed = Speed (speed of the line)`,
    `${at + 8} Grid = Grid`,
    `${at + 9} Closed: External Access in the controller: None. It cannot be read`,
    `${at + 10} Labels = Labels`,
    ...motor(at + 11, "M", "M"),
    ...motor(at + 12, "Ms[0,0]", "Ms[0,0]"),
    ...motor(at + 12, "Ms[0,1]", "Ms[0,1]"),
    `${at + 13} V1.EnableIn = V1.EnableIn`,
    `${at + 13} V1.Source: an InOut parameter stands for another tag, which is a variable itself`,
    `${at + 13} V1.Open = V1.Open`,
    `${at + 13} V1.State = V1.State (inner state)`,
    `${at + 13} V1.Own: External Access in the controller: None. It cannot be read`,
    `${at + 14} Axis: the structure "AXIS_CIP_DRIVE" is not in this file; collector browse lists its members, which are variables`,
    `${at + 15} Long: it has 70000 elements, one variable at most 65535; add a part, for example Tag[0]{1000}`,
    `${at + 21} Main.Count = Program:Main.Count`,
    ...motor(at + 22, "Main.M", "Program:Main.M"),
  ]);
  for (const entry of await read(text)) {
    const address = / = ([^ ]+)/.exec(entry)?.[1];
    if (address !== undefined)
      expect(() => vendorA.parseAddress(address, typeOf(vendorA, "auto"), vendorA.settings.parse({})), address).not.toThrow();
  }
});

test("an alias is read at what it stands for: tags, members, elements, bits, other aliases, modules", async () => {
  const text = project(`${TYPES}
<Tags>
${tag("Word", "DINT", 'ExternalAccess="Read/Write"')}
${tag("Ms", "Motor", 'Dimensions="3"')}
${tag("Off", "DINT", 'ExternalAccess="None"')}
${alias("A", "Word")}
${alias("Bit", "A.5")}
${alias("Third", "Ms[2]")}
${alias("Part", "Third.Speeds[1]")}
${alias("Gone", "Ms[1].Nothing")}
${alias("Hid", "Ms[1].Secret")}
${alias("NoA", "Off")}
${alias("Shut", "Word", 'ExternalAccess="None"')}
${alias("In", "Local:1:I.Data.0")}
${alias("Loop", "Pool")}
${alias("Pool", "Loop")}
</Tags>
<Programs><Program Name="Main"><Tags>
${tag("Word", "INT")}
${alias("Own", "word")}
${alias("Theirs", "Ms[0].Running")}
</Tags></Program></Programs>`);
  const at = FIRST + 3;
  const closed = "External Access in the controller: None. It cannot be read";
  expect((await read(text)).filter((entry) => !/ (Ms|Word|Off|Main\.Word)\b/.test(entry.split(/ = |: /)[0] ?? ""))).toEqual([
    `${at} A = Word`,
    `${at + 1} Bit = Word.5`,
    ...motor(at + 2, "Third", "Ms[2]"),
    `${at + 3} Part = Ms[2].Speeds[1]`,
    `${at + 4} Gone: it is an alias of a member that its structure does not have`,
    `${at + 5} Hid: ${closed}`,
    `${at + 6} NoA: ${closed}`,
    `${at + 7} Shut: ${closed}`,
    `${at + 8} In = Local:1:I.Data.0`,
    `${at + 9} Loop: it is an alias of an alias without an end`,
    `${at + 10} Pool: it is an alias of an alias without an end`,
    `${at + 14} Main.Own = Program:Main.Word`,
    `${at + 15} Main.Theirs = Ms[0].Running`,
  ]);
});

const types = (count: number, members: (i: number) => string): string =>
  `<DataTypes>${Array.from({ length: count }, (_, i) => `<DataType Name="T${i}" Family="NoFamily"><Members>${members(i)}</Members></DataType>`).join("")}</DataTypes>`;
const inner = (name: string, type: string): string => `<Member Name="${name}" DataType="${type}" Dimension="0" Hidden="false"/>`;

test("expansion ends: arrays of structures, types that double, that contain themselves, that are long chains", async () => {
  expect(await read(project(`${TYPES}<Tags>${tag("Many", "Motor", 'Dimensions="1000000"')}</Tags>`))).toEqual([
    expect.stringMatching(/Many: it has 9000000 values, more than 10000: add those that are needed/),
  ]);
  const doubling = types(25, (i) => inner("a", `T${i + 1}`) + inner("b", `T${i + 1}`));
  expect(await read(project(`${doubling}<Tags>${tag("X", "T0")}</Tags>`))).toEqual([expect.stringMatching(/X: it has 33554432 values/)]);
  const endless = "its types contain themselves, or lie in each other too deep";
  const circle = types(2, (i) => inner("a", `T${1 - i}`));
  expect(await read(project(`${circle}<Tags>${tag("X", "T0")}</Tags>`))).toEqual([expect.stringContaining(endless)]);
  const chain = types(5000, (i) => inner("a", `T${i + 1}`));
  expect(await read(project(`${chain}<Tags>${tag("X", "T0")}</Tags>`))).toEqual([expect.stringContaining(endless)]);
});

test("a file that is broken is refused, and one of another kind is not taken", async () => {
  expect(await read(project("<Tags>"))).toEqual([
    expect.stringMatching(/^refused: it is not the XML of an export: line 5: Unexpected close tag/),
  ]);
  expect(await read(`<!DOCTYPE a [<!ENTITY b "c">]>${project(TYPES).split("\n").slice(1).join("\n")}`)).toEqual([
    expect.stringMatching(/^refused: .*DOCTYPE/),
  ]);
  expect(await read(project(TYPES))).toEqual(["refused: declares no tags; export the controller, or a program with its tags"]);
  expect(await read(project(TYPES), "s7")).toEqual([
    "refused: holds tags of a Logix controller, which data sources of the type vendor_a read, not s7",
  ]);
  expect(await shownEntries(l5x, new TagFile("a.xml", Buffer.from("<Tags/>")), { type: "vendor_a" })).toBeUndefined();
});

test("any elements in any order end in tags, problems or a refusal", async () => {
  const name = fc.constantFrom(
    "Tags",
    "Tag",
    "DataTypes",
    "DataType",
    "Members",
    "Member",
    "Programs",
    "Program",
    "Description",
    "Parameters",
  );
  const attributes = fc.constantFrom(
    "",
    'Name="A"',
    'Name="A" DataType="A"',
    'Name="B" AliasFor="A[0].b"',
    'Name="A" DataType="A" Dimensions="9 9"',
  );
  const { node } = fc.letrec<{ node: string }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 6 },
      fc.constant("x"),
      fc
        .tuple(name, attributes, fc.array(tie("node"), { maxLength: 3 }))
        .map(([element, given, children]) => `<${element} ${given}>${children.join("")}</${element}>`),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(fc.array(node, { maxLength: 5 }), async (elements) => {
      for (const entry of await read(project(elements.join("")))) expect(entry).not.toBe("");
    }),
    { numRuns: 200 },
  );
});

test("a structure without members that show is named, and costs no time, whatever its dimensions", async () => {
  const types =
    '<DataTypes><DataType Name="E" Family="NoFamily"><Members><Member Name="h" DataType="SINT" Hidden="true"/></Members></DataType></DataTypes>';
  const tags = [tag("a", "E"), tag("b", "E", 'Dimensions="2000000000 2000000000 2000000000"'), tag("c", "DINT", 'Dimensions="2 x"')];
  expect(await read(project(`${types}<Tags>\n${tags.join("\n")}\n</Tags>`))).toEqual([
    "5 a: its structure shows no members in this file; collector browse lists those that can be read",
    "6 b: its structure shows no members in this file; collector browse lists those that can be read",
    '7 c: its dimensions "2 x" are not up to three whole numbers',
  ]);
});
