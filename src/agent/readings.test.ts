import { expect, it } from "vitest";
import { MAX_WORDS } from "../model/bounded-failure.ts";
import type { Layout } from "../model/layout.ts";
import { atOnce } from "../model/timer.ts";
import type { Reading } from "../model/value.ts";
import { faultsOf, lookAt } from "./readings.ts";
import type { SourceSpec } from "./source-spec.ts";

const names = ["a", "b", "c", "d"];
const layout: Layout = {
  source: { uuid: "", name: "press" },
  variables: names.map((name) => ({
    uuid: name,
    name,
    address: name,
    type: { scalar: "float64" },
    unit: null,
    comment: null,
    exploration: false,
  })),
};
const spec = { layout, refused: new Map(), scalings: new Map(), auto: [] } as unknown as SourceSpec;
const look = (readings: readonly (Reading | undefined)[]) => atOnce(lookAt(spec, readings, undefined, layout));

it("passes readings on as they are, and counts them", () => {
  const bad: Reading = { quality: "bad", fault: "not_found", detail: "w".repeat(MAX_WORDS) };
  const readings: (Reading | undefined)[] = [{ quality: "good", value: 1 }, undefined, bad, { quality: "bad", fault: "stale" }];
  const looked = look(readings);
  expect(looked).toMatchObject({ read: 1, faulted: 2 });
  expect(looked.all).toBe(readings);
});

it("one NaN in an array or a matrix makes it uncertain, names the element, and loses no other", () => {
  const [, ...others] = layout.variables;
  const matrix = {
    ...layout,
    variables: [{ ...layout.variables[0], type: { scalar: "float64", count: 6, dimensions: [2, 3] } }, ...others],
  };
  const six = [0, 1, 2, 3, 4, Number.NaN];
  const readings: readonly Reading[] = [
    { quality: "good", value: six, sourceTime: 7 },
    { quality: "good", value: [1, Number.NEGATIVE_INFINITY] },
    { quality: "good", value: Array.from({ length: 9 }, () => Number.NaN) },
    { quality: "good", value: [1, 2] },
  ];
  const looked = atOnce(lookAt({ ...spec, layout: matrix } as SourceSpec, readings, undefined, matrix as Layout));
  const doubt = (detail: string) => ({ quality: "uncertain", doubt: { fault: "not_a_number", detail } });
  expect(looked.all).toEqual([
    { value: six, sourceTime: 7, ...doubt("element [1,2] is NaN") },
    { value: [1, Number.NEGATIVE_INFINITY], ...doubt("element 1 is -Infinity") },
    expect.objectContaining(doubt(`${[0, 1, 2, 3, 4].map((i) => `element ${i} is NaN`).join(", ")}, and 4 more`)),
    readings[3],
  ]);
  expect(looked).toMatchObject({ read: 4, faulted: 0, doubted: 3 });
  expect(faultsOf(matrix as Layout, looked.all)).toMatchObject([
    { variable: "a", fault: "not_a_number" },
    { variable: "b" },
    { variable: "c" },
  ]);
  expect(readings[0]?.quality).toBe("good");
});

it("cuts details that a device made longer than anybody reads, and leaves the driver's own objects alone", () => {
  const bad: Reading = { quality: "bad", fault: "device_error", detail: "A".repeat(2_000_000) };
  const readings: readonly Reading[] = [{ quality: "good", value: 1 }, bad, { quality: "uncertain", value: 2 }, bad];
  const { all, faulted } = look(readings);
  const cut = { ...bad, detail: "A".repeat(MAX_WORDS) };
  expect(all).toEqual([readings[0], cut, readings[2], cut]);
  expect(faulted).toBe(2);
  expect(bad.detail).toHaveLength(2_000_000);
});
