import { expect, test } from "vitest";
import { LEARNED_FOR_MS, LearnedSizes } from "./learned.ts";

function memory() {
  const kept = new Map<string, unknown>();
  return { get: (key: string) => kept.get(key), set: (key: string, value: unknown) => void kept.set(key, value) };
}

test("what a controller takes outlives a session, and is tried again after a while", () => {
  let nowMs = 5000;
  const device = memory();
  const first = new LearnedSizes(device, () => nowMs);
  expect([first.maxItems, first.pduBytes]).toEqual([20, Number.POSITIVE_INFINITY]);
  first.learnItems(7);
  nowMs += LEARNED_FOR_MS - 1;
  first.learnPdu(240);
  const second = new LearnedSizes(device, () => nowMs);
  expect([second.maxItems, second.pduBytes, second.forgetOld()]).toEqual([7, 240, false]);
  nowMs += LEARNED_FOR_MS;
  expect([second.forgetOld(), second.forgetOld()]).toEqual([true, false]);
  expect([second.maxItems, second.pduBytes]).toEqual([20, Number.POSITIVE_INFINITY]);
  const third = new LearnedSizes(device, () => nowMs);
  expect([third.maxItems, third.pduBytes]).toEqual([20, Number.POSITIVE_INFINITY]);
});

test("without a memory of the device it holds for the session", () => {
  const sizes = new LearnedSizes(undefined, () => 0);
  sizes.learnItems(100);
  expect(sizes.maxItems).toBe(20);
  sizes.learnItems(3);
  expect([sizes.maxItems, sizes.forgetOld()]).toEqual([3, false]);
});
