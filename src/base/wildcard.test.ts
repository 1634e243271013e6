import { expect, test } from "vitest";
import { matches } from "./wildcard.ts";

test("a filter is a part of a text, or a pattern for all of it", () => {
  const fits = (pattern: string, text: string) => matches(text, pattern.split("*"));
  expect([fits("emp", "temperature"), fits("x", "temperature"), fits("t*e", "temperature"), fits("e*", "temperature")]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect([fits("a*a", "a"), fits("a*b*a", "abba"), fits("*", ""), fits("a*b*c", "acb")]).toEqual([false, true, true, false]);
  // No pattern takes more than a time in proportion to the text.
  expect(fits(`${"*a".repeat(150)}*b`, "a".repeat(4000))).toBe(false);
});
