import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { freePort } from "../test/support/free-port.ts";
import { temporaryFolder } from "./buffer/testing/folder.ts";
import { plainLayout, plainReadout } from "./buffer/testing/readouts.ts";
import type { SinkSpec } from "./delivery/messages.ts";
import { policySchema } from "./model/policy.ts";
import { textsOf } from "./model/testing/warnings.ts";
import { createLogger } from "./os/log.ts";
import { Pipeline } from "./pipeline.ts";
import { createMetrics } from "./service/metrics.ts";
import { bufferWords } from "./service/words/service-words.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** Readouts of these many values, which take about 2 KiB. */
const VALUES = 500;

/** A pipeline with a small buffer, whose one broker is away. Only the monotonic clock of this thread is the test's. */
async function outage() {
  vi.useFakeTimers({ toFake: ["performance"] });
  undo.push(() => vi.useRealTimers());
  const folder = temporaryFolder();
  undo.push(() => folder[Symbol.dispose]());
  const lines: string[] = [];
  const log = createLogger({ level: "warn", format: "text", stream: { write: (line: string) => lines.push(line) > 0 }, journald: false });
  const pipeline = new Pipeline({
    run: "run-1",
    bufferFile: path.join(folder.path, "buffer.db"),
    bounds: { maxBytes: 2 ** 20, maxAgeMs: 1e12, keepRemovedMs: 1e12 },
    warnBelowMs: 12 * 3_600_000,
    log,
    workerUrl: (name) => new URL(`./threads/${name}/worker.ts`, import.meta.url),
    policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
    pki: { dir: path.join(folder.path, "pki"), installation: "00000000-0000-4000-8000-000000000001" },
    onAlarm: ({ text }) => log.error({}, text),
  });
  undo.push(() => pipeline.stop());
  const details = { type: "mqtt", host: "127.0.0.1", port: await freePort(), topic: "t", publish_interval: 1000 };
  pipeline.setSinks([
    { uuid: "sink-1", name: "broker", type: "mqtt", details, settings: {}, secrets: {}, publishIntervalUnit: "milliseconds" },
  ]);
  const layout = plainLayout(VALUES);
  const ledger = () => pipeline.sinks()[0]?.ledger;
  let readouts = 0;
  /** This many readouts, one a second, and the account behind them. */
  const read = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) pipeline.append(layout, plainReadout(VALUES, readouts++));
    vi.advanceTimersByTime(count * 1000);
    await expect.poll(() => ledger()?.accepted, { timeout: 10_000, interval: 5 }).toBe(readouts * VALUES);
  };
  await expect.poll(() => pipeline.sinks()[0]?.state, { timeout: 10_000 }).toBe("ERROR");
  return { pipeline, lines, ledger, read };
}

test("the oldest values are not thrown away without a word: how long they last stands in status and metrics in the first minute of an outage, the shipped rule fires, and the first that goes is an alarm", async () => {
  const { pipeline, lines, ledger, read } = await outage();
  for (let n = 0; n < 5; n++) await read(10);
  expect(ledger()?.dropped).toEqual({});
  expect(bufferWords(pipeline.buffer())[0]).toMatch(/^full in about \d+ min at today's rate, then the oldest values are dropped/);
  const metrics = createMetrics(() => ({
    version: "1",
    collector: "c",
    started_at: new Date().toISOString(),
    config: { origin: "api", api_url: "", ok: true, message: null, since: null, warnings: [] },
    sources: [],
    sinks: pipeline.sinks(),
    buffer: pipeline.buffer(),
    alarms: [],
  }));
  undo.push(() => metrics.stop());
  expect(firesNow(await metrics.text(), "CollectorBufferFilling")).toBe(true);
  while ((ledger()?.dropped["buffer_full"] ?? 0) === 0) await read(60);
  await expect
    .poll(() => lines.filter((line) => /\bERROR\b/.test(line) && /values/.test(line)))
    .toEqual([expect.stringMatching(/since \d{4}-\d\d-\d\dT.*Z, \d+ so far.*buffer\.max_bytes \(1\.0 MiB\)/)]);
  expect(textsOf(pipeline.notes())[0]).toContain(`${ledger()?.dropped["buffer_full"]} so far`);
}, 30_000);

test("fault: sinks that come while the pipeline stops leave a delivery thread behind", async () => {
  const folder = temporaryFolder();
  undo.push(() => folder[Symbol.dispose]());
  const started: string[] = [];
  const pipeline = new Pipeline({
    run: "run-1",
    bufferFile: path.join(folder.path, "buffer.db"),
    bounds: { maxBytes: 2 ** 20, maxAgeMs: 1e12, keepRemovedMs: 1e12 },
    log: createLogger({ level: "warn", format: "text", stream: { write: () => true }, journald: false }),
    workerUrl: (name) => {
      started.push(name);
      return new URL(`./threads/${name}/worker.ts`, import.meta.url);
    },
    policy: policySchema.parse({}),
    pki: { dir: path.join(folder.path, "pki"), installation: "00000000-0000-4000-8000-000000000001" },
    onAlarm: () => {},
  });
  const stopped = pipeline.stop();
  const details = { type: "mqtt", host: "127.0.0.1", port: await freePort(), topic: "t", publish_interval: 1000 };
  const sinks: readonly SinkSpec[] = [
    { uuid: "sink-1", name: "broker", type: "mqtt", details, settings: {}, secrets: {}, publishIntervalUnit: "milliseconds" },
  ];
  pipeline.setSinks(sinks);
  await stopped;
  pipeline.setSinks(sinks);
  expect(started).toEqual(["store"]);
});

/** A rule of numbers without labels, by the metrics of one moment. */
function firesNow(text: string, alert: string): boolean {
  const file = path.resolve(import.meta.dirname, "../package/monitoring/collector-alerts.yml");
  const { groups } = parse(readFileSync(file, "utf8")) as { groups: { rules: { alert: string; expr: string }[] }[] };
  const rule = groups.flatMap(({ rules }) => rules).find((one) => one.alert === alert);
  const numberOf = (word: string): number => Number(/^collector_/.test(word) ? new RegExp(`^${word} (\\S+)$`, "m").exec(text)?.[1] : word);
  return (rule?.expr ?? "").split(" and ").every((part) => {
    const [, left = "", operator = "", right = ""] = /^(.*?) (<|>|==) (.*)$/.exec(part) ?? [];
    const [a = 0, b = 0] = [left, right].map((side) =>
      side
        .split(" * ")
        .map(numberOf)
        .reduce((product, factor) => product * factor, 1),
    );
    return operator === "<" ? a < b : operator === ">" ? a > b : a === b;
  });
}
