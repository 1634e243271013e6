import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { LargeMap } from "./large-map.ts";

it("keeps what a Map keeps, whatever is set, set again and deleted", () => {
  const map = new Map<string, number>();
  const large = new LargeMap<number>();
  const keys = ["", "a", "ä", "constructor", ...Array.from({ length: 2000 }, () => randomUUID())];
  for (const [n, key] of [...keys, ...keys.slice(0, 500)].entries()) {
    map.set(key, n);
    large.set(key, n);
  }
  for (const key of [...keys.slice(100, 400), "never there"]) expect(large.delete(key)).toBe(map.delete(key));
  expect(large.size).toBe(map.size);
  for (const key of [...keys, "never there"]) expect(large.get(key)).toBe(map.get(key));
});

it.each([
  ["random", () => randomUUID()],
  ["counted", (n: number) => `aaaaaaaa-0000-4000-8000-${String(n).padStart(12, "0")}`],
  ["named", (n: number) => `machine ${n} temperature`],
])("spreads %s keys, so that no part of it is large", (_, keyOf) => {
  const large = new LargeMap<number>();
  for (let n = 0; n < 20_000; n++) large.set(keyOf(n), n);
  expect(large.largestPart).toBeLessThan(1000);
});
