import { expect, test } from "vitest";
import { deviceMemory } from "../../test/support/driver-context.ts";
import { LEARNED_FOR_MS, Learned } from "./learned.ts";

const ALL = { maxItems: 20, pduBytes: 960 };

test("what a device takes outlives a session, and is tried again after a while", () => {
  let nowMs = 5000;
  const device = deviceMemory();
  const open = () => new Learned(device, "sizes", ALL, () => nowMs);
  const first = open();
  expect(first.values).toEqual(ALL);
  first.learn({ maxItems: 7 });
  nowMs += LEARNED_FOR_MS - 1;
  first.learn({ pduBytes: 240 });
  const second = open();
  expect([second.values, second.forgetOld()]).toEqual([{ maxItems: 7, pduBytes: 240 }, false]);
  nowMs += LEARNED_FOR_MS;
  expect([second.forgetOld(), second.forgetOld()]).toEqual([true, false]);
  expect(second.values).toEqual(ALL);
  expect(open().values).toEqual(ALL);
});

test("without a memory of the device it holds for the session", () => {
  const sizes = new Learned(undefined, "sizes", ALL, () => 0);
  sizes.learn({ maxItems: 3 });
  expect([sizes.values.maxItems, sizes.forgetOld()]).toEqual([3, false]);
});
