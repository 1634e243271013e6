import { expect, test } from "vitest";
import { problemsOf, readList, variablesOf } from "./testing.ts";

const KEPWARE =
  "Tag Name,Address,Data Type,Respect Data Type,Client Access,Scan Rate,Scaling,Raw Low,Raw High,Scaled Low,Scaled High,Scaled Data Type,Clamp Low,Clamp High,Eng Units,Description,Negate Value";

test("a list of Kepware: names, addresses, types, scaling, units and descriptions; what has no counterpart is named once", async () => {
  const rows = [
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
    '"Order",400401,Word,1,WO,100,,,,,,,,,"","",',
    '"Line.Speed",400001,Word,1,RO,100,,,,,,,,,"","",',
  ];
  const list = await readList(`${rows.join("\r\n")}\r\n`);
  expect([list?.program, list?.what, list?.read, list?.problemCount]).toEqual(["Kepware", "tag list (CSV)", 12, 6]);
  expect(variablesOf(list)).toEqual([
    {
      name: "Line.Speed",
      address: "400001",
      type: "uint16",
      unit: "m/min",
      scaling: { factor: 0.1, offset: 0 },
      comment: "Speed, of the line",
    },
    { name: "Level", address: "400003", type: "float32" },
    { name: "Temp", address: "400005", type: "int16", unit: "°C", scaling: { factor: -0.1, offset: 0 } },
    { name: "Falling", address: "400006", type: "int16", scaling: { factor: -1, offset: 20 } },
    { name: "Name", address: "400100.20H" },
    { name: "Words", address: "400200 [4]" },
  ]);
  expect(problemsOf(list)).toEqual([
    ["8 Stamp", "the data type Date has no counterpart here; give the variable a type of its own"],
    ["9 Flow", "the scaling Square Root has no counterpart here; only Linear has"],
    ["10 Flat", "its scaling is not a line: Raw Low equals Raw High, or Scaled Low equals Scaled High"],
    ["11 Command, 12 Order", "is write-only"],
    ["13 Line.Speed", 'the name is already at "line 2"; a name is unique per data source'],
  ]);
});

test("the other delimiter, as the program writes it on request", async () => {
  expect(variablesOf(await readList(`${KEPWARE.replaceAll(",", ";")}\n"A";400001;Word;1;RO;100;Linear;0;10;0;0,5;;;;;;\n`))).toEqual([
    { name: "A", address: "400001", type: "uint16", scaling: { factor: 0.05, offset: 0 } },
  ]);
});

test("decimal digits have the words of the drivers", async () => {
  const rows = ["Shift,400001,BCD,1,RO,100", "Lot,400002,LBCD,1,RO,100"].map((row) => `${row}${",".repeat(11)}`);
  expect(variablesOf(await readList(`${[KEPWARE, ...rows].join("\n")}\n`))).toEqual([
    { name: "Shift", address: "400001", type: "BCD" },
    { name: "Lot", address: "400002", type: "LBCD" },
  ]);
});

test("a list that is cut off is refused as a whole", async () => {
  const list = await readList(`${KEPWARE}\n"A",400001,Word,1,RO,100,,,,,,,,,"","",\n"B",4000`);
  expect([list?.refused, list?.variables]).toEqual([true, []]);
  expect(problemsOf(list).at(-1)).toEqual(["3", expect.stringContaining("(2 of 17 fields): the rest seems to be missing")]);
});

test("a row with a delimiter too many, and one that lacks an end of its scaling, are refused: their numbers would be others", async () => {
  const rows = [
    "A,400001,Word,1,R/W,100,Linear,0,1000,0,1,5,Double,0,0,m,x,0",
    "B,400002,Word,1,R/W,100,Linear,100,,0,50,Double,0,0,m,x,0",
    "C,400003,constructor,1,R/W,100,,,,,,,,,,,",
  ];
  const list = await readList(`${[KEPWARE, ...rows].join("\n")}\n`);
  expect(list?.variables).toEqual([]);
  expect(problemsOf(list).map(([, message]) => message)).toEqual([
    expect.stringMatching(/^has 18 fields, and the names of the columns are 17/),
    expect.stringMatching(/^one of its four ends of the scaling/),
    expect.stringMatching(/^the data type constructor has no counterpart/),
  ]);
});

test("the address of a coil that a spreadsheet has made another register is refused", async () => {
  const list = await readList(`${[KEPWARE, "A,12345,Boolean,1,RO,100", "B,400001,Word,1,RO,100"].join("\n")}\n`);
  expect([list?.variables.map(({ name }) => name), problemsOf(list)]).toEqual([["B"], [["2 A", expect.stringContaining("dropped the 0")]]]);
  const short = await readList(`${[KEPWARE, "A,12345,Boolean,1,RO,100", "B,40001,Word,1,RO,100"].join("\n")}\n`);
  expect(short?.problems).toEqual([]);
});

test("encodings: UTF-16 without a mark is read, and what is a guess is said", async () => {
  const text = `${KEPWARE}\nPr\u00fcfer,400001,Word,1,RO,100,,,,,,,,,"","",\n`;
  const names = async (bytes: Buffer) => {
    const list = await readList(bytes);
    return [list?.variables[0]?.name, list?.notes.length];
  };
  expect(await names(Buffer.from(text))).toEqual(["Pr\u00fcfer", 0]);
  expect(await names(Buffer.from(text, "utf16le"))).toEqual(["Pr\u00fcfer", 0]);
  expect(await names(Buffer.from(text, "utf16le").swap16())).toEqual(["Pr\u00fcfer", 0]);
  expect(await names(Buffer.from(text, "latin1"))).toEqual(["Pr\u00fcfer", 1]);
});

test("a list without a tag is refused, since --replace would delete everything for it", async () => {
  const list = await readList(`${KEPWARE}\n`);
  expect([list?.problemCount, problemsOf(list)[0]?.[1]]).toEqual([1, "holds no tags"]);
});

test("a cell of any length makes a sentence of a bounded one", async () => {
  const list = await readList(`${KEPWARE}\n${"n".repeat(100_000)},400001,${"W".repeat(100_000)},1,RO,100\n`);
  expect(list?.problems[0]?.message.length).toBeLessThan(1100);
  expect(list?.problems[0]?.tags[0]?.name?.length).toBeLessThan(400);
});
