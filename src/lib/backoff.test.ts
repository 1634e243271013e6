import fc from "fast-check";
import { expect, test } from "vitest";
import { type Backoff, backOff } from "./backoff.ts";

const delays = (random: () => number, tries: number): number[] => {
  const found: number[] = [];
  let state: Backoff | undefined;
  for (let nowMs = 5000; found.length < tries; ) {
    const next = backOff(state, nowMs, random);
    found.push(next.delayMs);
    state = next.state;
    nowMs += next.delayMs;
  }
  return found;
};

test("one a second for ten seconds, then doubling to a minute", () => {
  expect(delays(() => 1, 18)).toEqual([...Array(10).fill(1000), 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("never less than a second, never more than a minute", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 0.999, noNaN: true }), (jitter) => {
      for (const delayMs of delays(() => jitter, 30)) expect(delayMs >= 1000 && delayMs <= 60_000).toBe(true);
    }),
  );
});
