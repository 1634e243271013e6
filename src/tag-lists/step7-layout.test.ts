import fc from "fast-check";
import { expect, test } from "vitest";
import { Layout } from "./step7-layout.ts";
import { parseStep7Source } from "./step7-source.ts";

/** Places of a block's values as `path byte.bit`. */
function placesOf(text: string): readonly string[] {
  const source = parseStep7Source(text);
  const block = source?.blocks[0];
  if (!source || !block) throw new Error("no block");
  const layout = new Layout(source.types, () => true);
  const found: string[] = [];
  let at: number | undefined = 0;
  for (const member of layout.membersOf(block.body) ?? []) {
    for (const place of layout.places(member, [member.name], at)) {
      const path = place.path.map((step) => (typeof step === "string" ? `.${step}` : `[${step.join(",")}]`)).join("");
      if ("missing" in place) found.push(`${path} missing`);
      else found.push(`${path} ${place.at === undefined ? "?" : `${place.at >> 3}.${place.at & 7}`}`);
    }
    at = layout.behind(member.type, at);
  }
  return found;
}

const block = (members: string, before = ""): string => `${before}\nDATA_BLOCK "B"\nSTRUCT\n${members}\nEND_STRUCT;\nEND_DATA_BLOCK`;

/** The places of members, each behind its declaration. */
const placed = (rows: readonly (readonly [declaration: string, place: string])[], before = ""): void =>
  expect(placesOf(block(rows.map(([declaration]) => declaration).join("\n"), before))).toEqual(rows.map(([, place]) => place));

/**
 * Blocks whose offsets public documents show: the one that S7.Net is tested with against a PLC (S7.Net.UnitTest/Helpers/TestStruct.cs), and
 * "TIA Portal data block word alignment" of industrialmonitordirect.com.
 */
test.each([
  [
    `${Array.from({ length: 16 }, (_, i) => `b${i} : Bool;`).join(" ")} IntVariable : Int; RealVariable : Real; DIntVariable : DInt; DWordVariable : Word;`,
    { b0: "0.0", b7: "0.7", b8: "1.0", b15: "1.7", IntVariable: "2.0", RealVariable: "4.0", DIntVariable: "8.0", DWordVariable: "12.0" },
  ],
  ["MyByte : Byte; MyWord : Word;", { MyByte: "0.0", MyWord: "2.0" }],
])("offsets of a published block", (members, places) => {
  const found = placesOf(block(members));
  for (const [name, place] of Object.entries(places)) expect(found).toContain(`.${name} ${place}`);
});

test("bits pack, bytes follow at the next byte, words at an even one, also behind a string of an odd length", () => {
  placed([
    ["a : BOOL;", ".a 0.0"],
    ["b : BOOL;", ".b 0.1"],
    ["c : BYTE;", ".c 1.0"],
    ["d : BOOL;", ".d 2.0"],
    ["e : INT;", ".e 4.0"],
    ["f : SINT;", ".f 6.0"],
    ["g : CHAR;", ".g 7.0"],
    ["h : USINT;", ".h 8.0"],
    ["i : REAL;", ".i 10.0"],
    ["j : STRING[3];", ".j 14.0"],
    ["k : BYTE;", ".k 19.0"],
    ["l : STRING;", ".l 20.0"],
    ["m : BOOL;", ".m 276.0"],
    ["n : WSTRING[2];", ".n 278.0"],
    ["o : LREAL;", ".o 286.0"],
    ["p : DTL;", ".p 294.0"],
    ["q : DATE_AND_TIME;", ".q 306.0"],
    ["r : S5TIME;", ".r 314.0"],
    ["s : TIME;", ".s 316.0"],
    ["t : LTIME;", ".t 320.0"],
    ["u : DATE;", ".u 328.0"],
    ["v : TIME_OF_DAY;", ".v 330.0"],
  ]);
});

test("arrays, structures and PLC data types begin and end at an even byte", () => {
  placed(
    [
      ["a : BOOL;", ".a 0.0"],
      ["b : ARRAY[0..9] OF BOOL;", ".b 2.0"],
      ["c : BOOL;", ".c 4.0"],
      ["d : ARRAY[1..3] OF BYTE;", ".d 6.0"],
      ["e : BYTE;", ".e 10.0"],
      ["f : STRUCT x : BOOL; END_STRUCT;", ".f.x 12.0"],
      ["g : BOOL;", ".g 14.0"],
      ['h : "T";', ".h.x 16.0"],
      ["i : ARRAY[1..2] OF STRING[3];", ".i 18.0"],
      ["j : BYTE;", ".j 30.0"],
    ],
    'TYPE "T"\nSTRUCT x : BYTE; END_STRUCT;\nEND_TYPE',
  );
});

test("several dimensions: the last index first, and rows of bits begin at a byte", () => {
  expect(placesOf(block("g : ARRAY[0..1, 1..3] OF INT;\nb : ARRAY[0..2, 0..8] OF BOOL;\nc : BYTE;"))).toEqual([
    ".g[0] 0.0",
    ".g[1] 6.0",
    ".b[0] 12.0",
    ".b[1] 14.0",
    ".b[2] 16.0",
    ".c 18.0",
  ]);
  expect(
    placesOf(block('s : ARRAY[0..1] OF "T";', 'TYPE "T"\nSTRUCT a : BOOL; b : BOOL; c : INT; d : BYTE; END_STRUCT;\nEND_TYPE')),
  ).toEqual([".s[0].a 0.0", ".s[0].b 0.1", ".s[0].c 2.0", ".s[0].d 4.0", ".s[1].a 6.0", ".s[1].b 6.1", ".s[1].c 8.0", ".s[1].d 10.0"]);
});

test("behind a type that is not in the file nothing has a place, within a structure too", () => {
  expect(placesOf(block('a : INT;\ns : STRUCT b : INT; c : "Gone"; d : INT; END_STRUCT;\ne : INT;'))).toEqual([
    ".a 0.0",
    ".s.b 2.0",
    ".s.c missing",
    ".s.d ?",
    ".e ?",
  ]);
});

test("a PLC data type may have the name of an elementary type, in quotes", () => {
  const types = 'TYPE "Real"\nSTRUCT a : BYTE; b : "HW_IO"; END_STRUCT;\nEND_TYPE\nTYPE "HW_IO"\nSTRUCT c : BYTE; END_STRUCT;\nEND_TYPE';
  expect(placesOf(block('x : "Real";\ny : Real;', types))).toEqual([".x.a 0.0", ".x.b.c 2.0", ".y 4.0"]);
});

test("types that contain themselves, and chains of them, end", () => {
  const types = 'TYPE "A"\nSTRUCT b : "B"; END_STRUCT;\nEND_TYPE\nTYPE "B"\nSTRUCT a : "A"; END_STRUCT;\nEND_TYPE\n';
  const chain = Array.from({ length: 1000 }, (_, i) => `TYPE "T${i}"\nSTRUCT x : "T${i + 1}"; y : "T${i + 1}"; END_STRUCT;\nEND_TYPE`).join(
    "\n",
  );
  for (const [text, type] of [
    [block('a : "A";', types), "A"],
    [block('a : "T0";', chain), "T0"],
  ] as const) {
    const layout = new Layout(parseStep7Source(text)?.types ?? new Map(), () => true);
    expect(layout.countOf({ kind: "named", name: type })).toBe(Number.POSITIVE_INFINITY);
    expect(layout.sizeOf({ kind: "named", name: type })).toBeUndefined();
  }
});

/** A declaration as text, and the bits that it takes, as a person would count them: one bit after the other. */
interface Shape {
  readonly text: string;
  /** Marks the bits from a place on; gives the next free one. */
  readonly fill: (at: number, name: string, mark: (name: string, at: number, bits: number) => void) => number;
  readonly isBit?: true;
  readonly isByte?: true;
}

const evenByte = (at: number): number => {
  let next = at;
  while (next % 16 !== 0) next++;
  return next;
};
const wholeByte = (at: number): number => {
  let next = at;
  while (next % 8 !== 0) next++;
  return next;
};
/** Begin of a member of this shape. */
const begin = (at: number, { isBit, isByte }: Shape): number => (isBit ? at : isByte ? wholeByte(at) : evenByte(at));

const simple = (text: string, bits: number): Shape => ({
  text,
  ...(bits === 1 && { isBit: true }),
  ...(bits === 8 && { isByte: true }),
  fill(at, name, mark) {
    mark(name, at, bits);
    return at + bits;
  },
});

const scalar = fc.oneof(
  fc.constantFrom(
    simple("BOOL", 1),
    simple("BYTE", 8),
    simple("CHAR", 8),
    simple("INT", 16),
    simple("DINT", 32),
    simple("LREAL", 64),
    simple("DTL", 96),
  ),
  fc.integer({ min: 1, max: 9 }).map((chars) => simple(`STRING[${chars}]`, (chars + 2) * 8)),
);

const arrayOf = (element: Shape, sizes: readonly number[]): Shape => ({
  text: `ARRAY[${sizes.map((size) => `5..${size + 4}`).join(", ")}] OF ${element.text}`,
  fill(start, name, mark) {
    let at = start;
    const rows = (size: readonly number[], indices: readonly number[]): void => {
      const [first = 0, ...rest] = size;
      for (let i = 0; i < first; i++) {
        if (rest.length > 0) rows(rest, [...indices, i + 5]);
        else {
          at = begin(at, element);
          at = element.fill(at, `${name}[${[...indices, i + 5].join(",")}]`, mark);
        }
      }
      if (rest.length === 0 && sizes.length > 1) at = wholeByte(at);
    };
    rows(sizes, []);
    return evenByte(at);
  },
});

const structOf = (members: readonly Shape[]): Shape => ({
  text: `STRUCT ${members.map(({ text }, i) => `m${i} : ${text};`).join(" ")} END_STRUCT`,
  fill(start, name, mark) {
    let at = start;
    members.forEach((member, i) => {
      at = member.fill(begin(at, member), `${name}.m${i}`, mark);
    });
    return evenByte(at);
  },
});

const { shape } = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc
      .tuple(tie("shape"), fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }))
      .map(([of, sizes]) => arrayOf(of, sizes)),
    fc.array(tie("shape"), { minLength: 1, maxLength: 4 }).map(structOf),
  ),
}));

test("places of any declaration are aligned, share no bit, and are those of a count bit by bit", () => {
  fc.assert(
    fc.property(fc.array(shape, { minLength: 1, maxLength: 6 }), (members) => {
      const wanted = new Map<string, number>();
      const taken = new Set<number>();
      let total = 0;
      structOf(members).fill(0, "", (name, at, bits) => {
        wanted.set(name, at);
        for (let bit = at; bit < at + bits; bit++) taken.add(bit);
        total += bits;
        if (bits > 8 && at % 16 !== 0) throw new Error(`${name} is at ${at}`);
      });
      expect(taken.size).toBe(total);
      const source = parseStep7Source(block(members.map(({ text }, i) => `m${i} : ${text};`).join("\n")));
      const body = source?.blocks[0]?.body;
      if (!source || body?.kind !== "struct") throw new Error("no block");
      const layout = new Layout(source.types, () => false);
      const found = new Map<string, number | undefined>();
      let at: number | undefined = 0;
      for (const member of body.members) {
        // Element by element.
        for (const place of layout.places(member, [member.name], at)) {
          const name = place.path.map((step) => (typeof step === "string" ? `.${step}` : `[${step.join(",")}]`)).join("");
          found.set(name, "missing" in place ? undefined : place.at);
        }
        at = layout.behind(member.type, at);
      }
      expect(found).toEqual(wanted);
    }),
    { numRuns: 100 },
  );
});
