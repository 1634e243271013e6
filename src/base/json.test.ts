import fc from "fast-check";
import { expect, test } from "vitest";
import { toJson } from "./json.ts";

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

test("what stands in the place of a value is written as it is, at any depth", () => {
  expect(toJson({ a: [1n, new Date(0)] }, (one) => (one instanceof Date ? { x: 2n } : one))).toBe('{"a":[1,{"x":2}]}');
});
