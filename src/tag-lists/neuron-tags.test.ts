import { expect, test } from "vitest";
import { typeOf } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { problemsOf, readList, variablesOf } from "./testing.ts";
import { xlsx } from "./testing-files.ts";

const HEAD = ["group", "interval", "name", "address", "attribute", "type", "description", "decimal", "precision", "bias"];
const row = (name: string, address: string, type: string, more: readonly string[] = [], attribute = "Read") => [
  ...["line", "1000", name, address, attribute, type, ...more],
];
const TAGS = xlsx({
  Sheet1: [
    HEAD,
    row("word", "1!400001", "UINT16", ["of the belt"]),
    row("swapped", "1!400002#BB", "FLOAT", ["", "0.1"]),
    row("plain", "1!400004", "INT32", ["", "", "", "-5"]),
    row("bit", "2!400010.4", "BIT"),
    row("text", "2!400010.4", "STRING"),
    row("coil", "1!000001", "BIT", [], "Read Subscribe"),
    row("out", "1!000002", "BIT", [], "Write"),
    row("fixed", "", "INT16", [], "Static"),
    row("json", "1!400020", "JSON"),
    row("both", "1!400021", "INT16", ["", "2", "", "3"]),
    row("old", "1!400022", "FLOAT", ["", "3", "0.1"]),
  ],
});

test("tags of Neuron: groups, types, decimal and bias; what is not clear is named by its row", async () => {
  const list = await readList(TAGS);
  expect([list?.program, list?.what, list?.read, list?.problemCount]).toEqual(["EMQX Neuron", "tags (XLSX)", 11, 5]);
  expect(variablesOf(list)).toEqual([
    { name: "line.word", address: "1!400001", type: "uint16", comment: "of the belt" },
    { name: "line.swapped", address: "1!400002#BB", type: "float32", scaling: { factor: 0.1, offset: 0 } },
    { name: "line.plain", address: "1!400004", type: "int32", scaling: { factor: 1, offset: -5 } },
    { name: "line.bit", address: "2/holding:9.4", type: "bool" },
    { name: "line.text", address: "2!400010.4L" },
    { name: "line.coil", address: "1!000001", type: "bool" },
  ]);
  expect(problemsOf(list)).toEqual([
    ["Sheet1, row 8 line.out", "is write-only"],
    ["Sheet1, row 9 line.fixed", expect.stringMatching(/^is a static tag/)],
    ["Sheet1, row 10 line.json", 'the type "JSON" has no counterpart here; give the variable a type of its own'],
    ["Sheet1, row 11 line.both", expect.stringMatching(/^it has a decimal and a bias/)],
    ["Sheet1, row 12 line.old", expect.stringMatching(/^its precision is not a number of digits/)],
  ]);
  expect(list?.notes).toEqual([
    expect.stringMatching(/^the addresses are read with Neuron's start address 1/),
    expect.stringMatching(/^an address without #/),
  ]);
  const bit = list?.variables.find(({ name }) => name === "line.bit");
  expect(() => modbus.parseAddress(bit?.address ?? "", typeOf(modbus, "bool"), modbus.settings.parse({}))).not.toThrow();
});

test("a device that says its types keeps them; a spreadsheet of another program is refused with what is known", async () => {
  const opcua = xlsx({ Sheet1: [HEAD, row("a", "2!Temp", "FLOAT")] });
  expect(variablesOf(await readList(opcua, { type: "opcua" }))).toEqual([{ name: "line.a", address: "2!Temp" }]);
  expect(problemsOf(await readList(xlsx({ A: [["x", "y"]] })))[0]?.[1]).toMatch(/^has no sheet with the columns Name, Data Type/);
  expect((await readList(TAGS.subarray(0, 300)))?.refused).toBe(true);
});
