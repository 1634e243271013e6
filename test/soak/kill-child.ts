import { appendFileSync } from "node:fs";
import { uptime } from "node:os";
import path from "node:path";
import type { SinkSpec } from "../../src/delivery/messages.ts";
import type { Layout } from "../../src/model/layout.ts";
import { policySchema } from "../../src/model/policy.ts";
import type { Reading } from "../../src/model/value.ts";
import { createLogger } from "../../src/os/log.ts";
import { Pipeline } from "../../src/pipeline.ts";
import { clockReader, monotonicMs } from "./kill-faults.ts";
import { BOUNDS, isWide, type Life, NUMBER_EVERY, SINKS, SOURCE_NAMES, SOURCES, VALUES, variableUuid, WIDE_VALUES } from "./kill-plan.ts";

/**
 * One life of what is killed: the pipeline as the service has it, with its workers and real sinks. Readout n is of the source n mod SOURCES,
 * all its values are n, and its span is when it was read by the clock that nobody sets; a wide one has n in each NUMBER_EVERY-th value. What
 * was seen is told in the events file: `c <number>` up to this is committed, `r <number>` what was not is rejected,
 * `l <sink> <accepted> <delivered> <pending> <dropped> <unconfirmed>` a ledger, `s <sink> 0` it is not configured, `s <sink> 1 <number>` it is from this
 * number on, `t <number>` it was stopped in order after this one, `! …` an alarm. Its only argument is a Life as JSON.
 */
const life = JSON.parse(process.argv[2] ?? "{}") as Life;
const { file, events, run, first, task } = life;
const tell = (text: string): void => appendFileSync(events, `${text}\n`);
const clock = clockReader(process.env["CLOCK_CONTROL"]);
const STEP_MS = 5;
const LOOK_MS = 50;
const WIDE = SOURCE_NAMES.length - 1;

const layouts = SOURCE_NAMES.map((name, source): Layout => {
  const isOfNumber = (place: number): boolean => source !== WIDE || place % NUMBER_EVERY === 0;
  const variables = Array.from({ length: source === WIDE ? WIDE_VALUES : VALUES }, (_, place) => ({
    uuid: variableUuid(source, place),
    name: `v${source === WIDE ? String(place).padStart(90, "0") : place}`,
    address: `holding:${place}`,
    type: { scalar: isOfNumber(place) ? ("uint32" as const) : ("bool" as const) },
    unit: null,
    comment: null,
    exploration: false,
  }));
  return { source: { uuid: life.platform.sources[source] ?? name, name }, variables };
});

const pipeline = new Pipeline({
  run,
  bufferFile: file,
  bounds: BOUNDS,
  log: createLogger({ level: "error", format: "json", stream: process.stderr, journald: false }),
  workerUrl: (name) => new URL(`../../src/threads/${name}/worker.ts`, import.meta.url),
  policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
  pki: { dir: path.join(path.dirname(file), "pki"), installation: "00000000-0000-4000-8000-000000000001" },
  onAlarm: ({ text }) => tell(`! ${text}`),
  onCommitted: (upTo) => tell(`c ${first - 1 + upTo}`),
  onRejected: (upTo) => tell(`r ${first - 1 + upTo}`),
});

const { url, keyFile } = life.platform;
const details = [
  { type: "mqtt", host: "127.0.0.1", port: life.brokerPort, topic: "plant/{source}", publish_interval: 20 },
  { type: "platform", publish_interval: 200, api: { url, keyFile, insecure: false, embedded: false } },
] as const;
const settings = [
  { publish_timeout: `${life.publishTimeoutMs}ms`, in_flight: 16, hold_refused: "1h" },
  { request_timeout: `${4 * life.publishTimeoutMs}ms` },
];
const specs = SINKS.map(({ uuid, name }, i): SinkSpec => {
  const [of = details[0], local = {}] = [details[i], settings[i]];
  return { uuid, name, type: of.type, details: of, settings: local, secrets: {}, publishIntervalUnit: "milliseconds" };
});

const removed = new Set<number>();
let next = first;
let isStopping = false;
const configure = (): void => pipeline.setSinks(specs.filter((_, sink) => !removed.has(sink)));
for (const { sink, fromMs, toMs } of life.removals) {
  setTimeout(() => {
    removed.add(sink);
    tell(`s ${sink} 0`);
    configure();
  }, fromMs);
  setTimeout(() => {
    removed.delete(sink);
    tell(`s ${sink} 1 ${next}`);
    configure();
  }, toMs);
}
configure();
pipeline.describe([]);

function append(number: number): boolean {
  const hasMany = life.hasWide && isWide(number);
  const layout = layouts[hasMany ? WIDE : number % SOURCES];
  if (!layout) throw new Error("there is no layout");
  const readings = layout.variables.map(({ type }, place): Reading => {
    return { quality: "good", value: type.scalar === "bool" ? (place + number) % 3 === 0 : number };
  });
  const { time, isSynchronised: clockSynced } = clock();
  const bootTimeMs = time - Math.round(uptime() * 1000);
  return pipeline.append(layout, { time, spanMs: monotonicMs(), clockSynced, bootTimeMs, readings });
}

if (task === "append")
  setInterval(() => {
    for (let i = 0; i < SOURCES && !isStopping && append(next); i++) next++;
  }, STEP_MS);
process.once("SIGTERM", () => {
  isStopping = true;
  void pipeline.stop().then(() => {
    tell(`t ${next - 1}`);
    process.exit(0);
  });
});
setInterval(() => {
  const ledgers = pipeline.sinks().flatMap(({ uuid, ledger }) => (ledger ? [{ uuid, ...ledger }] : []));
  for (const { uuid, accepted, delivered, unconfirmed, pending, dropped } of ledgers) {
    const lost = Object.values(dropped).reduce((sum, n) => sum + n, 0);
    tell(`l ${SINKS.findIndex((sink) => sink.uuid === uuid)} ${accepted} ${delivered} ${pending} ${lost} ${unconfirmed}`);
  }
  const isDone = ledgers.length === SINKS.length && ledgers.every(({ pending }) => pending === 0);
  if (task !== "drain" || isStopping || !isDone) return;
  isStopping = true;
  void pipeline.stop().then(() => process.exit(0));
}, LOOK_MS);
