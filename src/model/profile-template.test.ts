import fc from "fast-check";
import { expect, test } from "vitest";
import { ANY, parseBytes, parseTemplate, renderTemplate } from "./profile-template.ts";

const render = (text: string, values: Readonly<Record<string, string | number>> = {}) => {
  const template = parseTemplate(text);
  if (typeof template === "string") return template;
  const bytes = renderTemplate(template, (name) => values[name]);
  return typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("latin1");
};

test.each([
  ["plain text", {}, "plain text"],
  ["<STX>R<ETX>", {}, "\x02R\x03"],
  ["\\x1B\\xff\\\\\\<\\{\\}", {}, "\x1b\xff\\<{}"],
  ["A{n:d3}B", { n: 7 }, "A007B"],
  ["{n:d}", { n: 12 }, "12"],
  ["{n:x4}{n:X}", { n: 0xab }, "00abAB"],
  ["{t:s}-{t:s4}", { t: "AB12" }, "AB12-AB12"],
  ["{n:u16be}{n:u16le}{n:u8}", { n: 0x42 }, "\x00\x42\x42\x00\x42"],
  ["{n:i32be}{n:i8}", { n: -2 }, "\xff\xff\xff\xfe\xfe"],
])("%s with %o is its bytes", (text, values, bytes) => {
  expect(render(text, values)).toBe(bytes);
});

test.each([
  ["<STY>", {}, "<STY> is not a control character"],
  ["<ANY>", {}, "<ANY> is not a control character here"],
  ["a{b", {}, '"{b" at character 2'],
  ["über", {}, '"über" at character 1'],
  ["line\n", {}, "at character 5"],
  ["{n:q}", { n: 1 }, "{n:q}: q is not a format"],
  ["{n:u16}", { n: 1 }, "{n:u16}: u16 is not a format"],
  ["{n:u8be}", { n: 1 }, "u8be is not a format"],
  ["{n:d2}", { n: 100 }, "{n:d2}: 100 takes more than 2 digits"],
  ["{n:d}", { n: -1 }, "{n:d}: -1 is below zero"],
  ["{n:d}", { n: "x" }, '{n:d}: "x" is not a whole number'],
  ["{n:u8}", { n: 256 }, "{n:u8}: 256 is not within 0 and 255"],
  ["{t:s3}", { t: "ABCD" }, '{t:s3}: "ABCD" is not 3 characters long'],
  ["{t:s}", { t: "A\r" }, "is not printable ASCII"],
  ["{missing:d}", {}, "{missing:d}: it has no value"],
])("%s with %o is refused", (text, values, said) => {
  expect(render(text, values)).toContain(said);
});

test("<ANY> stands for a byte where bytes are compared, and placeholders stand nowhere among them", () => {
  expect(parseBytes("A<ANY>", { canBeAny: true })).toEqual([0x41, ANY]);
  expect(parseBytes("A{n:d}")).toBe("{n:d}: no placeholder can stand here");
});

test("whatever the text, there is a template or a sentence; what is printable stays as it is", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(["string", "object"]).toContain(typeof parseTemplate(text));
    }),
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[ -;=-[\]-z|~]*$/), (text) => {
      expect(render(text)).toBe(text);
    }),
  );
});
