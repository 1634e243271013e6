import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextTick, stableFraction, ticksBetween } from "./time.ts";

const times = {
  now: fc.integer({ min: 0, max: 2 ** 41 }),
  interval: fc.integer({ min: 1, max: 10_000_000 }),
  fraction: fc.double({ min: 0, max: 0.999, noNaN: true }),
};

describe("nextTick", () => {
  it("lies after now, at most one interval away, on a multiple plus the phase", () => {
    fc.assert(
      fc.property(times.now, times.interval, times.fraction, (now, interval, fraction) => {
        const phase = Math.floor(fraction * interval);
        const tick = nextTick(now, interval, phase);
        expect(tick).toBeGreaterThan(now);
        expect(tick - now).toBeLessThanOrEqual(interval);
        expect((tick - phase) % interval).toBe(0);
      }),
    );
  });
});

describe("ticksBetween", () => {
  it("counts what stepping through the ticks counts", () => {
    fc.assert(
      fc.property(times.now, fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 0, max: 20_000 }), (from, interval, length) => {
        let count = 0;
        for (let tick = nextTick(from, interval, 0); tick < from + length; tick += interval) count++;
        expect(ticksBetween(from, from + length, interval, 0)).toBe(count);
      }),
    );
  });
});

describe("stableFraction", () => {
  it("is in [0, 1), the same for the same text, and spreads", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(stableFraction(text)).toBe(stableFraction(text));
        expect(stableFraction(text)).toBeGreaterThanOrEqual(0);
        expect(stableFraction(text)).toBeLessThan(1);
      }),
    );
    const tenths = new Set(Array.from({ length: 200 }, (_, i) => Math.floor(stableFraction(`source-${i}`) * 10)));
    expect(tenths.size).toBe(10);
  });
});
