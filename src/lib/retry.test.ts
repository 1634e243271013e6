import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { backoffMs, createBackoff } from "./retry.ts";

const delays = (random: () => number, tries: number): number[] => {
  const found: number[] = [];
  const backoff = createBackoff(random);
  for (let troubleMs = 0; found.length < tries; ) {
    const delayMs = backoff(troubleMs);
    found.push(delayMs);
    troubleMs += delayMs;
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

describe("backoffMs", () => {
  it("is a second in the first ten, then stays between one second and a minute", () => {
    expect(backoffMs(0, 0)).toBe(1000);
    expect(backoffMs(9_999, 0)).toBe(1000);
    fc.assert(
      fc.property(
        fc.integer({ min: 10_000, max: 1e9 }),
        fc.nat(10_000),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (trouble, attempts, random) => {
          const wait = backoffMs(trouble, attempts, () => random);
          expect(wait).toBeGreaterThanOrEqual(1000);
          expect(wait).toBeLessThanOrEqual(60_000);
        },
      ),
    );
    expect(backoffMs(60_000, 20, () => 1)).toBe(60_000);
  });
});
