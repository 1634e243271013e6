import { expect, test } from "vitest";
import { parseTagList } from "./tag-list.ts";
import { parseVariableCsv } from "./variable-file.ts";

const bytes = (lines: readonly string[]) => Buffer.from(`${lines.join("\r\n")}\r\n`);

const KEPWARE =
  "Tag Name,Address,Data Type,Respect Data Type,Client Access,Scan Rate,Scaling,Raw Low,Raw High,Scaled Low,Scaled High,Scaled Data Type,Clamp Low,Clamp High,Eng Units,Description,Negate Value";

test("a list of KEPServerEX: names, addresses, types, scaling, units and descriptions; what has no counterpart is named", () => {
  const list = parseTagList(
    bytes([
      KEPWARE,
      '"Line.Speed","400001",Word,1,R/W,100,Linear,0,1000,0,100,Double,0,0,"m/min","Speed, of the line",0',
      '"Level",400003,Float,1,RO,100,,,,,,,,,"","",',
      '"Temp",400005,Short,1,R/W,100,Linear,-100,100,-10,10,Double,0,0,"°C","",1',
      '"Falling",400006,Short,1,R/W,100,Linear,0,10,20,10,Double,0,0,"","",0',
      '"Name","400100.20H",String,1,RO,100,,,,,,,,,"","",',
      '"Words","400200 [4]",Word Array,1,RO,100,,,,,,,,,"","",',
      '"Stamp",400300,Date,1,RO,100,,,,,,,,,"","",',
      '"Flow",400301,Float,1,RO,100,Square Root,0,1,0,1,Float,0,0,"","",',
      '"Flat",400303,Word,1,RO,100,Linear,5,5,0,1,Float,0,0,"","",',
      '"Command",400400,Word,1,WO,100,,,,,,,,,"","",',
      '"Line.Speed",400001,Word,1,RO,100,,,,,,,,,"","",',
    ]),
  );
  expect(list?.program).toBe("KEPServerEX");
  const shown = list?.variables.map(({ name, address, type, unit, scaling, comment }) => [
    name,
    address,
    type,
    unit,
    scaling?.factor,
    scaling?.offset,
    comment,
  ]);
  expect(shown).toEqual([
    ["Line.Speed", "400001", "uint16", "m/min", 0.1, 0, "Speed, of the line"],
    ["Level", "400003", "float32", null, undefined, undefined, null],
    ["Temp", "400005", "int16", "°C", -0.1, 0, null],
    ["Falling", "400006", "int16", null, -1, 20, null],
    ["Name", "400100.20H", null, null, undefined, undefined, null],
    ["Words", "400200 [4]", null, null, undefined, undefined, null],
  ]);
  expect(list?.problems.map(({ line, message }) => `${line}: ${message}`)).toEqual([
    "8: Stamp: the data type Date has no counterpart here; give the variable a type of its own",
    "9: Flow: the scaling Square Root has no counterpart here; only Linear has",
    "10: Flat: its scaling is not a line: Raw Low equals Raw High, or Scaled Low equals Scaled High",
    "11: Command: is write-only",
    expect.stringMatching(/^12: name: "Line\.Speed" is already in line 2/),
  ]);
  // With the other delimiter, as the program writes it on request.
  expect(
    parseTagList(bytes([KEPWARE.replaceAll(",", ";"), '"A";400001;Word;1;RO;100;Linear;0;10;0;0,5;;;;;;'].map(String)))?.variables,
  ).toMatchObject([{ name: "A", type: "uint16", scaling: { factor: 0.05, offset: 0 } }]);
});

test("a list of Studio 5000: tags and aliases of the controller and of programs; structures and closed tags are named", () => {
  const list = parseTagList(
    bytes([
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
    ]),
  );
  expect(list?.program).toBe("Studio 5000");
  expect(list?.variables).toMatchObject([
    { name: "Speed", address: "Speed", type: null, comment: 'Speed of the "line", °C' },
    { name: "MainProgram.Count", address: "Program:MainProgram.Count" },
    { name: "Door", address: "Door" },
  ]);
  expect(list?.problems).toEqual([
    { line: 9, message: "Motor: UDT_Motor is a structure; collector browse lists its members, which are variables" },
    { line: 10, message: "Hidden: External Access in the controller: None. It cannot be read" },
  ]);
});

test("our own files, and anything else, are none", () => {
  for (const text of ["name;address\na;holding:0\n", "", "Tag Name,Address\na,1\n", "\0\0", "TYPE,SCOPE\n", '"'.repeat(100)])
    expect(parseTagList(Buffer.from(text)), text).toBeUndefined();
  expect(parseVariableCsv(Buffer.from("name;address\na;holding:0\n")).variables).toHaveLength(1);
});
