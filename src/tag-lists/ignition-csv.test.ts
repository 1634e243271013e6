import { expect, test } from "vitest";
import { problemsOf, readList, variablesOf } from "./testing.ts";

test("a tag list of Ignition 7: its rows with a version, folders and tags that no device has", async () => {
  const rows = [
    "Path,Name,Owner,TagType,DataType,Value,Enabled,AccessRights,OPCServer,OPCItemPath,ScaleMode,RawLow,RawHigh,ScaledLow,ScaledHigh,EngUnit,Tooltip,Documentation",
    "# version=1",
    ",Line,,6",
    "Line/,Speed,,0,2,,TRUE,Read_Write,Ignition OPC-UA Server,[Oven]HR1,Linear,0,1000,0,100,m/min,,of the belt",
    "Line/,Old,,0,2,,FALSE,Read_Write,Ignition OPC-UA Server,[Oven]HR2,Off",
    "Line/,Memory,,1,7,hello,TRUE,Read_Write",
    "Line/,Motor,,10,,,TRUE",
  ];
  const list = await readList(`${rows.join("\r\n")}\r\n`);
  expect([list?.program, list?.what, list?.read]).toEqual(["Ignition", "tag list (CSV)", 4]);
  expect(variablesOf(list)).toEqual([
    { name: "Line/Speed", address: "HR1", unit: "m/min", scaling: { factor: 0.1, offset: 0 }, comment: "of the belt" },
    { name: "Line/Old", address: "HR2" },
  ]);
  expect(list?.variables[1]?.status).toBe("INACTIVE");
  expect(problemsOf(list)).toEqual([
    ["6 Line/Memory", "is a memory, expression or query tag"],
    ["7 Line/Motor", expect.stringContaining("is a UDT instance")],
  ]);
});
