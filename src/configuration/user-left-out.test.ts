import { join } from "node:path";
import { expect, test } from "vitest";
import { readLastGood, saveLastGood } from "../api/last-good.ts";
import { COLLECTOR, MACHINE, temporaryFolder } from "../api/server/testing.ts";
import { dataSinkSchema, dataSourceSchema } from "../model/resources.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { desiredSinks } from "./desired-sinks.ts";
import { desiredSources } from "./desired-sources.ts";

const CANARY = "Canary-7d20";
const SOURCE = dataSourceSchema.parse({
  uuid: "10000000-0000-4000-8000-000000000001",
  type: "opcua",
  readout_limit: null,
  readout_interval: 10,
  name: "press",
  collector: COLLECTOR,
  manufacturer: null,
  device_model: null,
  note: null,
  machine: MACHINE,
  details: { type: "opcua", host: `${CANARY}@10.0.0.7`, endpoint_url: `opc.tcp://reader:${CANARY}@10.0.0.7:4840` },
});
const SINK = dataSinkSchema.parse({
  uuid: "10000000-0000-4000-8000-000000000002",
  name: "broker",
  collector: COLLECTOR,
  type: "mqtt",
  details: { type: "mqtt", host: `reader:${CANARY}@10.0.0.9`, port: 1883, topic: "plant" },
});

const sourceOf = async (source: typeof SOURCE) => {
  const files = { bySource: new Map(), problems: [] } as unknown as Parameters<typeof desiredSources>[1];
  const configuration = { sources: [source], variables: null, secrets: {} };
  const [input] = await desiredSources(configuration, files, { sources: {}, readout_interval_unit: "seconds" }, new Map());
  return input;
};

const LEFT_OUT = /^host and endpoint_url held a user or a password, which was left out: .* give it where the type has fields/;

test("a source whose addresses held a password says that it was left out, and what to do", async () => {
  const input = await sourceOf(SOURCE);
  expect(codesOf(input?.warnings)).toContain("user_left_out");
  expect(textsOf(input?.warnings)).toEqual([expect.stringMatching(LEFT_OUT)]);
  expect(JSON.stringify(input)).not.toContain(CANARY);
});

test("a sink whose host held a password says that it was left out, and what to do", () => {
  const api = { url: "https://platform.example", keyFile: "/etc/collector/key", insecure: false, embedded: false } as const;
  const sinks = desiredSinks({ sinks: [SINK], secrets: {} }, { publish_interval_unit: "seconds" }, () => ({}), new Map(), api);
  expect(textsOf(sinks[0]?.notes)).toEqual([expect.stringMatching(/^host held a user or a password, which was left out/)]);
  expect(JSON.stringify(sinks)).not.toContain(CANARY);
});

test("the kept configuration holds no password of an address, and still says that one was left out", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, {
    collector: COLLECTOR,
    fetchedAt: "2026-11-20T09:00:00.000Z",
    sources: [SOURCE],
    sinks: [SINK],
    variables: null,
    secrets: {},
    areSecretsAwaited: false,
    revision: null,
  });
  const kept = await readLastGood(file);
  expect(JSON.stringify(kept)).not.toContain(CANARY);
  if (kept.type !== "loaded") throw new Error(kept.message);
  expect(kept.warnings).toEqual([]);
  const [source] = kept.configuration.sources;
  if (!source) throw new Error("no source was kept");
  expect(textsOf((await sourceOf(source))?.warnings)).toEqual([expect.stringMatching(LEFT_OUT)]);
});
