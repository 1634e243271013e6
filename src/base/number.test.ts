import fc from "fast-check";
import { expect, test } from "vitest";
import { float32Text, numberText, shortFloat32 } from "./number.ts";

const finite = fc.float({ noNaN: true, noDefaultInfinity: true });
const digitsOf = (text: string) => (text.split("e")[0] ?? "").replace(/[-.]/g, "").replace(/^0+|0+$/g, "").length;

test("a float32 is written in the digits that people know", () => {
  expect([0.1, 21.5, 3.4028235e38, 1e-45, 16_777_216, 123.456, -0.007, 1e10, 9.999999e-4].map((n) => float32Text(Math.fround(n)))).toEqual([
    "0.1",
    "21.5",
    "3.4028235e+38",
    "1e-45",
    "16777216",
    "123.456",
    "-0.007",
    "10000000000",
    "0.0009999999",
  ]);
});

test("every float32 reads back, from at most nine digits", () => {
  fc.assert(
    fc.property(finite, (value) => {
      const text = float32Text(value);
      expect(Math.fround(JSON.parse(text)) === value, text).toBe(true);
      expect(digitsOf(text)).toBeLessThanOrEqual(9);
    }),
    { numRuns: 5000 },
  );
});

test("no decimal with fewer digits reads back", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        finite,
        fc
          .tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: 0, max: 6 }))
          .map(([n, scale]) => Math.fround(n / 10 ** scale)),
      ),
      (value) => {
        fc.pre(value !== 0 && !Number.isInteger(Math.log2(Math.abs(value))));
        const digits = digitsOf(float32Text(value));
        for (let fewer = 1; fewer < digits; fewer++) expect(Math.fround(Number(value.toPrecision(fewer))), `${value}`).not.toBe(value);
      },
    ),
    { numRuns: 5000 },
  );
});

test("what is no finite number stays what it is", () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) expect(shortFloat32(value)).toBe(value);
});

test("a number that is no float32 keeps its digits", () => {
  expect(float32Text(0.1)).toBe("0.1");
  expect(float32Text(0.123456789012)).toBe("0.123456789012");
});

test("a negative zero keeps its sign", () => {
  expect([numberText(-0), float32Text(-0), numberText(0), numberText(-1.5)]).toEqual(["-0", "-0", "0", "-1.5"]);
});
