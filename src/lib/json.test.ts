import fc from "fast-check";
import { expect, test } from "vitest";
import { textValue } from "../commands/device/values.ts";
import { shortestFloat32, toJson } from "./json.ts";

test("a 64-bit integer keeps all its digits, as a number", () => {
  expect(toJson({ a: 2n ** 64n - 1n, b: [-(2n ** 63n)] })).toBe('{"a":18446744073709551615,"b":[-9223372036854775808]}');
});

test("everything else is as JSON.stringify writes it", () => {
  expect(toJson({ when: new Date(0), gone: undefined, list: [undefined, Number.NaN] })).toBe(
    '{"when":"1970-01-01T00:00:00.000Z","list":[null,null]}',
  );
  expect(toJson(undefined)).toBe("null");
  // A round trip takes the sign of a zero away, which JSON.stringify drops and toJson keeps.
  const values = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);
  fc.assert(fc.property(values, (value) => void expect(toJson(value)).toBe(JSON.stringify(value))));
});

test("a negative zero keeps its sign, at any depth", () => {
  expect(toJson({ "": [-0, { a: -0 }, 0] })).toBe('{"":[-0,{"a":-0},0]}');
});

test("a float32 has its shortest digits and stays itself", () => {
  expect(shortestFloat32(Math.fround(21.1))).toBe(21.1);
  expect(shortestFloat32(16_777_217)).toBe(16_777_217);
  fc.assert(fc.property(fc.float({ noNaN: true }), (value) => void expect(Math.fround(shortestFloat32(value))).toBe(value)));
});

test("an array for people is cut, and says so", () => {
  expect(textValue([Math.fround(0.1), 2], { scalar: "float32", count: 2 })).toBe("[0.1, 2]");
  expect(textValue(Array(23).fill(1), { scalar: "uint8", count: 23 })).toMatch(/, … 3 more\]$/);
  expect(textValue(["a", "b,c"], { scalar: "string", count: 2 })).toBe('["a", "b,c"]');
});
