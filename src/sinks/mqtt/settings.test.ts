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
    [{ manifest: true, payload: "value" }, "p/{variable}", /^manifest: payload: value.*use envelope, columns or rows/],
    [{ manifest: true, payload: "sparkplug" }, "p", /^manifest: payload: sparkplug/],
    [{ manifest: true, qos: 0 }, "p", /^manifest: with qos: 0/],
  ])("%j with the topic %s are named with what would be right", (settings, topic, words) => {
    expect(need(settings, topic)).toMatch(words);
  });

  test("words of the settings, and those that need none, fit", () => {
    expect(need({ topic_words: { site: "plant/7" } }, "{site}/{collector}/{machine}/{source}")).toBeUndefined();
    expect(need({ payload: "columns", compression: "gzip" })).toBeUndefined();
    expect(need({ manifest: true, payload: "rows" })).toBeUndefined();
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

const problemOf = (settings: object, topic = "plant/{source}"): string | undefined => topicNeed(settingsSchema.parse(settings), topic);

describe("payload: sparkplug", () => {
  test("needs nothing of the topic", () => {
    expect(problemOf({ payload: "sparkplug" }, "anything")).toBeUndefined();
    expect(problemOf({ payload: "sparkplug", primary_host_id: "scada", edge_node_id: "line 3" })).toBeUndefined();
  });

  test("does not go with retain, nor its identifiers with another payload", () => {
    expect(problemOf({ payload: "sparkplug", retain: true })).toMatch(/^retain: true is not for payload: sparkplug/);
    expect(problemOf({ primary_host_id: "a" })).toMatch(/^primary_host_id needs payload: sparkplug/);
    expect(problemOf({ edge_node_id: "a", payload: "rows" })).toMatch(/^edge_node_id needs payload: sparkplug, and payload is rows/);
  });

  test.each([{ group_id: "a/b" }, { group_id: "STATE" }, { edge_node_id: "#" }, { primary_host_id: "" }])("refuses %j", (identifiers) => {
    expect(settingsSchema.safeParse({ payload: "sparkplug", ...identifiers }).success).toBe(false);
  });

  test("has a group where none is given", () => {
    expect(settingsSchema.parse({ payload: "sparkplug" })).toMatchObject({ group_id: "collector", qos: 1 });
  });
});
