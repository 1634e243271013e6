import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "./json-text.ts";

test("a broken text has its position", () => {
  const cases: readonly (readonly [text: string, at: string])[] = [
    ['{"a":1 x}', 'unexpected "x" at line 1, column 8'],
    ['{"a":1,}', 'unexpected "}" at line 1, column 8'],
    ['{\n  "a": [1,\n 2', "it ends at line 3, column 3"],
    ['{"a":tru}', 'unexpected "t" at line 1, column 6'],
    ['[{"a":1}{"b":2}]', 'unexpected "{" at line 1, column 9'],
    ['{"a" 1}', 'unexpected "1" at line 1, column 6'],
    ["[1,]", 'unexpected "]" at line 1, column 4'],
    ['["unclosed]', "a text that is not closed, or not expected, at line 1, column 2"],
    ["[01]", 'unexpected "1" at line 1, column 3'],
    ["[1] 2", 'unexpected "2" at line 1, column 5'],
    ["{a:1}", 'unexpected "a" at line 1, column 2'],
    ['{"a\\q":1}', "a text that is not closed, or not expected, at line 1, column 2"],
    ['{"a\nb":1}', "a text that is not closed, or not expected, at line 1, column 2"],
    ['{"\\\\\\u00e4":1,]', 'unexpected "]" at line 1, column 15'],
    [`{"a":"${"x".repeat(20_000_000)}",}`, 'unexpected "}" at line 1, column 20000009'],
  ];
  for (const [text, at] of cases) expect(parseJson(text), text.slice(0, 40)).toEqual({ fault: `is not valid JSON: ${at}` });
});

test("a text that is nested without an end is refused before it costs memory", () => {
  expect(parseJson("[".repeat(5_000_000))).toEqual({ fault: "is nested deeper than 100 levels at line 1, column 101" });
  expect(parseJson(`{"a":${'"\\""'},"b":"${"[".repeat(1000)}"}`)).toEqual({ value: { a: '"', b: "[".repeat(1000) } });
});

test("anything else is not JSON, and what JSON.parse reads is read", () => {
  expect(["", "name;address", '"text"', "1"].map(parseJson)).toEqual([undefined, undefined, undefined, undefined]);
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 5 })), (value) => {
      const text = JSON.stringify(value, null, 1);
      expect(parseJson(text)).toEqual({ value: JSON.parse(text) });
    }),
    { numRuns: 100 },
  );
});

test("a text with one sign changed is read, or its position lies in it", () => {
  const text = JSON.stringify({ a: [1, { b: "x\\y", c: [true, null] }], d: -1.5e3 });
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom("", "{", "]", ",", '"', "x", "\\", ":"), (at, sign) => {
      const result = parseJson(text.slice(0, at) + sign + text.slice(at + 1));
      if (result && "fault" in result)
        expect(result.fault).toMatch(/(unexpected ".+"|a text that .*|it ends|deeper .*) at line 1, column \d+$/);
    }),
    { numRuns: 300 },
  );
});
