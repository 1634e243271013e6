import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  defaultClientId,
  defaultPublishInterval,
  placeholdersOf,
  sinkDetailsCreateSchema,
  topicProblem,
  withWords,
} from "./sink-details.ts";

describe("topics", () => {
  test.each(["plant", "plant/{source}", "plant/{source}/{variable}", "{site}/{machine}", "/", "a }", "$share", "ü/😀", "x".repeat(65_535)])(
    "%.20s is taken",
    (topic) => {
      expect(topicProblem(topic)).toBeUndefined();
    },
  );

  test.each([
    ["", /at least one character/],
    ["plant/+/x", /wildcard/],
    ["plant/#", /wildcard/],
    ["a\0b", /NUL/],
    ["\udc00", /UTF-8/],
    ["x".repeat(65_536), /65535 bytes/],
    ["😀".repeat(16_384), /65535 bytes/],
    ["{Source}", /\{source\}, \{variable\}/],
    ["{{source}}", /\{source\}, \{variable\}/],
    ["{source", /\{source\}, \{variable\}/],
    ["{a b}", /\{source\}, \{variable\}/],
  ])("%.20s is refused with what would be right", (topic, message) => {
    expect(topicProblem(topic)).toMatch(message);
    const result = sinkDetailsCreateSchema.safeParse({ type: "mqtt", host: "broker", topic });
    expect(result.error?.issues).toMatchObject([{ path: ["topic"], message: expect.stringMatching(message) }]);
  });

  test("words are found and filled in, and others stay", () => {
    expect(placeholdersOf("{site}/{source}-{site}/x")).toEqual(["site", "source", "site"]);
    expect(withWords("{site}/{source}/{constructor}", { site: "plant/7" })).toBe("plant/7/{source}/{constructor}");
  });

  test("what is taken is a topic that MQTT can carry, once its placeholders are filled", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "+", "#", "\0", "{", "}", "{source}", "{variable}", "é", "\ud800", "/") }),
        (topic) => {
          fc.pre(topicProblem(topic) === undefined);
          const filled = withWords(topic, Object.fromEntries(placeholdersOf(topic).map((word) => [word, "w"])));
          expect(filled).toMatch(/^[^+#\0{]+$/);
          expect(Buffer.from(filled).toString()).toBe(filled);
        },
      ),
    );
  });
});

test("what is left out: the port has its default, the client and the interval are filled in where the sink is known", () => {
  expect(sinkDetailsCreateSchema.parse({ type: "mqtt", host: "broker", topic: "plant" })).toEqual({
    type: "mqtt",
    host: "broker",
    port: 1883,
    topic: "plant",
  });
  expect(defaultClientId("0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1")).toBe("collector-0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1");
  expect(defaultPublishInterval("seconds")).toBe(1);
  expect(defaultPublishInterval("milliseconds")).toBe(1000);
});
