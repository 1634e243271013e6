import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const REGISTER = `[agent]
  interval = "10s"
[[outputs.influxdb]]
  password = "secret"
[[inputs.modbus]]
  name = "Press"
  slave_id = 3
  controller = "tcp://192.0.2.7:502"
  coils = [{ name = "run", address = [0] }]
  discrete_inputs = [{ name = "door", address = [4] }]
  holding_registers = [
    { name = "speed",  byte_order = "AB",       data_type = "INT16",        scale = 1.0,   address = [8] },
    { name = "energy", byte_order = "CDAB",     data_type = "UFIXED",       scale = 0.001, address = [5,6], measurement = "meter" },
    { name = "flow",   byte_order = "DCBA",     data_type = "FLOAT32-IEEE", scale = 2.0,   address = [10,11] },
    { name = "total",  byte_order = "GHEFCDAB", data_type = "INT64",        scale = 1.0,   address = [20,21,22,23] },
    { name = "high",   byte_order = "AB",       data_type = "UINT8H",       scale = 1.0,   address = [30] },
    { name = "gap",    byte_order = "ABCD",     data_type = "INT32",        scale = 1.0,   address = [40,42] },
    { name = "short",  byte_order = "AB",       data_type = "INT32",        scale = 1.0,   address = [44] },
    { name = "odd",    byte_order = "ACBD",     data_type = "INT32",        scale = 1.0,   address = [46,47] },
    { name = "\${NAME}", byte_order = "AB",    data_type = "INT16",        scale = 1.0,   address = [48] },
  ]
  input_registers = [{ name = "level", byte_order = "BA", data_type = "INT16", scale = 0.1, address = [0] }]
`;

test("the style register: areas, units, orders of bytes and words, types, scales", async () => {
  const list = await readList(REGISTER);
  expect([list?.program, list?.what, list?.read, [...(list?.devices ?? [])]]).toEqual([
    "Telegraf",
    "configuration (TOML)",
    12,
    [["Press", 12]],
  ]);
  const variables = variablesOf(list);
  expect(variables).toEqual([
    { name: "run", address: "3/coil:0", type: "bool" },
    { name: "door", address: "3/discrete:4", type: "bool" },
    { name: "speed", address: "3/holding:8@ABCD", type: "int16" },
    { name: "meter.energy", address: "3/holding:5@CDAB", type: "uint32", scaling: { factor: 0.001, offset: 0 } },
    { name: "flow", address: "3/holding:10@DCBA", type: "float32", scaling: { factor: 2, offset: 0 } },
    { name: "total", address: "3/holding:20@CDAB", type: "int64" },
    { name: "high", address: "3/holding:30@BADC", type: "uint8" },
    { name: "level", address: "3/input:0@DCBA", type: "int16", scaling: { factor: 0.1, offset: 0 } },
  ]);
  for (const { address, type } of list?.variables ?? [])
    expect(() => modbus.parseAddress(address, typeOf(modbus, type ?? ""), modbus.settings.parse({})), address).not.toThrow();
  expect(problemsOf(list)).toEqual([
    ["Press, holding_registers, gap gap", "its address, unit, bit or length is not a whole number in range"],
    ["Press, holding_registers, short short", "its type takes 2 registers, and its address names 1"],
    ["Press, holding_registers, odd odd", 'the byte order "ACBD" is not known'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file
    ["Press, holding_registers, ${NAME} ${NAME}", expect.stringContaining("comes from the environment")],
  ]);
  expect(list?.notes).toEqual([expect.stringMatching(/^Telegraf drops the digits/)]);
});

test("the styles request and metric: fields that are omitted, several units, bits and texts", async () => {
  const list = await readList(`[[inputs.modbus]]
name = "Line"
controller = "tcp://192.0.2.7:502"
configuration_type = "request"
[[inputs.modbus.request]]
slave_id = 1
byte_order = "LSW-BE"
register = "holding"
fields = [{ address=0, name="u", type="INT32", scale=0.1 }, { address=2, name="x", type="INT16", omit=true }]
[[inputs.modbus.request]]
slave_id = 2
register = "input"
measurement = "m"
fields = [{ address=0, name="u", type="FLOAT64" }, { address=9, name="u9", type="INT16", scale=0.5, output="INT64" }]
[[inputs.modbus.request]]
slave_id = 2
fields = [{ address=0, name="u", type="INT16" }]
[[inputs.modbus]]
controller = "file:///dev/ttyUSB0"
configuration_type = "metric"
[[inputs.modbus.metric]]
slave_id = 4
byte_order = "DCBA"
fields = [{ register="coil", address=7, name="c" }, { address=8, name="b", type="BIT", bit=3 }, { address=9, name="t", type="STRING", length=4 }]
`);
  expect(variablesOf(list)).toEqual([
    { name: "1/u", address: "1/holding:0@CDAB", type: "int32", scaling: { factor: 0.1, offset: 0 } },
    { name: "m.u", address: "2/input:0@ABCD", type: "float64" },
    { name: "m.u9", address: "2/input:9@ABCD", type: "int16", scaling: { factor: 0.5, offset: 0 } },
    { name: "2/u", address: "2/holding:0@ABCD", type: "int16" },
    { name: "c", address: "4/coil:7", type: "bool" },
    { name: "b", address: "4/holding:8.3@DCBA", type: "bool" },
    { name: "t", address: "4/holding:9@DCBA", type: "string(8)" },
  ]);
  expect([...(list?.devices.keys() ?? [])]).toEqual(["Line", "file:///dev/ttyUSB0"]);
  expect(list?.notes).toEqual([
    expect.stringMatching(/^Telegraf drops the digits/),
    expect.stringMatching(/^file:\/\/\/dev\/ttyUSB0: Telegraf does not read it over Modbus TCP/),
  ]);
});

const OTHERS = `[[inputs.s7comm]]
server = "192.0.2.8:102"
[[inputs.s7comm.metric]]
name = "oven"
fields = [{ name="rpm", address="DB1.R4" }, { name="ok", address="DB1.X2.1" }]
[[inputs.opcua]]
name = "plant"
endpoint = "opc.tcp://user:secret@192.0.2.9:4840"
nodes = [{name="temp", namespace="3", identifier_type="s", identifier="Temperature"}]
[[inputs.opcua.group]]
name = "pumps"
namespace = "4"
identifier_type = "i"
nodes = [{name="one", identifier="1001"}, {name="two", namespace="5", identifier="1002"}]
`;

test("inputs.s7comm and inputs.opcua, with the defaults of groups", async () => {
  const s7 = await readList(OTHERS, { type: "s7" });
  expect([variablesOf(s7), [...(s7?.devices.keys() ?? [])]]).toEqual([
    [
      { name: "oven.rpm", address: "DB1.R4" },
      { name: "oven.ok", address: "DB1.X2.1" },
    ],
    ["192.0.2.8:102"],
  ]);
  const opcua = await readList(OTHERS, { type: "opcua" });
  expect([variablesOf(opcua), [...(opcua?.devices.keys() ?? [])]]).toEqual([
    [
      { name: "temp", address: "ns=3;s=Temperature" },
      { name: "pumps.one", address: "ns=4;i=1001" },
      { name: "pumps.two", address: "ns=5;i=1002" },
    ],
    ["opc.tcp://192.0.2.9:4840"],
  ]);
});

test("a plugin for another type of data source, and a text that is not TOML, are refused; a line of it is never quoted", async () => {
  expect(problemsOf(await readList(OTHERS))[0]?.[1]).toBe(
    "has nothing for a data source of the type modbus_tcp; it has inputs.s7comm for data sources of the type s7, inputs.opcua for data sources of the type opcua",
  );
  const broken = await readList(`${REGISTER}password = "secret\n`);
  expect([broken?.refused, JSON.stringify(broken).includes("secret")]).toEqual([true, false]);
  expect(problemsOf(broken)[0]?.[1]).toMatch(/^is not valid TOML at line \d+, column \d+/);
  expect((await readList(REGISTER.slice(0, 700)))?.refused).toBe(true);
});

test("any text behind a plugin ends in time", async () => {
  for (const text of [
    "[".repeat(200_000),
    `a = ${"[".repeat(200_000)}`,
    `a = ${"{a=".repeat(100_000)}`,
    "# x\n".repeat(300_000),
    `"a".`.repeat(50_000),
  ])
    expect(await readList(`[[inputs.modbus]]\n${text}`)).toBeDefined();
  const proto = await readList('[[inputs.modbus]]\nname="a"\n[inputs.__proto__]\nb=1\n');
  expect(({} as Record<string, unknown>)["b"]).toBeUndefined();
  expect(proto).toBeDefined();
});
