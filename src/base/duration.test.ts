import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatDuration, parseDuration } from "./duration.ts";

const SIZES = { ms: 1, s: 1000, min: 60_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const UNITS = Object.keys(SIZES) as (keyof typeof SIZES)[];

describe("reading", () => {
  test("a whole number of any unit", () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.constantFrom(...UNITS), fc.constantFrom("", " "), (n, unit, space) => {
        expect(parseDuration(`${n}${space}${unit}`)).toBe(n * SIZES[unit]);
      }),
    );
  });

  test.each([
    ["1.5h", 5_400_000],
    ["0.25s", 250],
    ["0ms", 0],
    [" 5s ", 5000],
  ])("%j is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(["", "5", "s", "-5s", "+5s", "5 sec", "1h30min", "1e3s", "5S", ".5s", "5.s", "0x5s", "Infinitys", "9999999999999s"])(
    "%j is no duration",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

describe("writing", () => {
  test.each([
    [0, "0 ms"],
    [250, "250 ms"],
    [999.4, "999 ms"],
    [999.6, "1 s"],
    [1000, "1 s"],
    [1500, "1.5 s"],
    [59_999, "1 min"],
    [90_000, "1 min 30 s"],
    [1_000_000, "16 min 40 s"],
    [3_599_999, "1 h"],
    [3_600_000, "1 h"],
    [90_061_000, "1 d 1 h"],
    [86_400_000 * 30, "30 d"],
  ])("%d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("at most two units, none as large as the next, and off by less than the smaller one", () => {
    fc.assert(
      fc.property(fc.nat(4_000_000_000), (ms) => {
        const parts = formatDuration(ms).split(/(?<=[a-z]) /);
        expect(parts.length).toBeLessThanOrEqual(2);
        let sum = 0;
        let above = Number.POSITIVE_INFINITY;
        for (const part of parts) {
          const [, n, unit] = /^([\d.]+) (ms|s|min|h|d)$/.exec(part) ?? [];
          const size = SIZES[unit as keyof typeof SIZES];
          expect(Number(n) * size).toBeLessThan(above);
          sum += Number(n) * size;
          above = size;
        }
        expect(Math.abs(ms - sum)).toBeLessThan(Math.max(above, 1));
      }),
    );
  });
});
