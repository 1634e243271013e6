import { describe, expect, it } from "vitest";
import type { Layout } from "../model/layout.ts";
import type { DataType } from "../model/value.ts";
import { settleTypes } from "./settle-types.ts";

const layout = (...types: DataType[]): Layout => ({
  source: { uuid: "s", name: "press-1" },
  variables: types.map((type, i) => ({
    uuid: `v${i}`,
    name: `v${i}`,
    address: `a${i}`,
    type,
    unit: null,
    comment: null,
    exploration: false,
  })),
});
const AUTO: DataType = { scalar: "auto" };

describe("settleTypes", () => {
  it("takes the type that came with a value, and leaves what is settled or has no value alone", () => {
    const before = layout(AUTO, { scalar: "int16" }, AUTO, AUTO);
    const after = settleTypes(before, [
      { quality: "good", value: 1.5, type: { scalar: "float32" } },
      { quality: "good", value: 7, type: { scalar: "int32" } },
      { quality: "bad", fault: "not_found" },
      undefined,
    ]);
    expect(after.variables.map(({ type }) => type.scalar)).toEqual(["float32", "int16", "auto", "auto"]);
    expect(before.variables[0]?.type).toBe(AUTO);
  });

  it("gives the same object while nothing is new, because a new layout is written and announced", () => {
    const settled = layout({ scalar: "float32" }, AUTO);
    expect(settleTypes(settled, [{ quality: "good", value: 2, type: { scalar: "float64" } }, undefined])).toBe(settled);
  });

  it("falls back to what the value is where no type came with it", () => {
    const after = settleTypes(layout(AUTO, AUTO, AUTO, AUTO), [
      { quality: "good", value: true },
      { quality: "uncertain", value: 1n },
      { quality: "good", value: ["a", "b"] },
      { quality: "good", value: [] },
    ]);
    expect(after.variables.map(({ type }) => type)).toEqual([
      { scalar: "bool" },
      { scalar: "int64" },
      { scalar: "string", count: 2 },
      { scalar: "string", count: 1 },
    ]);
  });
});
