import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseProfile } from "./profile-file.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const shipped = readdirSync(path.join(ROOT, "config/profiles")).map((file) => path.join(ROOT, "config/profiles", file));
const examples = ["vendor_b/example-profile.yaml", "plastcontrol/example-profile.yaml", "plastcontrol/passive-profile.yaml"];
const TEN_LINES = path.join(ROOT, "test/support/profiles/ten-lines.yaml");

const read = (file: string) => parseProfile(readFileSync(file));

test.each([...shipped, ...examples.map((file) => path.join(ROOT, "drivers", file)), TEN_LINES])("%s can be used", (file) => {
  expect(read(file)).toHaveProperty("profile");
});

test.each(shipped)("%s claims no device that it was verified on", (file) => {
  expect(read(file)).toHaveProperty("profile.verified_on", []);
});

test("a profile of ten lines describes a device", () => {
  expect(readFileSync(TEN_LINES, "utf8").trimEnd().split("\n")).toHaveLength(10);
});

describe("what is wrong is named with its line, and what would be right", () => {
  const lines = `profile: 1
name: scale
for: [vendor_b]
framing: { type: delimiter, end: <CR>, max_bytes: 64 }
parameters:
  station: { type: integer, max: 99 }
requests:
  weight: { reads: the weight, send: "W{station:d2}", ok: { begins: W= } }
  one: { reads: one value, send: "V{name:s};", arguments: { name: { type: text } } }
variables:
  weight: { request: weight, whole: true }
  one: { request: one, whole: true }
errors:
  - { equals: E1, fault: not_found, meaning: there is none }`.split("\n");
  const problemsWith = (line: number, text: string) => {
    const parsed = parseProfile(Buffer.from(lines.with(line - 1, text).join("\n")));
    return "problems" in parsed ? parsed.problems.map(({ line: at, path: key, message }) => `${at} ${key}: ${message}`) : [];
  };

  test("as it is, it can be used", () => expect(problemsWith(1, "profile: 1")).toEqual([]));

  test.each<[line: number, text: string, said: string]>([
    [1, "profile: 2", "1 profile:"],
    [2, "nam: scale", "did you mean name?"],
    [3, "for: [vendor_c]", "3 for.0:"],
    [4, "framing: { type: delimiter, end: <CR> }", "4 framing.max_bytes: is required"],
    [4, "framing: { type: delimiter, end: <CRX>, max_bytes: 9 }", "4 framing.end:"],
    [4, "framing: { type: delimitr, end: <CR>, max_bytes: 9 }", "4 framing.type:"],
    [
      4,
      "framing: { type: delimiter, end: <CR>, max_byts: 9, max_bytes: 9 }",
      "4 framing.max_byts: this key is not known; did you mean max_bytes?",
    ],
    [4, "framing: { type: delimiter, end: <CR>, max_bytes: 100000 }", "4 framing.max_bytes:"],
    [4, 'framing: { type: length, header: "AB", max_bytes: 9 }', "expected {length:FORMAT} exactly once"],
    [4, 'framing: { type: length, header: "{length:i8}", max_bytes: 9 }', "a length has no sign"],
    [4, 'framing: { type: length, header: "<ANY>{length:u8}", max_bytes: 9 }', "<ANY> cannot be sent; add requests: raw"],
    [6, "  station: { type: integer, max: 999 }", "8 requests.weight.send: {station:d2}: 999 takes more than 2 digits"],
    [6, "  station: { type: integer, min: 5, max: 1 }", "6 parameters.station.min: is above max"],
    [6, "  station: { type: text }", "8 requests.weight.send: {station:d2}: a text takes the format s"],
    [6, "  station: { type: integer, max: 99, default: 100 }", "6 parameters.station.default: expected a whole number of 0 to 99"],
    [6, "  station: { type: detail, detail: machin, values: { C4: 4 } }", "there is no field machin in the details of vendor_b"],
    [6, "  station: { type: detail, detail: machine, values: { C9: 4 } }", "there is no value C9 of machine; there are C4, C5, C6"],
    [
      8,
      '  weight: { reads: the weight, send: "W{statin:d2}" }',
      "8 requests.weight.send: there is no parameter or argument statin; there is station",
    ],
    [8, '  weight: { send: "W{station:d2}" }', "8 requests.weight.reads: is required"],
    [8, '  weight: { reads: x, send: "W{station:q}" }', "8 requests.weight.send: {station:q}: q is not a format"],
    [
      9,
      '  one: { reads: x, send: "V{name:s}X", arguments: { name: { type: text } } }',
      '9 requests.one.send: {name:s}: "X" behind it could be part of it',
    ],
    [9, '  one: { reads: x, send: "V", arguments: { name: { type: text } } }', "9 requests.one.arguments.name: is not in send"],
    [9, '  one: { reads: x, send: "V{station:d}", arguments: { station: { type: text } } }', "is the name of a parameter"],
    [11, "  weight: { request: wight, whole: true }", "11 variables.weight.request: there is no request wight; there are weight, one"],
    [11, "  weight: { request: weight }", "11 variables.weight: expected exactly one of bytes, field, column, pattern, whole"],
    [11, "  weight: { request: weight, column: { from: 5, to: 2 } }", "11 variables.weight.column: from is behind to"],
    [11, '  weight: { request: weight, pattern: "*{value}" }', "11 variables.weight.pattern: between * and {value}"],
    [11, "  weight: { request: weight, bytes: { at: 0, format: u8, bit: 8 } }", "11 variables.weight.bytes.bit: u8 has no bit 8"],
    [11, "  weight: { request: weight, whole: true, type: string, factor: 2 }", "11 variables.weight.factor: only numbers can be scaled"],
    [12, "  One: { request: one, whole: true }", "12 variables.One: expected a name of a-z"],
    [14, "  - { equals: E1, meaning: x }", "14 errors.0: expected either fault or reason"],
    [14, "  - { fault: not_found, meaning: x }", "14 errors.0: expected one of equals, begins, ends, contains"],
    [14, "  - { equals: E1, fault: missing, meaning: x }", "14 errors.0.fault:"],
    [14, "  - { equals: E1, reason: BROKEN, meaning: x }", "14 errors.0.reason:"],
    [14, "  - { equals: E1, fault: not_found, meaning: x }\nbare_address: weight", "15 bare_address: weight has no arguments"],
    [14, "  - { equals: E1, fault: not_found, meaning: x }\nconnect: [one]", "15 connect.0: one has arguments, which have no value here"],
    [14, "  - { equals: E1, fault: not_found, meaning: x }\nresync: start", "15 resync: frames of the type delimiter without start"],
    [
      14,
      "  - { equals: E1, fault: not_found, meaning: x }\nanswer_within: 5min",
      "15 answer_within: expected a duration above zero and at most 60s",
    ],
    [14, "  - { equals: E1, fault: not_found, meaning: x }\naccepts: { machine: [C7] }", "there is no value C7 of machine"],
    [14, "  - a: [", "not valid YAML"],
  ])("line %i as %s", (line, text, said) => {
    expect(problemsWith(line, text).join("\n")).toContain(said);
  });

  test("in polls of X3.28 nothing but printable characters: what writes cannot be said", () => {
    const poll = lines.with(3, "framing: { type: x328 }").with(8, "  one: { reads: x, send: 'A<STX>B' }");
    const parsed = parseProfile(Buffer.from(poll.join("\n")));
    expect("problems" in parsed && parsed.problems).toMatchObject([
      { line: 9, path: "requests.one.send", message: expect.stringContaining("only printable characters can be polled") },
    ]);
  });
});

test("whatever the bytes, there is a profile or there are problems", () => {
  const text = readFileSync(TEN_LINES, "latin1");
  const changed = fc
    .tuple(fc.nat(text.length), fc.nat(12), fc.string({ maxLength: 8 }))
    .map(([at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut));
  fc.assert(
    fc.property(changed, (bytes) => {
      const parsed = parseProfile(Buffer.from(bytes));
      if ("problems" in parsed) expect(parsed.problems.length).toBeGreaterThan(0);
    }),
    { numRuns: 300 },
  );
});
