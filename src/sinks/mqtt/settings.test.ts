import { describe, expect, it } from "vitest";
import { settingsSchema, topicNeed } from "./settings.ts";

const problemOf = (settings: object, topic = "plant/{source}"): string | undefined => topicNeed(settingsSchema.parse(settings), topic);

describe("payload: sparkplug", () => {
  it("needs nothing of the topic", () => {
    expect(problemOf({ payload: "sparkplug" }, "anything")).toBeUndefined();
    expect(problemOf({ payload: "sparkplug", primary_host_id: "scada", edge_node_id: "line 3" })).toBeUndefined();
  });

  it("does not go with retain, nor its identifiers with another payload", () => {
    expect(problemOf({ payload: "sparkplug", retain: true })).toMatch(/^retain: true is not for payload: sparkplug/);
    expect(problemOf({ primary_host_id: "a" })).toMatch(/^primary_host_id needs payload: sparkplug/);
    expect(problemOf({ edge_node_id: "a", payload: "rows" })).toMatch(/^edge_node_id needs payload: sparkplug, and payload is rows/);
  });

  it.each([{ group_id: "a/b" }, { group_id: "STATE" }, { edge_node_id: "#" }, { primary_host_id: "" }])("refuses %j", (identifiers) => {
    expect(settingsSchema.safeParse({ payload: "sparkplug", ...identifiers }).success).toBe(false);
  });

  it("has a group where none is given", () => {
    expect(settingsSchema.parse({ payload: "sparkplug" })).toMatchObject({ group_id: "collector", qos: 1 });
  });
});
