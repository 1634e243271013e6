import { describe, expect, test } from "vitest";
import { compressionProblem } from "./compression.ts";
import { settingsSchema, topicNeed } from "./settings.ts";

const need = (settings: object, topic = "plant/{source}/{variable}") => topicNeed(settingsSchema.parse(settings), topic);

describe("settings that do not fit", () => {
  test.each([
    [{}, "{site}/{source}", /^topic_words: .*\{site\}.*topic_words\.site=/],
    [{ payload: "raw", compression: "gzip" }, "p/{variable}", /^compression: payload: raw/],
    [{ payload: "columns", home_assistant: "homeassistant" }, "p", /^home_assistant: /],
    [{ home_assistant: "homeassistant", compression: "gzip" }, "p", /^home_assistant: /],
  ])("%j with the topic %s are named with what would be right", (settings, topic, words) => {
    expect(need(settings, topic)).toMatch(words);
  });

  test("words of the settings, and those that need none, fit", () => {
    expect(need({ topic_words: { site: "plant/7" } }, "{site}/{collector}/{machine}/{source}")).toBeUndefined();
    expect(need({ payload: "columns", compression: "gzip" })).toBeUndefined();
  });

  test.each([
    { topic_words: { Site: "x" } },
    { topic_words: { site: "a/+" } },
    { topic_words: { site: "{source}" } },
    { home_assistant: "a/#" },
    { home_assistant: "a/" },
  ])("%j is refused", (settings) => expect(settingsSchema.safeParse(settings).success).toBe(false));

  test("zstd is refused where Node does not have it, and only there", () => {
    const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
    const has = major > 23 || (major === 23 && minor >= 8) || (major === 22 && minor >= 15);
    expect(compressionProblem("zstd") === undefined).toBe(has);
    expect(need({ compression: "zstd" }) === undefined).toBe(has);
  });
});
