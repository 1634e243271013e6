import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import {
  collectorStatusTopic,
  createTopicTest,
  dataTopic,
  escapeLevel,
  lossTopic,
  parseTopic,
  sourceMetaTopic,
  sourceStatusTopic,
} from "./topics.ts";

const name = fc.oneof(
  anyText({ maxLength: 12 }),
  fc.string({ unit: fc.constantFrom("/", "+", "#", "%", "$", "\0", "\u0085", "\ud800", "\udc00", "a", "2", "F", "u", "ü"), maxLength: 5 }),
  fc.constantFrom("", "%", "%25", "%2F", "status", "meta", "gap", "%73tatus", "%6Deta", "%67ap"),
);

describe("names in topics", () => {
  test("different names give different levels", () => {
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(escapeLevel(a) === escapeLevel(b)).toBe(a === b);
      }),
      { numRuns: 3000 },
    );
  });

  test("a level has nothing in it that a topic cannot hold", () => {
    fc.assert(
      fc.property(name, (text) => {
        const level = escapeLevel(text);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
        expect(level).not.toMatch(/[/+#$\u0000-\u001F\u007F-\u009F]/);
        expect(level.isWellFormed()).toBe(true);
        expect(level).not.toBe("");
      }),
    );
  });

  test("plain names stay as they are, others can be read back", () => {
    expect(escapeLevel("Presse 1 (süd)")).toBe("Presse 1 (süd)");
    expect(escapeLevel("a/b+c#d%e")).toBe("a%2Fb%2Bc%23d%25e");
    expect(decodeURIComponent(escapeLevel("a/b+c#d%e\0\u0085"))).toBe("a/b+c#d%e\0\u0085");
  });
});

test.each([
  ["plant/values", "plant/values", "plant/values/status", "plant/values/status/press-1", "plant/values/meta/press-1"],
  ["plant/{source}", "plant/press-1", "plant/status", "plant/status/press-1", "plant/meta/press-1"],
  ["plant/{source}/v/{variable}", "plant/press-1/v/temp", "plant/status", "plant/status/press-1", "plant/meta/press-1"],
  ["plant/line-{source}", "plant/line-press-1", "plant/status", "plant/status/press-1", "plant/meta/press-1"],
  ["{variable}@{source}", "temp@press-1", "status", "status/press-1", "meta/press-1"],
])("the topic %s", (template, data, collector, status, meta) => {
  const plan = parseTopic(template);
  expect([
    dataTopic(plan, { name: "press-1" }, "temp"),
    collectorStatusTopic(plan),
    sourceStatusTopic(plan, "press-1"),
    sourceMetaTopic(plan, "press-1"),
  ]).toEqual([data, collector, status, meta]);
  expect(plan.perVariable).toBe(template.includes("{variable}"));
});

test("a source called status, meta or gap never takes a topic that is not for values", () => {
  const plan = parseTopic("plant/{source}");
  expect(dataTopic(plan, { name: "status" }, "")).toBe("plant/%73tatus");
  expect(dataTopic(plan, { name: "meta" }, "")).toBe("plant/%6Deta");
  expect(lossTopic(plan)).toBe("plant/gap");
  expect(dataTopic(plan, { name: "gap" }, "")).toBe("plant/%67ap");
});

test.each([
  ["", /at least one character/],
  ["a/#", /wildcard/],
  ["a/+/b", /wildcard/],
  ["a/{source", /\{source\}, \{variable\}/],
  ["a\0b", /NUL/],
  ["$SYS/x", /begin with \$/],
  ["a".repeat(60_001), /60000 bytes/],
])("the topic %j is refused in words", (topic, words) => {
  expect(() => parseTopic(topic)).toThrow(words);
  expect(() => parseTopic(topic)).toThrow(/^topic: /);
});

test("the machine of a source is a level of its topic, and has a word where there is none", () => {
  const plan = parseTopic("plant/{machine}/{source}");
  expect(dataTopic(plan, { name: "press-1", machine: "m/1" }, "")).toBe("plant/m%2F1/press-1");
  expect(dataTopic(plan, { name: "press-1" }, "")).toBe("plant/no-machine/press-1");
  expect(plan.prefix).toBe("plant/");
  expect(createTopicTest(plan, "press-1")("plant/anything/press-1")).toBe(true);
});
