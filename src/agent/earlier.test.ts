import { expect, it } from "vitest";
import { atOnce } from "../base/timer.ts";
import type { Reading } from "../model/value.ts";
import { partSteps, partTime } from "./earlier.ts";

const good = (value: number, ...earlier: readonly Reading[]): Reading => ({
  quality: "good",
  value,
  ...(earlier.length > 0 && { earlier }),
});
const LOST: Reading = { quality: "bad", fault: "values_lost" };

it("leaves a readout as it is where each variable has one reading", () => {
  expect(atOnce(partSteps([good(1), undefined, LOST]))).toBeUndefined();
});

it("makes readouts of what came before, one behind another, that hold only what there is", () => {
  const parted = atOnce(partSteps([good(3, LOST, good(1), good(2)), good(7), undefined, good(9, good(8))]));
  expect(Array.from({ length: parted?.earlier.count ?? 0 }, (_, i) => parted?.earlier.at(i))).toEqual([
    [LOST, undefined, undefined, good(8)],
    [good(1), undefined, undefined, undefined],
    [good(2), undefined, undefined, undefined],
  ]);
  expect(parted?.newest).toEqual([good(3), good(7), undefined, good(9)]);
  expect(parted?.first).toEqual([good(1), good(7), undefined, good(8)]);
});

it("gives each of them a time of its own, between the readouts", () => {
  expect([0, 1, 2].map((place) => partTime(5000, 1000, place, 3))).toEqual([4997, 4998, 4999]);
  const many = Array.from({ length: 4000 }, (_, place) => partTime(5000, 1000, place, 4000));
  expect(many.every((time, i) => time > (many[i - 1] ?? 4000) && time < 5000)).toBe(true);
});
