import { expect, test } from "vitest";
import { problemsOf, readList, variablesOf } from "./testing.ts";

test("a list of Studio 5000: tags and aliases of the controller and of programs; structures and closed tags are named", async () => {
  const rows = [
    'remark,"CSV-Import-Export"',
    'remark,"Date = Mon Jun 16 08:00:00 2025"',
    'remark,"Version = RSLogix 5000 v33.00"',
    "0.3",
    "TYPE,SCOPE,NAME,DESCRIPTION,DATATYPE,SPECIFIER,ATTRIBUTES",
    'TAG,,Speed,"Speed$Nof the $Qline$Q, $00B0C","REAL","","(RADIX := Float, Constant := false, ExternalAccess := Read/Write)"',
    'TAG,MainProgram,Count,"","DINT[10]","","(RADIX := Decimal, ExternalAccess := Read Only)"',
    'ALIAS,,Door,"","","Local:1:I.Data.0","(RADIX := Decimal, ExternalAccess := Read/Write)"',
    'TAG,,Motor,"","UDT_Motor","","(Constant := false, ExternalAccess := Read/Write)"',
    'TAG,,Hidden,"","DINT","","(RADIX := Decimal, ExternalAccess := None)"',
    'COMMENT,,Speed,"a remark","","Speed",""',
    'RCOMMENT,,x,"","","",""',
  ];
  const list = await readList(`${rows.join("\r\n")}\r\n`, { type: "vendor_a" });
  expect([list?.program, list?.read]).toEqual(["Studio 5000", 5]);
  expect(variablesOf(list)).toEqual([
    { name: "Speed", address: "Speed", comment: 'Speed of the "line", °C' },
    { name: "MainProgram.Count", address: "Program:MainProgram.Count" },
    { name: "Door", address: "Door" },
  ]);
  expect(problemsOf(list)).toEqual([
    ["9 Motor", "UDT_Motor is a structure; collector browse lists its members, which are variables"],
    ["10 Hidden", "External Access in the controller: None. It cannot be read"],
  ]);
});
