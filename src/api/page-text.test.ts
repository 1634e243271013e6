import fc from "fast-check";
import { expect, test } from "vitest";
import { createYielder } from "../base/timer.ts";
import { parsePageText } from "./page-text.ts";

/** Longer than what is parsed in one go. */
const FILLER = "x ".repeat(40_000);
const parse = (text: string) => parsePageText(text, createYielder());

test("a long page is the value that JSON.parse gives, whatever its records hold and however it is spaced", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue()),
      fc.jsonValue(),
      fc.constantFrom(undefined, 1, "\t"),
      fc.boolean(),
      async (records, other, space, isLast) => {
        const data = [...records, { filler: `${FILLER}\\"]}` }];
        const page = isLast
          ? { metadata: { next_cursor: null }, other, data }
          : { data, other: { data: [other] }, metadata: { next_cursor: "n" } };
        const text = JSON.stringify(page, undefined, space);
        expect(await parse(text)).toEqual(JSON.parse(text));
      },
    ),
    { numRuns: 60 },
  );
});

test.each([
  ["cut in a record", `{"data":[{"a":"${FILLER}"`],
  ["cut in a text", `{"data":[{"a":"${FILLER}`],
  ["a comma too many", `{"data":[{"a":"${FILLER}"},],"metadata":{}}`],
  ["no comma", `{"data":[{"a":"${FILLER}"}{}],"metadata":{}}`],
  ["a record that is none", `{"data":[{"a":"${FILLER}"},{b}],"metadata":{}}`],
  ["a page of HTML", `<html>${FILLER}</html>`],
  ["a bare array", `["${FILLER}"]`],
  ["a bracket of the other kind", `{"data":[{"a":"${FILLER}"]},"metadata":{}}`],
  ["something behind it", `{"data":[{"a":"${FILLER}"}]} {}`],
])("%s is no JSON of a page, also where it is long", async (_, text) => {
  await expect(parse(text)).rejects.toThrow(SyntaxError);
});

test("a long object without its list of records is no page, and neither is one that holds the list twice", async () => {
  expect(await parse(`{"items":["${FILLER}"],"metadata":{"next_cursor":null}}`)).toEqual({});
  expect(await parse(`{"data":["${FILLER}"],"data":[1]}`)).toEqual({});
  expect(await parse(`{"data":["${FILLER}"],"metadata":"${FILLER}"}`)).toEqual({});
});

test("a record that would hold up the readouts for long counts as null, and the others are read", async () => {
  const text = JSON.stringify({ data: [{ n: 1 }, { huge: "y".repeat(300_000) }, { n: 2 }] });
  expect(await parse(text)).toEqual({ data: [{ n: 1 }, null, { n: 2 }] });
});
