import { expect, test } from "vitest";
import { knownNames } from "./known-names.ts";

test("a name that is not there is answered with the one that was meant, and with those that there are", () => {
  expect(knownNames("prss-1", ["oven", "press-1"])).toBe("; did you mean press-1?; there are: oven, press-1");
  expect(knownNames("PRESS 1", ["oven", "press-1"], "it reads ")).toBe("; did you mean press-1?; it reads oven, press-1");
  expect(knownNames("mill", ["oven", "press-1"])).toBe("; there are: oven, press-1");
  expect(knownNames("mill", [])).toBe("");
  const many = Array.from({ length: 200 }, (_, i) => `press-${i}`);
  expect(knownNames("prss-123", many)).toMatch(/^; did you mean press-123\?; there are: press-0, .*press-19, …$/);
});
