import { expect, it } from "vitest";
import { atOnce } from "../base/timer.ts";
import { MAX_WORDS } from "../model/bounded-failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Reading } from "../model/value.ts";
import { faultsOf, lookAt, noTimeWords } from "./readings.ts";
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
    { quality: "good", value: six, sourceTime: 1_800_000_000_000 },
    { quality: "good", value: [1, Number.NEGATIVE_INFINITY] },
    { quality: "good", value: Array.from({ length: 9 }, () => Number.NaN) },
    { quality: "good", value: [1, 2] },
  ];
  const looked = atOnce(lookAt({ ...spec, layout: matrix } as SourceSpec, readings, undefined, matrix as Layout));
  const doubt = (detail: string) => ({ quality: "uncertain", doubt: { fault: "not_a_number", detail } });
  expect(looked.all).toEqual([
    { value: six, sourceTime: 1_800_000_000_000, ...doubt("element [1,2] is NaN") },
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

it("times of nothing (1601, 1970, 9999 and their like) are no device time, and a clock that is off is one", () => {
  const at = (text: string): Reading => ({ quality: "good", value: 1, sourceTime: Date.parse(text) });
  const none: Reading = { quality: "good", value: 1 };
  const nothing = [
    "1601-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "-000400-01-01T00:00:00Z",
    "1969-12-31T23:00:00Z",
    "1970-01-01T00:00:00Z",
    "1970-01-02T10:17:36Z",
    "2106-02-07T06:28:15Z",
    "9999-12-31T23:59:59Z",
    "+012026-01-01T00:00:00Z",
    "no time",
  ].map(at);
  expect(look(nothing).all).toEqual(nothing.map(() => none));
  expect(nothing.every((reading) => "sourceTime" in reading)).toBe(true);
  const off = ["1980-01-01T00:00:00Z", "1984-01-01T00:00:01Z", "1990-01-01T00:00:00Z", "1994-01-01T00:00:00Z", "2089-12-31T23:59:59Z"].map(
    at,
  );
  expect(look(off).all).toBe(off);
});

it("says how many variables come with a time of nothing, which one, and what it means", () => {
  const at = (sourceTime: number): Reading => ({ quality: "good", value: 1, sourceTime });
  const words = (...readings: Reading[]) => {
    const { noTimes } = look(readings);
    return noTimes && noTimeWords(layout, noTimes);
  };
  expect(words(at(1_800_000_000_000))).toBeUndefined();
  expect(words(at(1_800_000_000_000), at(0))).toBe(
    "b comes with the device time 1970-01-01, which is not a time: the time of the readout is used",
  );
  expect(words(at(Date.UTC(1601, 0)), at(0), at(Number.NaN))).toBe(
    "3 variables come with the device time 1601-01-01 (a, for one), which is not a time: the time of the readout is used",
  );
  expect(words(at(Number.NaN))).toContain("NaN, which is not a time");
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
