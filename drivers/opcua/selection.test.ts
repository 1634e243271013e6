import { describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { ExtensionBody, NestedValue, type RawValue } from "./binary.ts";
import { type Expand, parseSelection, selected } from "./selection.ts";
import type { Definition } from "./structures.ts";
import { toPartReading } from "./values.ts";

const axis: Definition = {
  kind: "structure",
  fields: [
    { name: "Speed", type: { builtIn: 10 }, valueRank: -1, isOptional: false },
    { name: "Since", type: { builtIn: 13 }, valueRank: -1, isOptional: false },
  ],
};
const machine: Definition = {
  kind: "optional",
  fields: [
    { name: "Axes", type: { structure: axis }, valueRank: 1, isOptional: false },
    { name: "Main", type: { structure: axis }, valueRank: -1, isOptional: false },
    { name: "Grid", type: { builtIn: 4 }, valueRank: 2, isOptional: false },
    { name: "Any", type: { builtIn: 24 }, valueRank: -1, isOptional: false },
    { name: "Extra", type: { builtIn: 11 }, valueRank: -1, isOptional: true },
  ],
};
const one = (Speed: number) => ({ Speed, Since: "1601-01-01T00:00:00.000Z" });
const object = {
  Axes: [one(0.1), one(2)],
  Main: one(7),
  Grid: { dimensions: [2, 3], values: [1, 2, 3, 4, 5, 6] },
  Any: new NestedValue({ status: 0, type: 6, isArray: true, dimensions: null, value: [10, 20, 30, 40], sourceTime: undefined }, false),
};
const expand: Expand = ({ encoding }) => {
  if (encoding !== "ns=2;i=1") throw new FaultError("no_answer", "its structure is being learned");
  return { definition: machine, object };
};
const raw: RawValue = {
  status: 0,
  type: 22,
  isArray: false,
  dimensions: null,
  value: new ExtensionBody("ns=2;i=1", Buffer.alloc(0)),
  sourceTime: 1,
};
const reading = (text: string, given = raw) =>
  toPartReading(
    given,
    { steps: parseSelection(text, text), expand },
    { scalar: "auto" },
    (value) => JSON.stringify(value),
    (status) => `status ${status}`,
  );

describe("a part of a value", () => {
  it.each([
    ["Main.Speed", 7, { scalar: "float32" }],
    ["Axes[0].Speed", Math.fround(0.1), { scalar: "float32" }],
    ["Grid", [1, 2, 3, 4, 5, 6], { scalar: "int16", count: 6, dimensions: [2, 3] }],
    ["Grid[1,2]", 6, { scalar: "int16" }],
    ["Any[1:3]", [20, 30, 40], { scalar: "int32", count: 3 }],
    ["Axes[1]", JSON.stringify(one(2)), { scalar: "string" }],
  ])("has its own type and value: %s", (text, value, type) => {
    expect(reading(text)).toMatchObject({ quality: "good", value, type });
  });

  it("has the source time of the whole, and its doubt about a missing time", () => {
    expect(reading("Main.Since")).toMatchObject({ quality: "uncertain", value: "1601-01-01T00:00:00.000Z", sourceTime: 1 });
  });

  it.each([
    ["Nothing", "not_found", 'the value has no field "Nothing"; it has Axes, Main, Grid, Any, Extra'],
    ["Main.Speed.x", "type_mismatch", "Main.Speed is Float, which has no fields"],
    ["Axes.Speed", "type_mismatch", "Axes is an array: an element of it has fields, as in Axes[0].Speed"],
    ["Axes[2]", "out_of_range", "Axes has 2 elements, 0 to 1: there is no 2"],
    ["Main[0]", "type_mismatch", "Main is one ExtensionObject and no array"],
    ["Grid[1]", "type_mismatch", "Grid has 2 dimensions (2x3), and the address names 1"],
    ["Any[2:4]", "out_of_range", "there is no 4"],
    ["Extra", "no_answer", 'the value holds no "Extra" at this moment'],
  ])("is refused where it is not there: %s", (text, fault, detail) => {
    expect(reading(text)).toMatchObject({ quality: "bad", fault, detail: expect.stringContaining(detail) });
  });

  it("waits for a definition, says what a bad status says, and how a # of a name is written", () => {
    expect(reading("A", { ...raw, value: new ExtensionBody("ns=2;i=9", Buffer.alloc(0)) })).toMatchObject({ fault: "no_answer" });
    expect(reading("A", { ...raw, status: 0x8034_0000, type: 0, value: null })).toMatchObject({
      fault: "not_found",
      detail: expect.stringContaining("a # of the name is written %23"),
    });
    const elements = { ...raw, type: 4, isArray: true, value: [1, 2, 3] };
    expect(selected(elements, parseSelection("", "[1]"), expand)).toMatchObject({ type: 4, isArray: false, value: 2 });
  });
});
