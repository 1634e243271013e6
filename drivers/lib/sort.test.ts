import fc from "fast-check";
import { expect, it } from "vitest";
import { atOnce } from "../../src/base/timer.ts";
import { sortSteps } from "./sort.ts";

it("sorts as toSorted does, what is equal in its order", () => {
  const byValue = (a: { readonly value: number }, b: { readonly value: number }) => a.value - b.value;
  const lists = fc.tuple(fc.integer({ min: 0, max: 5500 }), fc.integer({ min: 1, max: 3000 }), fc.boolean());
  fc.assert(
    fc.property(lists, ([length, values, isSorted]) => {
      const items = Array.from({ length }, (_, n) => ({ n, value: isSorted ? n : (n * 7919) % values }));
      expect(atOnce(sortSteps(items, byValue))).toEqual(items.toSorted(byValue));
    }),
    { numRuns: 20 },
  );
});

it("takes no more than some thousand comparisons a step", () => {
  let compared = 0;
  let most = 0;
  const items = Array.from({ length: 50_000 }, (_, n) => (n * 7919) % 50_021);
  const steps = sortSteps(items, (a, b) => {
    compared++;
    return a - b;
  });
  for (let step = steps.next(); !step.done; step = steps.next()) {
    most = Math.max(most, compared);
    compared = 0;
  }
  expect(most).toBeLessThan(15_000);
});
