import { expect, it } from "vitest";
import { MAX_WORDS } from "../model/bounded-failure.ts";
import type { Layout } from "../model/layout.ts";
import { atOnce } from "../model/timer.ts";
import type { Reading } from "../model/value.ts";
import { lookAt } from "./readings.ts";
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

it("cuts details that a device made longer than anybody reads, and leaves the driver's own objects alone", () => {
  const bad: Reading = { quality: "bad", fault: "device_error", detail: "A".repeat(2_000_000) };
  const readings: readonly Reading[] = [{ quality: "good", value: 1 }, bad, { quality: "uncertain", value: 2 }, bad];
  const { all, faulted } = look(readings);
  const cut = { ...bad, detail: "A".repeat(MAX_WORDS) };
  expect(all).toEqual([readings[0], cut, readings[2], cut]);
  expect(faulted).toBe(2);
  expect(bad.detail).toHaveLength(2_000_000);
});
