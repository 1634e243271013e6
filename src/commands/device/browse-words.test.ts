import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Discovered } from "../../../drivers/driver.ts";
import { parseVariableCsv } from "../../configuration/variable-file.ts";
import { variablesCsv } from "../configuration/variables-csv.ts";
import { browseObject, browseTable, filterOf, inTreeOrder, toVariables } from "./browse-words.ts";

const folder = (name: string, ...path: string[]): Discovered => ({
  address: `s=${[...path, name].join("/")}`,
  name,
  path,
  type: undefined,
});
const variable = (name: string, ...path: string[]): Discovered => ({ ...folder(name, ...path), type: { scalar: "float64" } });

const PLANT: readonly Discovered[] = [
  folder("A"),
  folder("B"),
  variable("speed", "A"),
  folder("C", "A"),
  variable("speed", "B"),
  variable("speed", "A", "C"),
  variable("power", "A", "C"),
];

describe("the tree", () => {
  it("is in order, however it was found", () => {
    expect(inTreeOrder(PLANT).map(({ address }) => address)).toEqual([
      "s=A",
      "s=A/speed",
      "s=A/C",
      "s=A/C/speed",
      "s=A/C/power",
      "s=B",
      "s=B/speed",
    ]);
  });

  it("loses nothing and doubles nothing, with folders missing, of one name, or in a circle of names", () => {
    const path = fc.array(fc.constantFrom("a", "b"), { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), path), { maxLength: 30 }), (list) => {
        const found = list.map(([name, at], i) => ({ ...folder(name, ...at), address: `i=${i}` }));
        const ordered = inTreeOrder(found).map(({ address }) => address);
        expect([...ordered].sort()).toEqual(found.map(({ address }) => address).sort());
      }),
    );
  });

  it("is indented for people, control characters escaped", () => {
    const table = browseTable([folder("A\u001b[31m"), { ...variable("t", "A\u001b[31m"), unit: "°C", comment: "one\ntwo" }]);
    expect(table).not.toContain("\u001b");
    expect(table.split("\n")).toHaveLength(4);
    expect(table.split("\n")[2]).toMatch(/^ {2}t +float64 +°C/);
  });
});

describe("a filter", () => {
  it.each([
    ["speed", 3],
    ["SPEED", 3],
    ["A/*", 4],
    ["*/C/*", 2],
    ["s=B", 2],
    ["*power", 1],
    ["(", 0],
  ])("%s fits %i", (pattern, count) => {
    expect(PLANT.filter(filterOf(pattern))).toHaveLength(count);
  });
});

describe("variables for import", () => {
  it("have the name alone where it is the only one, and as much of the path as tells others apart", () => {
    expect(toVariables(PLANT).map(({ name }) => name)).toEqual(["A.speed", "B.speed", "C.speed", "power"]);
  });

  it("leave out what cannot be read, and give no type where there is none", () => {
    const found: Discovered[] = [
      folder("A"),
      { ...variable("v"), type: { scalar: "auto" } },
      { ...variable("m"), type: { scalar: "float64", count: 6, dimensions: [2, 3] } },
      { ...variable("long"), address: `s=${"x".repeat(5000)}` },
    ];
    expect(toVariables(found).map(({ name, type }) => [name, type])).toEqual([
      ["v", null],
      ["m", "float64[2x3]"],
    ]);
  });

  it("are numbered where a hundred thousand have one name", () => {
    const found = Array.from({ length: 100_000 }, (_, i) => ({ ...variable("x", "A"), address: `ns=1;i=${i}` }));
    const names = toVariables(found).map(({ name }) => name);
    expect(new Set(names).size).toBe(found.length);
    expect([names[0], names[99_999]]).toEqual(["A.x", "A.x (100000)"]);
  });

  it("are no formulas for a spreadsheet, whatever the device says, and keep its words", () => {
    const given = { ...variable("=cmd|'/c calc'!A1"), comment: "-40 to 120 °C" };
    const variables = toVariables([given, { ...variable("-"), unit: "@" }]);
    const csv = variablesCsv(variables);
    expect(csv).not.toMatch(/(^|[;"\n])[=+@-]/);
    expect(parseVariableCsv(Buffer.from(csv))).toEqual({ variables, problems: [] });
    expect(variables[0]).toMatchObject({ name: given.name, comment: given.comment });
  });

  it("are read back by import the same, whatever a server calls its things", () => {
    const text = fc.string({
      maxLength: 12,
      unit: fc.constantFrom("a", "ü", " ", ";", '"', "\n", "\t", ".", "\0", "=", "1", "'", "°", "+", "@"),
    });
    const found = fc.record({
      address: fc.nat(1e9).map((n) => `ns=1;i=${n}`),
      name: fc.oneof(text, fc.constant("x".repeat(300))),
      path: fc.array(text, { maxLength: 3 }),
      type: fc.constant({ scalar: "float64" } as const),
      unit: fc.oneof(text, fc.constant("y".repeat(80))),
      comment: text,
    });
    fc.assert(
      fc.property(fc.uniqueArray(found, { selector: ({ address }) => address, maxLength: 20 }), (list) => {
        const variables = toVariables(list);
        expect(new Set(variables.map(({ name }) => name)).size).toBe(list.length);
        if (list.length === 0) return;
        const parsed = parseVariableCsv(Buffer.from(variablesCsv(variables)));
        expect(parsed.problems).toEqual([]);
        expect(parsed.variables).toEqual(variables);
      }),
    );
  });
});

it("one line of JSON has every field", () => {
  expect(browseObject(folder("A"))).toEqual({ address: "s=A", name: "A", path: [], type: null, unit: null, comment: null });
  expect(browseObject({ ...variable("v", "A"), unit: "V", comment: "c" })).toEqual({
    address: "s=A/v",
    name: "v",
    path: ["A"],
    type: "float64",
    unit: "V",
    comment: "c",
  });
});
