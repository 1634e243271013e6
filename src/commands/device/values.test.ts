import { expect, test } from "vitest";
import { toJson } from "../../base/json.ts";
import { hostPort, jsonValue, textValue } from "./values.ts";

test("an IPv6 address is distinguished from its port", () => {
  expect([hostPort("10.0.0.5", 502), hostPort("fd00::5", 502), hostPort("press.local", undefined)]).toEqual([
    "10.0.0.5:502",
    "[fd00::5]:502",
    "press.local",
  ]);
});

test("a float32 shows the digits that it has, a long array how much of it is not shown", () => {
  expect(jsonValue(Math.fround(0.1), { scalar: "float32" })).toBe(0.1);
  expect(jsonValue([Math.fround(0.1), 2], { scalar: "float32", count: 2 })).toEqual([0.1, 2]);
  expect(textValue(["a", 'b"'], { scalar: "string", maxBytes: 2, count: 2 })).toBe('["a", "b\\""]');
  const long = Array.from({ length: 25 }, (_, n) => n);
  expect(textValue(long, { scalar: "uint16", count: 25 })).toMatch(/^\[0, 1, .*, 19, … 5 more\]$/);
});

test("a negative zero keeps its sign", () => {
  expect([textValue(-0, { scalar: "float64" }), textValue([-0, 0], { scalar: "float32", count: 2 }), toJson({ value: -0 })]).toEqual([
    "-0",
    "[-0, 0]",
    '{"value":-0}',
  ]);
});

test("an array for people is cut, and says so", () => {
  expect(textValue([Math.fround(0.1), 2], { scalar: "float32", count: 2 })).toBe("[0.1, 2]");
  expect(textValue(Array(23).fill(1), { scalar: "uint8", count: 23 })).toMatch(/, … 3 more\]$/);
  expect(textValue(["a", "b,c"], { scalar: "string", count: 2 })).toBe('["a", "b,c"]');
});
