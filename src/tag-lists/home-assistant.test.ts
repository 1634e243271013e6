import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { FORMATS, YAML_FORMATS } from "./index.ts";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const HUBS = `homeassistant:
  auth: !secret key
modbus:
  - name: heating
    type: tcp
    host: 192.0.2.7
    sensors:
      - {name: flow, address: 10, slave: 2, unit_of_measurement: "°C", scale: 0.1, offset: -40}
      - name: power
        address: 0x20
        device_address: 3
        input_type: input
        data_type: float32
        swap: word
        precision: 1
      - {name: total, address: 30, slave: 1, data_type: uint64, swap: word_byte, count: 4}
      - {name: label, address: 40, slave: 1, data_type: string, count: 5, swap: byte}
      - {name: turned, address: 40, slave: 1, data_type: string, count: 5, swap: word}
      - {name: own, address: 50, slave: 1, data_type: custom, structure: ">hh", count: 2}
      - {name: wide, address: 50, slave: 1, data_type: int32, count: 4}
      - {name: many, address: 60, slave: 1, virtual_count: 3}
      - {name: secret, address: !secret place, slave: 1}
      - {name: none, address: 61}
    binary_sensors:
      - {name: pump, address: 7, slave: 1}
      - {name: door, address: 8, slave: 1, input_type: discrete_input}
      - {name: flag, address: 9, slave: 1, input_type: holding}
    switches:
      - {name: valve, address: 11, write_type: coil}
`;

test("sensors and binary sensors: areas, types, swaps, scales; entities that write, and what is not clear, are named by line", async () => {
  const list = await readList(HUBS);
  expect([list?.program, list?.what, list?.read, [...(list?.devices ?? [])]]).toEqual([
    "Home Assistant",
    "configuration (YAML)",
    14,
    [["heating", 14]],
  ]);
  expect(variablesOf(list)).toEqual([
    { name: "flow", address: "2/holding:10@ABCD", type: "int16", unit: "°C", scaling: { factor: 0.1, offset: -40 } },
    { name: "power", address: "3/input:32@CDAB", type: "float32" },
    { name: "total", address: "1/holding:30@DCBA", type: "uint64" },
    { name: "label", address: "1/holding:40@BADC", type: "string(10)" },
    { name: "none", address: "holding:61@ABCD", type: "int16" },
    { name: "pump", address: "1/coil:7", type: "bool" },
    { name: "door", address: "1/discrete:8", type: "bool" },
    { name: "flag", address: "1/holding:9.0@ABCD", type: "bool" },
  ]);
  for (const { address, type } of list?.variables ?? [])
    expect(() => modbus.parseAddress(address, typeOf(modbus, type ?? ""), modbus.settings.parse({})), address).not.toThrow();
  expect(problemsOf(list)).toEqual([
    ["18 turned", "a text whose registers are reversed is not read"],
    ["19 own", 'the data_type "custom" has no counterpart here; add it with collector variables add'],
    ["20 wide", "its count is 4, and int32 takes 2"],
    ["21 many", "stands for several, by virtual_count; add each with collector variables add"],
    ["22 secret", "its address, unit, bit or length is not a whole number in range"],
    ["29 valve", "is a switch; sensors and binary_sensors are read"],
  ]);
  expect(list?.notes).toEqual([expect.stringMatching(/^precision, min_value/), expect.stringMatching(/^some sensors name no slave/)]);
});

test("a file of hubs, several hubs, aliases and merges", async () => {
  const list = await readList(`- name: a
  type: tcp
  sensors:
    - &base {name: one, address: 1, slave: 1, data_type: int32}
    - {<<: *base, name: two, address: 3}
- type: serial
  port: /dev/ttyUSB0
  sensors:
    - *base
`);
  expect(variablesOf(list)).toMatchObject([
    { name: "one", address: "1/holding:1@ABCD", type: "int32" },
    { name: "two", address: "1/holding:3@ABCD", type: "int32" },
  ]);
  expect([...(list?.devices ?? [])]).toEqual([
    ["a", 2],
    ["modbus_hub", 1],
  ]);
  expect(list?.notes).toEqual([expect.stringMatching(/^modbus_hub: Home Assistant reads it over serial/)]);
});

test("a file that is broken or lies elsewhere is refused, without a quotation of its lines", async () => {
  const broken = await readList('modbus:\n  - name: a\n    password: "secret\n  b\n');
  expect([broken?.refused, JSON.stringify(broken).includes("secret")]).toEqual([true, false]);
  expect(problemsOf(await readList("modbus: !include modbus.yaml\n"))).toEqual([
    ["1", "has its Modbus devices in another file: import that one"],
  ]);
  expect(problemsOf(await readList(HUBS, { type: "s7" }))[0]?.[1]).toMatch(/^holds devices of Modbus/);
  expect(problemsOf(await readList(`modbus:\n${"[".repeat(300_000)}`))[0]?.[1]).toMatch(/^is not valid YAML/);
  const bomb = `modbus:\n - name: x\n   a: &a [1,1,1,1,1,1,1,1,1]\n   b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n   c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n   sensors:\n    - {name: s, address: 1, x: [*c,*c,*c,*c,*c,*c,*c,*c,*c]}\n`;
  expect(problemsOf(await readList(bomb))).toEqual([["7", "its aliases stand for too much"]]);
});

test("a YAML list of ours stays one", () => {
  expect(YAML_FORMATS.every((format) => FORMATS.includes(format))).toBe(true);
});
