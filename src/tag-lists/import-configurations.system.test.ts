import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FinsMemory } from "../../drivers/fins/simulator-memory.ts";
import { startFinsPlc } from "../../drivers/fins/simulator-plc.ts";
import { put, registersOf, registersOfText, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { S7Memory, startS7Plc } from "../../drivers/s7/simulator.ts";
import { commandLine } from "../../test/support/command-line.ts";
import type { Variable } from "../model/variable.ts";
import { xlsx } from "./testing-files.ts";

const TELEGRAF = `[[inputs.modbus]]
name = "line"
controller = "tcp://127.0.0.1:502"
configuration_type = "request"
[[inputs.modbus.request]]
slave_id = 3
byte_order = "CDAB"
fields = [{ address=2, name="flow", type="FLOAT32", scale=0.5 }]
[[inputs.modbus.request]]
slave_id = 3
register = "coil"
fields = [{ address=7, name="run" }]
[[inputs.s7comm]]
server = "127.0.0.1:102"
[[inputs.s7comm.metric]]
fields = [{ name="speed", address="DB1.I4" }, { name="on", address="DB1.X0.1" }, { name="label", address="DB1.S6.5" }]
`;
const HOME_ASSISTANT = `modbus:
  - name: line
    type: tcp
    sensors:
      - {name: flow, address: 2, slave: 3, data_type: float32, swap: word, scale: 0.5}
      - {name: label, address: 6, slave: 3, data_type: string, count: 2}
    binary_sensors:
      - {name: run, address: 7, slave: 3}
`;
const NODE_RED = JSON.stringify([
  { id: "c", type: "modbus-client", name: "line", clienttype: "tcp", tcpHost: "127.0.0.1", tcpPort: "502", unit_id: 3 },
  { id: "r", type: "modbus-read", name: "words", unitid: "", dataType: "HoldingRegister", adr: "0", quantity: "2", server: "c" },
  {
    id: "e",
    type: "s7 endpoint",
    name: "press",
    vartable: [
      { addr: "DB1,INT4", name: "speed" },
      { addr: "DB1,X0.1", name: "on" },
      { addr: "DB1,S6.5", name: "label" },
    ],
  },
]);
const NEURON = xlsx({
  Sheet1: [
    ["group", "name", "address", "attribute", "type", "decimal"],
    ["line", "flow", "3!400003#BB", "Read", "FLOAT", "0.5"],
    ["line", "bit", "3!400001.1", "Read", "BIT", ""],
    ["line", "label", "3!400007.4H", "Read", "STRING", ""],
  ],
});

const CX_PROGRAMMER = `GlobalVariables:=
BEGIN
 VariableList:=
 BEGIN_LIST_$#[1]
  Speed,D100,INT,,,,;
  On,W10.03,BOOL,,,,;
  Lamp,100.05,BOOL,,,,;
 END_LIST_$#[1];
END;
`;
const ALSO = { modbus_tcp: [], s7: ["slot=2"], fins: ["local_address=0.0.0", "remote_address=0.10.0"] };
const TAG_TABLE = `<?xml version='1.0' encoding='utf-8'?>
<Tagtable name='Default'>
  <Tag type='Int' hmiAccessible='True' remark='' addr='%MW2'>Level</Tag>
</Tagtable>
`;

const OPENNESS = `<?xml version="1.0" encoding="utf-8"?>
<Document><Engineering version="V18" /><SW.Tags.PlcTagTable ID="0"><AttributeList><Name>Default tag table</Name></AttributeList><ObjectList>
<SW.Tags.PlcTag ID="1" CompositionName="Tags"><AttributeList><DataTypeName>Int</DataTypeName><ExternalAccessible>true</ExternalAccessible>
<LogicalAddress>%MW2</LogicalAddress><Name>Level</Name></AttributeList></SW.Tags.PlcTag>
</ObjectList></SW.Tags.PlcTagTable></Document>
`;
const SDF = '"Level","%MW2","Int","True","True","False","","","True"\n';
const OLD_SDF = '"Level","MW      2","INT",""\n';

test("configurations of Telegraf, Home Assistant, Node-RED, Neuron, CX-Programmer and TIA Portal are imported, and their values read from the simulators", {
  timeout: 60_000,
}, async () => {
  const { folder, well, run, write } = await commandLine();
  write("policy.yaml", "sources: {loopback: true}\n");
  const holding = new Map<number, number>();
  put(holding, 0, [2, 40_000]);
  // 2.5 with the low word first.
  put(holding, 2, registersOf("float32", 2.5).toReversed());
  put(holding, 6, registersOfText("M7", 2));
  const plant = await startModbusPlant({ units: new Map([[3, { holding, coil: new Map([[7, 1]]) }]]) });
  onTestFinished(() => plant.close());
  const memory = new S7Memory();
  memory.create("DB1", 20);
  memory.putBit("DB1", 0, 1, true);
  memory.put("DB1", 4, "INT", -1480);
  memory.put("DB1", 6, "STRING[5]", "M7");
  memory.create("M", 8);
  memory.put("M", 2, "INT", 321);
  const plc = await startS7Plc({ memory });
  onTestFinished(async () => void (await plc.close()));

  const omronMemory = new FinsMemory();
  for (const area of ["D", "W", "CIO"]) omronMemory.create(area, 200);
  omronMemory.put("D", 100, "INT", -1480);
  omronMemory.putBit("W", 10, 3, true);
  omronMemory.putBit("CIO", 100, 5, true);
  const omron = await startFinsPlc({ memory: omronMemory });
  onTestFinished(async () => void (await omron.close()));

  /** Imports a file, and gives each variable as it is read at its address with its type. */
  const taken = async (name: string, type: "modbus_tcp" | "s7" | "fins", content: string | Buffer) => {
    const source = `${name.replace(/\W/g, "-")}-${type}`;
    const { port } = { s7: plc, fins: omron, modbus_tcp: plant }[type];
    await well("source", "add", source, type, "host=127.0.0.1", `port=${port}`, ...ALSO[type]);
    writeFileSync(join(folder, name), content);
    const preview = JSON.parse((await run("variables", "import", source, join(folder, name), "--try", "--json")).out);
    const done = await run("variables", "import", source, join(folder, name));
    expect([done.code, done.err.includes("address")], done.err).toEqual([0, name.endsWith("xlsx")]);
    const variables = JSON.parse(await well("variables", "list", source, "--json")) as readonly Variable[];
    const words = variables.map(({ address, type: own }) => (own === null ? address : `${address}:${own}`));
    const { values } = JSON.parse(await well("read", source, ...words, "--json"));
    expect([preview.counts.created, preview.tried.ok]).toEqual([variables.length, true]);
    const tried = new Map(preview.tried.values.map((one: { name: string; value: unknown }) => [one.name, one.value]));
    return variables.map((variable, i) => [variable.name, values[i]?.value, tried.get(variable.name)]);
  };

  // Each as its registers hold it, and scaled.
  expect(await taken("telegraf.conf", "modbus_tcp", TELEGRAF)).toEqual([
    ["flow", 2.5, 1.25],
    ["run", true, true],
  ]);
  expect(await taken("configuration.yaml", "modbus_tcp", HOME_ASSISTANT)).toEqual([
    ["flow", 2.5, 1.25],
    ["label", "M7", "M7"],
    ["run", true, true],
  ]);
  expect(await taken("flows.json", "modbus_tcp", NODE_RED)).toEqual([["words", [2, 40_000], [2, 40_000]]]);
  expect(await taken("tags.xlsx", "modbus_tcp", NEURON)).toEqual([
    ["line.flow", 2.5, 1.25],
    ["line.bit", true, true],
    ["line.label", "M7", "M7"],
  ]);
  const press = [
    ["speed", -1480, -1480],
    ["on", true, true],
    ["label", "M7", "M7"],
  ];
  expect(await taken("telegraf.conf", "s7", TELEGRAF)).toEqual(press);
  expect(await taken("flows.json", "s7", NODE_RED)).toEqual(press);
  expect(await taken("line.cxt", "fins", CX_PROGRAMMER)).toEqual([
    ["Speed", -1480, -1480],
    ["On", true, true],
    ["Lamp", true, true],
  ]);
  for (const [name, content] of [
    ["tags.xml", TAG_TABLE],
    ["openness.xml", OPENNESS],
    ["tags.sdf", SDF],
    ["symbols.sdf", OLD_SDF],
  ] as const)
    expect(await taken(name, "s7", content)).toEqual([["Level", 321, 321]]);
});
