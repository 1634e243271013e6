import fc from "fast-check";
import { expect, it } from "vitest";
import { LargeList } from "./large-list.ts";

it("holds what an array holds, at any length", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.nat(10), fc.integer({ min: 4090, max: 4100 }), fc.integer({ min: 8190, max: 8200 }), fc.nat(50_000)),
      (count) => {
        const list = new LargeList<number | undefined>();
        const array: (number | undefined)[] = [];
        for (let n = 0; n < count; n++) {
          const value = n % 3 === 0 ? undefined : n;
          list.push(value);
          array.push(value);
        }
        expect(list.length).toBe(array.length);
        expect(list.whole()).toEqual(array);
      },
    ),
    { numRuns: 30 },
  );
});

it("does not take arrays apart", () => {
  const list = new LargeList<readonly number[]>();
  for (let n = 0; n < 5000; n++) list.push([n, n]);
  expect(list.whole().slice(4095, 4098)).toEqual([
    [4095, 4095],
    [4096, 4096],
    [4097, 4097],
  ]);
});
