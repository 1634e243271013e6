import { expect, test } from "vitest";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const opc = (name: string, path: unknown, more: object = {}) => ({
  name,
  tagType: "AtomicTag",
  valueSource: "opc",
  dataType: "Float8",
  opcServer: "Ignition OPC UA Server",
  opcItemPath: path,
  ...more,
});
const folder = (name: string, ...tags: readonly object[]) => ({ name, tagType: "Folder", tags });
const read = (value: unknown, type = "modbus_tcp", device?: string) =>
  readList(JSON.stringify(value), { type, ...(device !== undefined && { device }) });

test("a tag export of Ignition: folders, scaling, units; tags that no device has are said once for each reason", async () => {
  const list = await read({
    name: "",
    tagType: "Provider",
    tags: [
      folder(
        "Line 3",
        opc("Speed", "ns=1;s=[Oven]HR1", {
          engUnit: "m/min",
          documentation: "of the belt",
          scaleMode: "Linear",
          rawLow: 0,
          rawHigh: 1000,
          scaledLow: 0,
          scaledHigh: 100,
        }),
        folder("Zone", opc("Old", "[Oven]IR7", { enabled: false, tooltip: "kept" })),
        { name: "Setpoint", tagType: "AtomicTag", valueSource: "memory", value: 1 },
        { name: "Sum", tagType: "AtomicTag", valueSource: "expr", expression: "1" },
        { name: "Other", tagType: "AtomicTag", valueSource: "memory" },
        opc("Curve", "ns=1;s=[Oven]HR9", { scaleMode: "SquareRoot" }),
        opc("Half", "ns=1;s=[Oven]HR9", { scaleMode: "Linear", rawHigh: 5 }),
        opc("Far", "ns=2;s=Channel1.Device1.Tag", { opcServer: "Plant UA" }),
      ),
    ],
  });
  expect([list?.program, list?.what, list?.read, [...(list?.devices ?? [])]]).toEqual(["Ignition", "tag export (JSON)", 8, [["Oven", 4]]]);
  expect(variablesOf(list)).toEqual([
    { name: "Line 3/Speed", address: "HR1", unit: "m/min", scaling: { factor: 0.1, offset: 0 }, comment: "of the belt" },
    { name: "Line 3/Zone/Old", address: "IR7", comment: "kept" },
  ]);
  expect(list?.variables.map(({ status }) => status)).toEqual(["ACTIVE", "INACTIVE"]);
  expect(problemsOf(list).map(([places, message]) => [places.split(" Line")[0], message.slice(0, 44)])).toEqual([
    ["Line 3/Setpoint", "is not read from a device: its value source "],
    ["Line 3/Sum", "is not read from a device: its value source "],
    ["Line 3/Curve", "the scale mode SquareRoot has no counterpart"],
    ["Line 3/Half", "its linear scaling lacks a raw or a scaled e"],
    ["Line 3/Far", 'is of the OPC server "Plant UA", not of a de'],
  ]);
  expect(list?.problems[0]?.count).toBe(2);
});

test("members of UDT instances: inherited, overridden, within each other, with parameters in their paths", async () => {
  const parameter = (binding: string) => ({ bindType: "parameter", binding });
  const types = folder(
    "_types_",
    {
      name: "Base",
      tagType: "UdtType",
      parameters: { Device: { dataType: "String", value: "Oven" }, At: 1 },
      tags: [opc("Value", parameter("ns=1;s=[{Device}]HR{At}"))],
    },
    folder("Drives", {
      name: "Motor",
      tagType: "UdtType",
      typeId: "Base",
      tags: [
        opc("Amps", parameter("ns=1;s=[{Device}]HR{At + 2}"), { engUnit: "A" }),
        opc("Bad", parameter("ns=1;s=[{Device}]HR{At*2}")),
        opc("Missing", parameter("ns=1;s=[{Nothing}]HR1")),
      ],
    }),
    {
      name: "Pair",
      tagType: "UdtType",
      parameters: { First: 100 },
      tags: [
        { name: "Inner", tagType: "UdtInstance", typeId: "[default]_types_/Base", parameters: { At: { value: parameter("{First}") } } },
      ],
    },
  );
  const list = await read({
    tags: [
      types,
      {
        name: "M1",
        tagType: "UdtInstance",
        typeId: "Drives/Motor",
        parameters: { At: { dataType: "Integer", value: 10 } },
        tags: [{ name: "Amps", tagType: "AtomicTag", engUnit: "mA" }],
      },
      { name: "P", tagType: "UdtInstance", typeId: "Pair", enabled: false },
      { name: "Q", tagType: "UdtInstance", typeId: "Elsewhere" },
    ],
  });
  expect(variablesOf(list)).toEqual([
    { name: "M1/Value", address: "HR10" },
    { name: "M1/Amps", address: "HR12", unit: "mA" },
    { name: "P/Inner/Value", address: "HR100" },
  ]);
  expect(list?.variables.map(({ status }) => status)).toEqual(["ACTIVE", "ACTIVE", "INACTIVE"]);
  expect(problemsOf(list)).toEqual([
    ["M1/Bad M1/Bad, M1/Missing M1/Missing", expect.stringContaining("has parameters that the file does not give")],
    ["Q Q", expect.stringContaining('its type "Elsewhere" is not in the file')],
  ]);
});

test("types that contain or inherit from themselves, or multiply, end", async () => {
  const instance = (name: string, typeId: string) => ({ name, tagType: "UdtInstance", typeId });
  const loop = { name: "Loop", tagType: "UdtType", tags: [instance("again", "Loop")] };
  const heir = { name: "Heir", tagType: "UdtType", typeId: "Heir", tags: [] };
  const looped = await read({ tags: [folder("_types_", loop, heir), instance("a", "Loop"), instance("b", "Heir")] });
  expect(problemsOf(looped).map(([, message]) => message)).toEqual([
    "is nested deeper than 50 levels",
    expect.stringContaining("inherits from itself"),
  ]);
  const levels = Array.from({ length: 20 }, (_, n) => ({
    name: `T${n}`,
    tagType: "UdtType",
    tags: Array.from({ length: 10 }, (_item, i) => instance(`i${i}`, `T${n + 1}`)),
  }));
  const many = await read({ tags: [folder("_types_", ...levels, { name: "T20", tagType: "UdtType", tags: [] }), instance("a", "T0")] });
  expect([many?.refused, problemsOf(many)[0]?.[1]]).toEqual([true, expect.stringContaining("once its types are filled in")]);
});

test("an OPC UA server as data source keeps the paths, by server", async () => {
  const value = [opc("a", "ns=1;s=[Oven]HR1"), opc("b", "ns=2;s=Line.b", { opcServer: "Plant UA" })];
  expect(variablesOf(await read(value, "opcua", "Plant UA"))).toEqual([{ name: "b", address: "ns=2;s=Line.b" }]);
  expect(variablesOf(await read(value, "opcua", "Ignition OPC UA Server"))).toEqual([{ name: "a", address: "ns=1;s=[Oven]HR1" }]);
});

test("a bank of a FINS device that has another meaning here is refused", async () => {
  const list = await read([opc("a", "ns=1;s=[Plc]E00100"), opc("b", "ns=1;s=[Plc]D<Int32>100")], "fins");
  expect([list?.variables.map(({ address }) => address), list?.problemCount]).toEqual([["D<Int32>100"], 1]);
});

test("parameters that double in each instance stay bounded", async () => {
  const parameters = { A: { value: "{A}{A}" } };
  const inner = { name: "x", typeId: "T", tagType: "UdtInstance", parameters };
  const item = { name: "p", valueSource: "opc", opcItemPath: "ns=1;s=[D]HR{A}" };
  const type = { name: "T", tagType: "UdtType", parameters, tags: [inner, item] };
  const tags = [
    { name: "_types_", tagType: "Folder", tags: [type] },
    { name: "i", tagType: "UdtInstance", typeId: "T", parameters: { A: { value: "1" } } },
  ];
  const list = await readList(JSON.stringify({ name: "", tags }));
  for (const { address } of list?.variables ?? []) expect(address.length).toBeLessThan(5000);
  expect(list?.problems.map(({ message }) => message)).toContain("is nested deeper than 50 levels");
});
