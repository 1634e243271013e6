import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonErrorAt, textOf } from "./json-text.ts";

test.each([
  ['{"a": 1,}', 1, 9],
  ['{"a": x}', 1, 7],
  ['{"a": tru}', 1, 10],
  ['{"a": nul1}', 1, 10],
  ["{a: 1}", 1, 2],
  ["{'a': 1}", 1, 2],
  ['{"a": 1', 1, 8],
  ['{"a": "b', 1, 9],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
  ['["ä", x]', 1, 7],
  ["[1] 2", 1, 5],
  ["[01]", 1, 3],
  ["[-]", 1, 3],
  ["[1.]", 1, 4],
  ['["\\x"]', 1, 4],
  ['["\\u12g4"]', 1, 7],
  ["", 1, 1],
  ["x", 1, 1],
])("%j stops being JSON at %d:%d", (text, line, column) => {
  expect(jsonErrorAt(text)).toEqual({ line, column });
});

test("what is JSON has no error; what is long is not searched", () => {
  fc.assert(fc.property(fc.json(), (text) => jsonErrorAt(text) === undefined));
  expect(jsonErrorAt(`[${"1,".repeat(40_000)}`)).toBeUndefined();
});

test("one wrong character in good JSON is found where it is", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 10, max: 99 }), { minLength: 2 }), fc.nat(), (numbers, at) => {
      const text = JSON.stringify(numbers);
      const comma = [...text].flatMap((c, i) => (c === "," ? [i] : []))[at % (numbers.length - 1)] ?? 0;
      expect(jsonErrorAt(`${text.slice(0, comma)};${text.slice(comma + 1)}`)).toEqual({ line: 1, column: comma + 1 });
    }),
  );
});

test("bytes are UTF-8 with or without a mark, or nothing", () => {
  expect(textOf(Buffer.from("\ufeff{}"))).toBe("{}");
  expect(textOf(Buffer.from("ä", "latin1"))).toBeUndefined();
  expect(textOf(Buffer.from([0xed, 0xa0, 0x80]))).toBeUndefined();
});
