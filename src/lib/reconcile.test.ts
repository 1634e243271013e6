import fc from "fast-check";
import { expect, it } from "vitest";
import { canonicalJson, reconcile } from "./reconcile.ts";

const set = fc.dictionary(fc.constantFrom("a", "b", "c", "d"), fc.nat(2)).map((record) => new Map(Object.entries(record)));
const print = (v: number) => String(v);

it("brings any state to the wanted one, touches nothing that is the same, then has nothing left to do", () => {
  fc.assert(
    fc.property(set, set, (before, wanted) => {
      const running = new Map([...before].map(([id, v]) => [id, print(v)]));
      const same = [...wanted].filter(([id, v]) => running.get(id) === print(v)).map(([id]) => id);
      const { stop, start } = reconcile(wanted, running, print);
      for (const id of same) expect([...stop, ...start]).not.toContain(id);
      for (const id of stop) running.delete(id);
      for (const id of start) {
        expect(running.has(id)).toBe(false);
        running.set(id, print(wanted.get(id) ?? -1));
      }
      expect(running).toEqual(new Map([...wanted].map(([id, v]) => [id, print(v)])));
      expect(reconcile(wanted, running, print)).toEqual({ stop: [], start: [] });
    }),
  );
});

it("writes the same text whatever the order of keys, and another for other content", () => {
  expect(canonicalJson({ b: [1, { d: 1, c: null }], a: "x" })).toBe(canonicalJson({ a: "x", b: [1, { c: null, d: 1 }] }));
  expect(canonicalJson({ a: [1, 2] })).not.toBe(canonicalJson({ a: [2, 1] }));
});
