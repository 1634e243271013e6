import fc from "fast-check";
import { expect, test } from "vitest";
import { type Declared, parseStep7Source, type Source } from "./step7-source.ts";

/** A declaration as one text. */
function shown(type: Declared): string {
  if (type.kind === "plain") return type.length === undefined ? type.word : `${type.word}[${type.length}]`;
  if (type.kind === "named") return `"${type.name}"`;
  if (type.kind === "array") return `${type.bounds.map((bounds) => bounds.join("..")).join(",")}:${shown(type.of)}`;
  return `{${type.members.map((member) => `${member.name} ${shown(member.type)}`).join("; ")}}`;
}

const blocksOf = (source: Source | undefined): readonly string[] =>
  source?.blocks.map((block) => `${block.line} ${block.name} ${block.number} ${block.isOptimized} ${shown(block.body)}`) ?? [];

const TIA = `\ufeff// a remark
TYPE "Axis"
VERSION : 0.1
   STRUCT
      Position { ExternalWritable := 'False'} : LReal;   // mm
      "at end" : Bool := TRUE;
   END_STRUCT;

END_TYPE

DATA_BLOCK "Line 1"
TITLE = It's a title; "with" signs
{ S7_Optimized_Access := 'FALSE' }
AUTHOR : me
VERSION : 0.1
NON_RETAIN
   STRUCT
      x, y : Int := 5;   // both
      name : String[20] := 'a;b $'c$' // no remark';
      grid : { S7_SetPoint := 'True' } Array[0..1, -2..2] of Bool;
      motor : Struct   // the motor
         axes : Array[1..3] of "Axis";
         hidden { ExternalAccessible := 'False'; ExternalVisible := 'False'} : Time := T#5s;
      END_STRUCT;
   END_STRUCT;

BEGIN
   x := 7;
END_DATA_BLOCK

FUNCTION "F" : Void
VAR_TEMP a : Int; END_VAR
BEGIN IF "x" THEN ; END_IF; END_FUNCTION

DATA_BLOCK "Second"
{ S7_Optimized_Access := 'TRUE'; S7_Unused := 'x' }
VERSION : 0.1
   VAR CONSTANT
      LIMIT : Int := 5;
   END_VAR
   VAR RETAIN
      a : WString;
   END_VAR
   VAR
      b : DTL;
   END_VAR
END_DATA_BLOCK
DATA_BLOCK "Third"
"Axis"
BEGIN
END_DATA_BLOCK
`;

test("blocks, PLC data types, sections, remarks and attributes of TIA Portal", () => {
  const source = parseStep7Source(TIA);
  expect(source?.problems).toEqual([]);
  expect(blocksOf(source)).toEqual([
    '11 Line 1 undefined false {x INT; y INT; name STRING[20]; grid 0..1,-2..2:BOOL; motor {axes 1..3:"Axis"; hidden TIME}}',
    "35 Second undefined true {a WSTRING; b DTL}",
    '48 Third undefined false "Axis"',
  ]);
  expect([...(source?.types ?? [])].map(([name, type]) => `${name} ${shown(type)}`)).toEqual(["axis {Position LREAL; at end BOOL}"]);
  const body = source?.blocks[0]?.body;
  const members = body?.kind === "struct" ? body.members : [];
  expect(members.map(({ name, line, comment, isAccessible }) => [name, line, comment, isAccessible])).toEqual([
    ["x", 18, "both", true],
    ["y", 18, "both", true],
    ["name", 19, undefined, true],
    ["grid", 20, undefined, true],
    ["motor", 21, "the motor", true],
  ]);
  const motor = members[4]?.type;
  expect(motor?.kind === "struct" && motor.members[1]?.isAccessible).toBe(false);
});

test("a source of STEP 7 V5: numbers instead of names, remarks in brackets", () => {
  const source = parseStep7Source(
    "(* a\nremark *)\r\ndata_block DB 12\r\ntitle =\r\nversion : 0.1\r\nstruct\r\n a : bool ;\r\n b : UDT 5 ;\r\nend_struct ;\r\nbegin\r\nend_data_block\r\nTYPE UDT 5\r\nSTRUCT\r\n c : BYTE ;\r\nEND_STRUCT ;\r\nEND_TYPE\r\nDATA_BLOCK DB7\r\nSTRUCT d : INT; END_STRUCT\r\nEND_DATA_BLOCK",
  );
  expect(blocksOf(source)).toEqual(['3 DB12 12 false {a BOOL; b "UDT5"}', "17 DB7 7 false {d INT}"]);
  expect([...(source?.types.keys() ?? [])]).toEqual(["udt5"]);
});

const body = (text: string): string =>
  `DATA_BLOCK "A"\nSTRUCT\n${text}\nEND_STRUCT;\nEND_DATA_BLOCK\nDATA_BLOCK "B"\nSTRUCT b : INT; END_STRUCT;\nEND_DATA_BLOCK`;

test.each([
  ["a type that is missing", body("x : ;"), '3: expected a type, found ";"'],
  ["a name that is missing", body(": INT;"), '3: expected a name, found ":"'],
  ["a colon that is missing", body("x INT;"), '3: expected :, found "INT"'],
  [
    "bounds that are constants",
    body('x : Array[0.."MAX"] of Int;'),
    "3: the last index of an array is the constant MAX, whose value is not in this file; write the number",
  ],
  ["bounds the wrong way round", body("x : Array[5..1] of Int;"), "3: the array goes from 5 to 1"],
  ["bounds that are open", body("x : Array[*] of Int;"), '3: the first index of an array is "*", expected a whole number'],
  [
    "bounds that are too large",
    body("x : Array[0..2147483648] of Int;"),
    '3: the last index of an array is "2147483648", expected a whole number',
  ],
  ["too many dimensions", body(`x : Array[${"0..1,".repeat(6)}0..1] of Int;`), "3: an array has at most 6 dimensions"],
  ["a string that is too long", body("x : String[20000];"), "3: a string has at most 254 characters, not 20000"],
  ["structures that lie too deep", body(`x : ${"STRUCT y : ".repeat(20)}INT;`), "3: structures lie in each other more than 16 deep"],
  ["arrays that lie too deep", body(`x : ${"ARRAY[0..1] OF ".repeat(20)}INT;`), "3: structures lie in each other more than 16 deep"],
  [
    "a block of an array",
    'DATA_BLOCK "A" Array[0..1] of Int BEGIN END_DATA_BLOCK DATA_BLOCK "B" STRUCT b : INT; END_STRUCT; END_DATA_BLOCK',
    "1: a data block that is an array has no names; declare an array within a block",
  ],
  [
    "a block that is protected",
    'DATA_BLOCK "A"\nKNOW_HOW_PROTECT\nBEGIN\nEND_DATA_BLOCK DATA_BLOCK "B" STRUCT b : INT; END_STRUCT; END_DATA_BLOCK',
    "3: its declaration is missing; it may be protected (know-how protection)",
  ],
])("%s costs its block, and the others are read", (_, text, words) => {
  const source = parseStep7Source(text);
  expect(source?.problems.map(({ line, message }) => `${line}: ${message}`)).toEqual([words]);
  expect(source?.blocks.map(({ name }) => name)).toEqual(["B"]);
});

test("a file that is cut off says so", () => {
  const whole = parseStep7Source(TIA.slice(0, TIA.indexOf("hidden")));
  expect(whole?.problems.map(({ line, message }) => `${line}: ${message}`)).toEqual(["23: expected a name, found the end of the file"]);
  expect(whole?.cut).toEqual({ line: 11, message: "DATA_BLOCK has no END_DATA_BLOCK: the rest of the file is missing" });
});

test("a part without its end costs none of the parts behind it", () => {
  const block = (name: string) => `DATA_BLOCK ${name}\nSTRUCT\na : INT;\nEND_STRUCT;\nBEGIN\n Type := 5;\nEND_DATA_BLOCK\n`;
  const source = parseStep7Source(
    `TYPE "A"\nSTRUCT a : INT; END_STRUCT;\n${block("DB7")}TYPE "B"\nSTRUCT b : INT; END_STRUCT;\nEND_TYPE\n${block("DB8")}`,
  );
  expect(source?.problems).toEqual([{ line: 1, message: "TYPE has no END_TYPE" }]);
  expect(source?.blocks.map(({ name }) => name)).toEqual(["DB7", "DB8"]);
  expect([...(source?.types.keys() ?? [])]).toEqual(["a", "b"]);
});

test("lines may end as on an old Macintosh", () => {
  const source = parseStep7Source("DATA_BLOCK DB1\rSTRUCT\r a : INT; // one\r b : INT;\rEND_STRUCT;\rEND_DATA_BLOCK\r");
  expect(source?.blocks[0]?.body).toMatchObject({
    members: [
      { name: "a", comment: "one" },
      { name: "b", line: 4 },
    ],
  });
});

// Each would take hours where the text is searched again from each sign.
test.each(["(*", "/*", "'$", "'", '"'])("a long text of %s is read in time", (sign) => {
  const source = parseStep7Source(`DATA_BLOCK DB1\nSTRUCT a : INT := ${sign.repeat(300_000)}`);
  expect(source?.cut?.line).toBe(1);
});

test("a text of any length is one value", () => {
  const source = parseStep7Source(`DATA_BLOCK DB1 STRUCT a : STRING := '${"a".repeat(20_000_000)}'; END_STRUCT; END_DATA_BLOCK`);
  expect([source?.blocks.length, source?.problems]).toEqual([1, []]);
});

test("other files are not taken for sources", () => {
  for (const text of ["", "TYPE,SCOPE,NAME\n", "name;address\n", "DATA_BLOCK", "<xml/>", "TYPE;x", "function() {}"])
    expect(parseStep7Source(text), text).toBeUndefined();
});

test("any words in any order are read without an error that is thrown", () => {
  const word = fc.constantFrom(
    ...['"A"', "DATA_BLOCK", "END_DATA_BLOCK", "TYPE", "END_TYPE", "STRUCT", "END_STRUCT", "VAR", "END_VAR", "BEGIN", "Array", "of", "Int"],
    ...["String", "[", "]", "{", "}", ":", ";", ",", "..", "-", "0", "9", "'", "'x'", "//", "\n", "(*", "*)", ":=", "x", "\0", "\ud800"],
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 60 }), (words) => {
      const text = `DATA_BLOCK "A" ${words.join(" ")}`;
      for (const { line } of parseStep7Source(text)?.problems ?? []) expect(line).toBeLessThanOrEqual(text.split("\n").length);
    }),
    { numRuns: 1000 },
  );
});
