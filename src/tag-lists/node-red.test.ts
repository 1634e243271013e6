import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const read = (id: string, more: object) => ({ id, type: "modbus-read", name: "", unitid: "", server: "c1", ...more });
const FLOWS = [
  { id: "t", type: "tab", label: "Flow" },
  read("r1", { name: "Coils", unitid: "3", dataType: "Coil", adr: "0", quantity: "16" }),
  read("r2", { dataType: "Input", adr: "5", quantity: "1" }),
  read("r3", { name: "Holding", dataType: "HoldingRegister", adr: "100", quantity: "10", d: true }),
  read("r4", { name: "Inputs", type: "modbus-getter", dataType: "InputRegister", adr: "7", quantity: "2" }),
  read("r5", { name: "Bad", dataType: "HoldingRegister", adr: "x", quantity: "2" }),
  { id: "r6", type: "modbus-flex-getter", name: "Flex", server: "c1" },
  { id: "c1", type: "modbus-client", name: "Meter", clienttype: "tcp", tcpHost: "192.0.2.7", tcpPort: "502", unit_id: 4 },
  {
    id: "e1",
    type: "s7 endpoint",
    name: "",
    address: "192.0.2.8",
    vartable: [
      { addr: "DB1,X0.1", name: "run" },
      { addr: "DB1,R2", name: "speed" },
    ],
  },
];

test("reading nodes of Modbus are lists of registers and bits, with the unit of the node or of its client", async () => {
  const list = await readList(JSON.stringify(FLOWS));
  expect([list?.program, list?.what, list?.read, [...(list?.devices ?? [])]]).toEqual(["Node-RED", "flows (JSON)", 6, [["Meter", 6]]]);
  expect(variablesOf(list)).toEqual([
    { name: "Coils", address: "3/coil:0[16]", type: "bool" },
    { name: "Input 5", address: "4/discrete:5", type: "bool" },
    { name: "Holding", address: "4/holding:100[10]", type: "uint16" },
    { name: "Inputs", address: "4/input:7[2]", type: "uint16" },
  ]);
  expect(list?.variables.map(({ status }) => status)).toEqual(["ACTIVE", "ACTIVE", "INACTIVE", "ACTIVE"]);
  for (const { address, type } of list?.variables ?? [])
    expect(() => modbus.parseAddress(address, typeOf(modbus, type ?? ""), modbus.settings.parse({})), address).not.toThrow();
  expect(problemsOf(list)).toEqual([
    ["Meter, node r5 Bad", "its address, unit, bit or length is not a whole number in range"],
    ["Meter, node r6 Flex", "is a modbus-flex-getter, whose addresses come with messages and are not in the file"],
  ]);
  expect(list?.notes).toEqual([expect.stringMatching(/^a reading node of Node-RED gives whole registers/)]);
});

test("variables of node-red-contrib-s7, also from what the API of Node-RED gives", async () => {
  const list = await readList(JSON.stringify({ rev: "1", flows: FLOWS }), { type: "s7" });
  expect([variablesOf(list), [...(list?.devices.keys() ?? [])]]).toEqual([
    [
      { name: "run", address: "DB1,X0.1" },
      { name: "speed", address: "DB1,R2" },
    ],
    ["192.0.2.8"],
  ]);
});

test("flows for another type of data source are refused", async () => {
  expect(problemsOf(await readList(JSON.stringify(FLOWS), { type: "opcua" }))[0]?.[1]).toMatch(/^holds variables of node-red-contrib-s7/);
  expect(problemsOf(await readList(JSON.stringify(FLOWS.slice(0, -1)), { type: "s7" }))[0]?.[1]).toMatch(/^has no s7 endpoint node/);
});
