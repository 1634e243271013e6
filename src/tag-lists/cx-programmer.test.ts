import { expect, test } from "vitest";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const PROJECT = [
  ...['CXProgVer:="2.3";', 'Name:="T";', "Resource[0]:=", "BEGIN", ' Name:="R";', " GlobalVariables:=", " BEGIN", "  VariableList:="],
  ...["  BEGIN_LIST_$#[4]", '   GO,W10.00,BOOL,,,,"start, go";', "   Speed,D100,INT,,A,,;", "   Lot,D102,UDINT_BCD,,,,;"],
  ...["   Limit,&100,NUMBER,,,,;", "   Later,,BOOL,,,,;", '   ,100.05,BOOL,,,,"lamp";', "   Pause,T0005,TIMER,,,,;", "  END_LIST_$#[4];"],
  ...[
    "  VariableCount:=7;",
    " END;",
    " Programs:=",
    " BEGIN",
    "  Program[0]:=",
    "  BEGIN",
    '   Name:="Main";',
    "   LocalVariables:=",
    "   BEGIN",
  ],
  ...[
    "    VariableList:=",
    "    BEGIN_LIST_$#[8]",
    "     Flow,E0_20,REAL,,,,;",
    "    END_LIST_$#[8];",
    "   END;",
    "   Sections:=",
    "   BEGIN",
  ],
  ...[
    "    SL:=",
    "$?St$Bk?_#[11]",
    "'  VariableList:=",
    "BEGIN_LIST_$#[9]",
    "no,D1,INT,,,,;$?St$Bk?_#[11]",
    '    SecName:="S";',
    "   END;",
    "  END;",
  ],
  ...[" END;", "END;"],
].join("\r\n");

test("symbols of the controller and of its programs; constants and symbols without a place are named", async () => {
  const list = await readList(PROJECT, { type: "fins" });
  expect([list?.program, list?.what, list?.read]).toEqual(["CX-Programmer", "project (CXT)", 8]);
  expect(variablesOf(list)).toEqual([
    { name: "GO", address: "W10.00", type: "BOOL", comment: "start, go" },
    { name: "Speed", address: "D100", type: "INT" },
    { name: "Lot", address: "D102", type: "UDINT_BCD" },
    { name: "100.05", address: "100.05", type: "BOOL", comment: "lamp" },
    { name: "Pause", address: "T0005" },
    { name: "Main.Flow", address: "E0_20", type: "REAL" },
  ]);
  expect(problemsOf(list)).toEqual([
    ["13 Limit", "is a constant, which has no place in the memory"],
    ["14 Later", "has no address: CX-Programmer has not given it one yet"],
  ]);
  expect(list?.notes).toEqual([expect.stringMatching(/^timers and counters are read as BCD/)]);
});

test("a project that is cut off, or for another type of data source, is refused", async () => {
  expect((await readList(PROJECT.slice(0, PROJECT.indexOf("Limit")), { type: "fins" }))?.refused).toBe(true);
  expect((await readList(PROJECT.slice(0, PROJECT.indexOf("no,D1")), { type: "fins" }))?.refused).toBe(true);
  expect(problemsOf(await readList(PROJECT))[0]?.[1]).toMatch(/^holds symbols of an Omron controller/);
});
