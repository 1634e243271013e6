import { expect, test } from "vitest";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const tag = (name: string, address: string, type: number, more: object = {}) => ({
  "common.ALLTYPES_NAME": name,
  "common.ALLTYPES_DESCRIPTION": "",
  "servermain.TAG_ADDRESS": address,
  "servermain.TAG_DATA_TYPE": type,
  "servermain.TAG_READ_WRITE_ACCESS": 1,
  "servermain.TAG_SCAN_RATE_MILLISECONDS": 100,
  "servermain.TAG_SCALING_TYPE": 0,
  ...more,
});
const UNIT = "Kepware reads this device as unit 3: set unit=3 on the data source";
const LINEAR = {
  "servermain.TAG_SCALING_TYPE": 1,
  "servermain.TAG_SCALING_RAW_LOW": 0,
  "servermain.TAG_SCALING_RAW_HIGH": 1000,
  "servermain.TAG_SCALING_SCALED_LOW": -50,
  "servermain.TAG_SCALING_SCALED_HIGH": 50,
  "servermain.TAG_SCALING_NEGATE_VALUE": false,
  "servermain.TAG_SCALING_UNITS": "°C",
};
const device = (name: string, tags: readonly object[], more: object = {}) => ({
  "common.ALLTYPES_NAME": name,
  "servermain.MULTIPLE_TYPES_DEVICE_DRIVER": "Modbus TCP/IP Ethernet",
  "servermain.DEVICE_ID_STRING": "<192.0.2.7>.1",
  tags,
  ...more,
});
const project = (...devices: readonly object[]) =>
  JSON.stringify({ project: { "servermain.PROJECT_TITLE": "", channels: [{ "common.ALLTYPES_NAME": "Hall", devices }] } });

test("a project of Kepware: groups, types by number, scaling; what cannot be read is said by its path", async () => {
  const list = await readList(
    project(
      device(
        "Oven",
        [
          tag("Speed", "400001", 5, { ...LINEAR, "common.ALLTYPES_DESCRIPTION": "of the belt" }),
          tag("Flow", "400003", 8),
          tag("Stamp", "400009", 12),
        ],
        {
          "servermain.DEVICE_ID_STRING": "<192.0.2.7>.3",
          tag_groups: [
            {
              "common.ALLTYPES_NAME": "Zone",
              tag_groups: [
                {
                  "common.ALLTYPES_NAME": "One",
                  tags: [tag("On", "000001", 1), tag("Root", "400010", 5, { "servermain.TAG_SCALING_TYPE": 2 })],
                },
              ],
            },
          ],
        },
      ),
    ),
  );
  expect([list?.program, list?.what, list?.read]).toEqual(["Kepware", "project (JSON)", 5]);
  expect(variablesOf(list)).toEqual([
    { name: "Speed", address: "400001", type: "uint16", unit: "°C", scaling: { factor: 0.1, offset: -50 }, comment: "of the belt" },
    { name: "Flow", address: "400003@CDAB", type: "float32" },
    { name: "Zone.One.On", address: "000001", type: "bool" },
  ]);
  expect(problemsOf(list)).toEqual([
    ["Hall.Oven.Stamp Stamp", "the data type Date has no counterpart here; give the variable a type of its own"],
    ["Hall.Oven.Zone.One.Root Zone.One.Root", "the scaling Square Root has no counterpart here; only Linear has"],
  ]);
  expect([list?.translated, list?.notes]).toEqual([
    { count: 1, example: { from: "400003", to: "400003@CDAB" } },
    [expect.stringMatching(/^the device does not say the order of words: First Word Low is taken/), UNIT],
  ]);
});

test("the settings of a Modbus device decide what its addresses mean", async () => {
  const read = async (settings: Readonly<Record<string, boolean>>) => {
    const more = Object.fromEntries(Object.entries(settings).map(([key, value]) => [`modbus_ethernet.DEVICE_${key}`, value]));
    const tags = [
      tag("word", "40001", 5),
      tag("float", "400003", 8),
      tag("double", "400005", 9),
      tag("bit", "400007.1", 1),
      tag("many", "400009 [3]", 28),
      tag("text", "400020.10H", 0),
      tag("coil", "000001", 1),
    ];
    const list = await readList(project(device("D", tags, more)));
    return [...(list?.variables ?? []).map(({ address }) => address), ...(list?.problems ?? []).map(({ message }) => message.slice(0, 30))];
  };
  expect(await read({ FIRST_WORD_LOW: false, FIRST_DWORD_LOW: false })).toEqual([
    "40001",
    "400003@ABCD",
    "400005@ABCD",
    "400007.1",
    "400009[3]@ABCD",
    "400020.10H",
    "000001",
  ]);
  expect(await read({ ZERO_BASED_ADDRESSING: false, ZERO_BASED_BIT_ADDRESSING: false, FIRST_DWORD_LOW: false })).toEqual([
    "40002",
    "400004@CDAB",
    "400007.0".replace("7", "8"),
    "400010[3]@CDAB",
    "400021.10H",
    "000002",
    "the words of a value of 64 bit",
  ]);
  expect(await read({ MODBUS_BYTE_ORDER: false, MODICON_BIT_ORDER: true })).toEqual([
    "40001@BADC",
    "400003@DCBA",
    "400005@DCBA",
    "400007.14",
    "400009[3]@DCBA",
    "000001",
    "the order of its characters is",
  ]);
});

test("answers of the Configuration API are read: a device, a channel, a list of tags", async () => {
  const one = device("Oven", [tag("a", "400001", 5)]);
  const names = async (value: unknown) => {
    const list = await readList(JSON.stringify(value));
    return [list?.variables.map(({ name }) => name), [...(list?.devices.keys() ?? [])]];
  };
  expect(await names(one)).toEqual([["a"], ["Oven"]]);
  expect(await names({ "common.ALLTYPES_NAME": "Hall", devices: [one] })).toEqual([["a"], ["Hall.Oven"]]);
  expect(await names([tag("b", "400002", 5), tag("c", "400003", 5)])).toEqual([["b", "c"], []]);
  expect(await names([{ "common.ALLTYPES_NAME": "Zone", tags: [tag("d", "400002", 5)] }])).toEqual([["Zone.d"], []]);
});

test("for a data source that is an OPC UA server, the addresses are those of Kepware's own server", async () => {
  const list = await readList(project(device("Oven", [tag("a", "400001", 5, LINEAR)]), device("Press", [tag("a", "400001", 5)])), {
    type: "opcua",
  });
  expect(variablesOf(list)).toEqual([
    { name: "Hall.Oven.a", address: "ns=2;s=Hall.Oven.a", unit: "°C" },
    { name: "Hall.Press.a", address: "ns=2;s=Hall.Press.a" },
  ]);
  expect(list?.devices.size).toBe(0);
});

test("a broken project, and one of another program, are refused with the reason", async () => {
  const whole = project(device("Oven", [tag("a", "400001", 5)]));
  const cut = await readList(whole.slice(0, -20));
  expect([cut?.refused, problemsOf(cut)[0]?.[1]]).toEqual([
    true,
    expect.stringMatching(/^is not valid JSON: a text that is not closed, or not expected, at line 1, column \d+$/),
  ]);
  const other = await readList('{"nodes":[{"id":1}]}');
  expect(problemsOf(other)[0]?.[1]).toMatch(/^is JSON, but not a project of Kepware/);
});

test("a device of another Modbus driver of Kepware has its settings under another name; LBCD takes two registers", async () => {
  const settings = { "modbus_rtu.DEVICE_ZERO_BASED_ADDRESSING": false, "modbus_rtu.DEVICE_FIRST_WORD_LOW": false };
  const list = await readList(project(device("D", [tag("float", "400003", 8), tag("lot", "400005", 11)], settings)));
  expect(variablesOf(list)).toEqual([
    { name: "float", address: "400004@ABCD", type: "float32" },
    { name: "lot", address: "400006@ABCD", type: "LBCD" },
  ]);
  expect(list?.notes).toEqual([]);
});

test("tags without their device have the remark about the order of words", async () => {
  const list = await readList(JSON.stringify([tag("b", "400002", 8)]));
  expect(list?.notes).toEqual([expect.stringMatching(/^the list does not say the order of words/)]);
});
