import { expect, test } from "vitest";
import { commentsWithoutSubject, stringsToMend, testNames } from "./find.ts";

test("finds comments without a subject, whatever their form", () => {
  const code = [
    "/** Of a source. */",
    "const a = 1; // Whether it is one.",
    "/**",
    " * What it does.",
    " * As it should.",
    " */",
    "// The same again.",
    "/** Asks the device. */",
    "// Whatever a device sends is bounded.",
    'const url = "http://of.example";',
  ].join("\n");
  expect(commentsWithoutSubject(code).map(({ line }) => line)).toEqual([1, 2, 3, 7]);
});

test("finds strings with words that readers stumble over, and not those of comments", () => {
  const code = [
    'say("it is no address");',
    "say(`it goes on`);",
    '// "is no address"',
    'say("nobody");',
    'say("it is not an address");',
  ].join("\n");
  expect(stringsToMend(code).map(({ line }) => line)).toEqual([1, 2]);
});

test("finds names of tests", () => {
  const code = [
    'test("what is read is published", () => {});',
    'it.each([1])("goes on", () => {});',
    'test("publishes values", () => {});',
  ].join("\n");
  expect(testNames(code).map(({ line }) => line)).toEqual([1, 2]);
});
