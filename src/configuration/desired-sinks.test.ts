import { expect, test } from "vitest";
import { prepareSink } from "../delivery/prepare-sink.ts";
import type { ApiAccess } from "../model/api-access.ts";
import type { DataSink } from "../model/resources.ts";
import { SINKS } from "../sinks/index.ts";
import { desiredSinks } from "./desired-sinks.ts";

const API: ApiAccess = { url: "https://platform.example", keyFile: "/etc/collector/key", insecure: false, embedded: false };

const sinksOf = (details: unknown, type = "platform", settings: Readonly<Record<string, unknown>> = {}) =>
  desiredSinks(
    { sinks: [{ uuid: "7e0d3c5a-0000-4000-8000-000000000001", name: "platform", type, details } as unknown as DataSink], secrets: {} },
    { publish_interval_unit: "seconds" },
    () => settings,
    new Map(),
    API,
  );

test("where the platform is, this machine's settings say, whatever the API does", async () => {
  const [spec] = sinksOf({ type: "platform", publish_interval: 5, api: { ...API, url: "http://169.254.169.254" } });
  expect(spec?.details).toEqual({ type: "platform", publish_interval: 5, api: API });
  if (!spec) throw new Error("no sink is desired");
  const prepared = await prepareSink(spec, SINKS);
  expect(prepared).toMatchObject({ endpoint: "platform.example:443", publishIntervalMs: 5000, backlog: "live_first" });
});

test("no other kind of sink learns it", () => {
  expect(sinksOf({ type: "mqtt", host: "broker" }, "mqtt")[0]?.details).toEqual({ type: "mqtt", host: "broker" });
});

test.each([
  ["details.type", null, {}],
  ["publish_interval", { type: "platform", publish_interval: 0 }, {}],
  ["in_flight", { type: "platform" }, { in_flight: 5 }],
  ["request_timeout", { type: "platform" }, { request_timeout: "0s" }],
  ["no_such", { type: "platform" }, { no_such: 1 }],
])("a wrong %s is refused by name", async (field, details, settings) => {
  const [spec] = sinksOf(details, "platform", settings);
  if (!spec) throw new Error("no sink is desired");
  await expect(prepareSink(spec, SINKS)).rejects.toThrow(field);
});
