import fc from "fast-check";
import { expect, it } from "vitest";
import { atOnce } from "../../src/base/timer.ts";
import { groupSteps, groupTextSteps } from "./group.ts";

it("groups as Map.groupBy does, in its order", () => {
  const lists = fc.tuple(fc.integer({ min: 0, max: 6000 }), fc.integer({ min: 1, max: 5000 }));
  fc.assert(
    fc.property(lists, ([length, keys]) => {
      const items = Array.from({ length }, (_, n) => ({ n, key: (n * 7919) % keys }));
      const groups = Map.groupBy(items, ({ key }) => key);
      expect([...atOnce(groupSteps(items, ({ key }) => key))]).toEqual([...groups]);
      expect(atOnce(groupTextSteps(items, ({ key }) => `key ${key}`))).toEqual([...groups.values()]);
    }),
    { numRuns: 20 },
  );
});
