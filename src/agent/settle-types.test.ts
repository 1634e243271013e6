import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeReadout, encodeReadout } from "../buffer/codec.ts";
import type { Layout } from "../model/layout.ts";
import { type DataType, type Reading, SCALAR_TYPES, type Value } from "../model/value.ts";
import { fitSettled, settleTypes } from "./settle-types.ts";

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

describe("fitSettled", () => {
  const settled = layout({ scalar: "int16" }, { scalar: "float32", count: 2 }, { scalar: "string" });
  const good = (value: Value): Reading => ({ quality: "good", value });

  it("leaves what fits alone: the same array", () => {
    const readings = [good(7), good([1, 2, 3]), good("a")];
    expect(fitSettled(settled, readings, [0, 1, 2])).toBe(readings);
    const none = [undefined, { quality: "bad", fault: "not_found" } as const, good("b")];
    expect(fitSettled(settled, none, [0, 1, 2])).toBe(none);
  });

  it("makes what does not fit that variable's fault, whether another type came or another kind of value, and heals with the next that fits", () => {
    const fitted = fitSettled(settled, [good(70_000), good(1.5), good(true)], [0, 1, 2]);
    expect(fitted).toEqual([
      {
        quality: "bad",
        fault: "type_mismatch",
        detail: expect.stringMatching(/^70000 \(number\) is not a int16, the type that came with its first/),
      },
      { quality: "bad", fault: "type_mismatch", detail: expect.stringContaining("is not a float32[2]") },
      { quality: "bad", fault: "type_mismatch", detail: expect.stringContaining("is not a string") },
    ]);
    const [healed] = fitSettled(settled, [good(70), good([]), good("x")], [0, 1, 2]);
    expect(healed).toEqual(good(70));
  });

  it("says what the buffer, and so every sink, makes of any value", () => {
    const value = fc.oneof(
      fc.boolean(),
      fc.string({ maxLength: 5 }),
      fc.double(),
      fc.integer(),
      fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }),
      fc.array(fc.oneof(fc.double(), fc.boolean()), { maxLength: 3 }),
    );
    const type = fc.record({ scalar: fc.constantFrom(...SCALAR_TYPES), count: fc.constantFrom(1, 2) });
    fc.assert(
      fc.property(type, fc.boolean(), value, ({ scalar, count }, isArray, sample) => {
        const one = layout(isArray ? { scalar, count } : { scalar });
        const [judged] = fitSettled(one, [good(sample)], [0]);
        const readout = { time: 0, spanMs: 0, clockSynced: true, readings: [good(sample)] };
        const [kept] = decodeReadout(one, encodeReadout(one, readout).payload).readings;
        expect(kept?.quality).toBe(judged?.quality);
        if (kept?.quality === "bad" && judged?.quality === "bad") expect(kept.fault).toBe(judged.fault);
      }),
    );
  });
});
