import fc from "fast-check";
import { expect, test } from "vitest";
import { createBudget } from "./budget.ts";

test("gives what it holds at once, and then one each time it is filled", () => {
  let now = 0;
  const { take } = createBudget(3, 100, () => now);
  expect(Array.from({ length: 4 }, take)).toEqual([true, true, true, false]);
  now = 99;
  expect(take()).toBe(false);
  now = 250;
  expect([take(), take(), take()]).toEqual([true, true, false]);
  now = 300;
  expect([take(), take()]).toEqual([true, false]);
  now = 1e9;
  expect(Array.from({ length: 4 }, take)).toEqual([true, true, true, false]);
});

test("never gives more than it held and was filled with, however it is asked", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 50 }), fc.array(fc.nat(200)), (most, refillMs, steps) => {
      let now = 0;
      const { take } = createBudget(most, refillMs, () => now);
      let taken = 0;
      for (const step of steps) {
        now += step;
        if (take()) taken++;
      }
      expect(taken).toBeLessThanOrEqual(most + Math.floor(now / refillMs));
    }),
  );
});
