import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startBroker, type TestBroker } from "../../../test/support/broker.ts";
import { sourceReport } from "../../../test/support/source-report.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { type Context, silentLog } from "../../model/context.ts";
import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import { SINKS } from "../index.ts";
import type { Sink, SinkBatch } from "../sink.ts";
import { type MqttMemory, openMemory } from "./memory.ts";
import { good, readoutOf, TIME, variableOf } from "./testing.ts";

const ctx: Context = { signal: new AbortController().signal, log: silentLog };
const uuid = "7e0d3c5a-0000-4000-8000-000000000001";
let broker: TestBroker;
let folder: string;
const opened: Sink[] = [];

beforeEach(async () => {
  broker = await startBroker();
  folder = await mkdtemp(path.join(tmpdir(), "retained-values-"));
});
afterEach(async () => {
  for (const sink of opened.splice(0)) await sink.close();
  await broker.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

const memoryOf = (): MqttMemory => openMemory({ folder, uuid, endpoint: "broker:1883", log: silentLog });

async function open(memory: MqttMemory, settings: object = {}, topic = "plant/{source}/{variable}"): Promise<Sink> {
  const details = { type: "mqtt", host: "127.0.0.1", port: broker.port, topic };
  const spec = { uuid, name: "broker", type: "mqtt", details, settings: { payload: "value", retain: true, ...settings }, secrets: {} };
  const { kind, ...prepared } = await prepareSink({ ...spec, publishIntervalUnit: "seconds" }, SINKS);
  const sink = await kind.open({ uuid, name: spec.name, details: prepared.details, settings: prepared.settings, secrets: {}, memory }, ctx);
  opened.push(sink);
  return sink;
}

const layoutOf = (source: string, ...names: readonly string[]): Layout => ({
  source: { uuid: `source-${source}`, name: source },
  variables: names.map((name) => variableOf(name, "uint16")),
});

const batchOf = (layout: Layout, value: number, more: Partial<SinkBatch> & { readonly time?: number } = {}): SinkBatch => ({
  id: `e-${value}`,
  layout,
  readouts: [
    readoutOf(
      layout.variables.map(() => good(value)),
      { time: more.time ?? TIME + value },
    ),
  ],
  backlog: false,
  ...more,
});

const sourceOf = (name: string, layout: Layout | null): SourceReport => sourceReport(name, { layout });

/** The values that the broker keeps, by topic. */
const kept = (): Record<string, unknown> =>
  Object.fromEntries(
    [...broker.retained]
      .filter(([topic]) => !/\/(status|meta)\b/.test(topic))
      .map(([topic, payload]) => [topic.replace("plant/", ""), JSON.parse(payload).value]),
  );

const AB = layoutOf("press", "a", "b");

test("the newest value of each variable is kept; what comes late never replaces a newer one, and a clock that is set back is no reason", async () => {
  const sink = await open(memoryOf());
  await sink.write(batchOf(AB, 5), ctx);
  await sink.write(batchOf(AB, 3, { backlog: true }), ctx);
  expect(kept()).toEqual({ "press/a": 5, "press/b": 5 });
  await sink.write(batchOf(AB, 9, { time: 0 }), ctx);
  expect(kept()).toEqual({ "press/a": 9, "press/b": 9 });
  await sink.write(batchOf(AB, 7, { backlog: true }), ctx);
  expect(kept()).toEqual({ "press/a": 7, "press/b": 7 });
  expect(broker.received.filter((m) => m.topic === "plant/press/a")).toHaveLength(4);
});

test("without retain nothing is kept", async () => {
  const sink = await open(memoryOf(), { retain: false });
  await sink.write(batchOf(AB, 5), ctx);
  expect(kept()).toEqual({});
});

test("a variable or source that is gone takes its values with it, and older values of it do not bring them back", async () => {
  const sink = await open(memoryOf());
  await sink.describe?.([sourceOf("press", AB), sourceOf("saw", layoutOf("saw", "a"))], ctx);
  await sink.write(batchOf(AB, 1), ctx);
  await sink.write(batchOf(layoutOf("saw", "a"), 2), ctx);
  expect(kept()).toEqual({ "press/a": 1, "press/b": 1, "saw/a": 2 });
  const explored = { ...AB, variables: [...layoutOf("press", "a").variables, variableOf("b", "uint16", { exploration: true })] };
  await sink.describe?.([sourceOf("press", explored)], ctx);
  expect(kept()).toEqual({ "press/a": 1 });
  await sink.write(batchOf(AB, 4, { backlog: true }), ctx);
  expect(kept()).toEqual({ "press/a": 4 });
  await sink.forget?.(ctx);
  expect(kept()).toEqual({});
});

test("what went while the collector was down is cleared, and what is not known yet stays", async () => {
  const before = memoryOf();
  const first = await open(before);
  await first.write(batchOf(AB, 1), ctx);
  await first.write(batchOf(layoutOf("saw", "a"), 2), ctx);
  await first.close();
  before.close(false);
  const memory = memoryOf();
  const second = await open(memory);
  await second.describe?.([sourceOf("press", null)], ctx);
  expect(kept()).toEqual({ "press/a": 1, "press/b": 1 });
  await second.describe?.([sourceOf("press", layoutOf("press", "b"))], ctx);
  expect(kept()).toEqual({ "press/b": 1 });
  memory.close(true);
  expect(await readdir(folder)).toEqual([]);
});

test.each([
  ["retain is switched off", { retain: false }, undefined],
  ["the topic is another one", {}, "hall/{source}/{variable}"],
])("all of it is cleared when %s", async (_, settings, topic) => {
  const before = memoryOf();
  const first = await open(before);
  await first.write(batchOf(AB, 1), ctx);
  await first.close();
  before.close(false);
  const second = await open(memoryOf(), settings, topic);
  await second.describe?.([sourceOf("press", AB)], ctx);
  expect(kept()).toEqual({});
});
