import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { S7Memory, startS7Plc } from "../../drivers/s7/simulator.ts";
import { startS7PlusPlc } from "../../drivers/s7plus/simulator.ts";
import { LogixProgram, startCipDevice } from "../../drivers/vendor_a/simulator.ts";
import { commandLine } from "../../test/support/command-line.ts";
import type { Variable } from "../model/variable.ts";
import { xlsx } from "./testing-files.ts";

const L5X = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<RSLogix5000Content SchemaRevision="1.0" SoftwareRevision="33.01" TargetName="Line" TargetType="Controller">
<Controller Use="Target" Name="Line">
<DataTypes><DataType Name="Motor" Family="NoFamily" Class="User"><Members>
<Member Name="ZZZZZZZZZZMotor0" DataType="SINT" Dimension="0" Hidden="true" ExternalAccess="Read/Write"/>
<Member Name="Running" DataType="BIT" Dimension="0" Hidden="false" Target="ZZZZZZZZZZMotor0" BitNumber="0" ExternalAccess="Read/Write"/>
<Member Name="Speeds" DataType="REAL" Dimension="2" Hidden="false" ExternalAccess="Read Only"/>
<Member Name="Name" DataType="STRING" Dimension="0" Hidden="false" ExternalAccess="Read/Write"/>
</Members></DataType></DataTypes>
<Tags>
<Tag Name="Total" TagType="Base" DataType="DINT" ExternalAccess="Read/Write"/>
<Tag Name="Motors" TagType="Base" DataType="Motor" Dimensions="2" ExternalAccess="Read/Write"/>
<Tag Name="Door" TagType="Alias" AliasFor="Motors[1].Running" ExternalAccess="Read/Write"/>
<Tag Name="Closed" TagType="Base" DataType="DINT" ExternalAccess="None"/>
</Tags>
<Programs><Program Name="Main"><Tags><Tag Name="Cycle" TagType="Base" DataType="DINT"/></Tags></Program></Programs>
</Controller>
</RSLogix5000Content>`;

const blockSource = (isOptimized: boolean): string => `TYPE "Axis"
VERSION : 0.1
   STRUCT
      Position : LReal;   // mm
      Ready : Bool;
   END_STRUCT;
END_TYPE
DATA_BLOCK "Motor"
{ S7_Optimized_Access := '${isOptimized ? "TRUE" : "FALSE"}' }
VERSION : 0.1
NON_RETAIN
   STRUCT
      On : Bool;
      Faults : Array[0..2] of Bool;
      Speed : Int;
      Name : String[5];
      Axes : Array[1..2] of "Axis";
   END_STRUCT;
BEGIN
END_DATA_BLOCK
`;

const TAGS = xlsx({
  "PLC Tags": [
    ["Name", "Path", "Data Type", "Logical Address", "Comment", "Hmi Visible", "Hmi Accessible", "Hmi Writeable"],
    ["Temp 1", "Default tag table", "Real", "%MD20", "inlet", "True", "True", "True"],
    ["Valve", "Default tag table", "Bool", "%Q4.1", "", "True", "True", "True"],
  ],
});

const AXES = [
  { name: "Position", type: "LREAL", value: 0.25 },
  { name: "Ready", type: "BOOL", value: true },
];

test("an L5X file, a tag table and a data block are imported, and their variables read from the simulators", {
  timeout: 60_000,
}, async () => {
  const { folder, run, well, write } = await commandLine();
  write("policy.yaml", "sources: {loopback: true}\n");
  const file = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  /** Names and values of a source's variables, each read at its address with its type. */
  const readAll = async (source: string): Promise<object> => {
    const variables = JSON.parse(await well("variables", "list", source, "--json")) as readonly Variable[];
    const words = variables.map(({ address, type }) => (type === null ? address : `${address}:${type}`));
    const { values } = JSON.parse(await well("read", source, ...words, "--json"));
    return Object.fromEntries(variables.map(({ name }, i) => [name, values[i]?.value]));
  };
  const close = (device: { close(): unknown }): void => onTestFinished(async () => void (await device.close()));

  const program = new LogixProgram();
  program.structure("Motor", [
    ["Running", "BOOL"],
    ["Speeds", "REAL[2]"],
    ["Name", "STRING"],
  ]);
  program.tag("Total", "DINT", -7);
  program.tag("Motors", "Motor[2]", [
    { Running: false, Speeds: [1.5, 2.5], Name: "left" },
    { Running: true, Speeds: [3.5, 4.5], Name: "right" },
  ]);
  program.tag("Closed", "DINT", 1, { access: "none" });
  program.program("Main");
  program.tag("Cycle", "DINT", 77, { program: "Main" });
  const logix = await startCipDevice({ program });
  close(logix);
  await well("source", "add", "logix", "vendor_a", "host=127.0.0.1", `port=${logix.port}`);
  expect(await run("variables", "import", "logix", file("line.L5X", L5X))).toMatchObject({
    code: 1,
    out: expect.stringContaining("logix: 9 created"),
    err: expect.stringMatching(/line\.L5X:14: Closed: External Access in the controller: None\. It cannot be read\n$/),
  });
  expect(await readAll("logix")).toEqual({
    Total: -7,
    "Motors[0].Running": false,
    "Motors[0].Speeds": [1.5, 2.5],
    "Motors[0].Name": "left",
    "Motors[1].Running": true,
    "Motors[1].Speeds": [3.5, 4.5],
    "Motors[1].Name": "right",
    Door: true,
    "Main.Cycle": 77,
  });

  const values = {
    "Motor.On": true,
    "Motor.Faults": [false, true, true],
    "Motor.Speed": -1480,
    "Motor.Name": "M7",
    "Motor.Axes[1].Position": 0.25,
    "Motor.Axes[1].Ready": false,
    "Motor.Axes[2].Position": -4,
    "Motor.Axes[2].Ready": true,
    "Temp 1": -12.625,
    Valve: true,
  };
  const memory = new S7Memory();
  memory.create("DB12", 34);
  memory.putBit("DB12", 0, 0, true);
  memory.putBit("DB12", 2, 1, [true, true]);
  memory.put("DB12", 4, "INT", -1480);
  memory.put("DB12", 6, "STRING[5]", "M7");
  memory.put("DB12", 14, "LREAL", 0.25);
  memory.put("DB12", 24, "LREAL", -4);
  memory.putBit("DB12", 32, 0, true);
  memory.create("M", 32);
  memory.put("M", 20, "REAL", -12.625);
  memory.create("Q", 8);
  memory.putBit("Q", 4, 1, true);
  const plc = await startS7Plc({ memory });
  close(plc);
  await well("source", "add", "press", "s7", "host=127.0.0.1", `port=${plc.port}`, "slot=2");
  const tags = file("PLCTags.xlsx", TAGS);
  const block = file("Motor.db", blockSource(false));
  const unnumbered = await run("variables", "import", "press", block);
  expect([unnumbered.code, unnumbered.err]).toEqual([2, expect.stringContaining("name it with --db 12")]);
  await well("variables", "import", "press", block, "--db", "12");
  await well("variables", "import", "press", tags);
  expect(await readAll("press")).toEqual(values);

  const plus = await startS7PlusPlc({
    program: {
      structures: { Axis: AXES },
      blocks: [
        {
          number: 3,
          name: "Motor",
          fields: [
            { name: "On", type: "BOOL", value: true },
            { name: "Faults", type: "BOOL", bounds: [[0, 2]], value: [false, true, true] },
            { name: "Speed", type: "INT", value: -1480 },
            { name: "Name", type: "STRING[5]", value: "M7" },
            { name: "Axes", type: "Axis", bounds: [[1, 2]] },
          ],
        },
      ],
      tags: {
        M: [{ name: "Temp 1", type: "REAL", value: -12.625 }],
        Q: [{ name: "Valve", type: "BOOL", value: true }],
        I: [],
        T: [],
        C: [],
      },
    },
  });
  close(plus);
  plus.program.put('"Motor".Axes[1].Ready', false);
  plus.program.put('"Motor".Axes[2].Position', -4);
  await well("source", "add", "plus", "s7plus", "host=127.0.0.1", `port=${plus.port}`);
  await well("variables", "import", "plus", file("Motor.scl", blockSource(true)));
  await well("variables", "import", "plus", tags);
  expect(await readAll("plus")).toEqual(values);
});
