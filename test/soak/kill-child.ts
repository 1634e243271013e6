import { appendFileSync } from "node:fs";
import { uptime } from "node:os";
import path from "node:path";
import { plainLayout } from "../../src/buffer/testing/readouts.ts";
import { policySchema } from "../../src/model/policy.ts";
import { createLogger } from "../../src/os/log.ts";
import { Pipeline } from "../../src/pipeline.ts";
import { BOUNDS } from "./kill-account.ts";
import { clockReader, monotonicMs } from "./kill-faults.ts";
import { SINK, SOURCES, VALUES } from "./kill-plan.ts";

/**
 * One life of what is killed: the pipeline as the service has it, with its workers and a real MQTT sink. Readout n is of the source
 * n mod SOURCES, all its values are n, and its span is when it was read by the clock that nobody sets. What was seen is told in the events
 * file: `c <number>` up to this is committed, `r <number>` what was not is rejected, `l <accepted> <delivered> <pending> <dropped>` a ledger,
 * `! …` an alarm, `e` everything is delivered (where nothing is appended). Arguments: file, events file, first number, name of the run, port,
 * append or drain.
 */
const [file = "", events = "", first = "1", run = "", port = "0", task = "append"] = process.argv.slice(2);
const base = Number(first) - 1;
const tell = (text: string): void => appendFileSync(events, `${text}\n`);
const layouts = Array.from({ length: SOURCES }, (_, i) => plainLayout(VALUES, { scalar: "uint32" }, `source-${i}`));
const clock = clockReader(process.env["CLOCK_CONTROL"]);
const STEP_MS = 5;
const LOOK_MS = 50;

const pipeline = new Pipeline({
  run,
  bufferFile: file,
  bounds: BOUNDS,
  log: createLogger({ level: "error", format: "json", stream: process.stderr, journald: false }),
  workerUrl: (name) => new URL(`../../src/threads/${name}/worker.ts`, import.meta.url),
  policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
  pki: { dir: path.join(path.dirname(file), "pki"), installation: "00000000-0000-4000-8000-000000000001" },
  onAlarm: (message) => tell(`! ${message}`),
  onCommitted: (upTo) => tell(`c ${base + upTo}`),
  onRejected: (upTo) => tell(`r ${base + upTo}`),
});
pipeline.setSinks([
  {
    uuid: SINK,
    name: "broker",
    type: "mqtt",
    details: { type: "mqtt", host: "127.0.0.1", port: Number(port), topic: "plant/{source}", publish_interval: 20 },
    settings: { publish_timeout: "400ms", in_flight: 16, hold_refused: "1h" },
    secrets: {},
    publishIntervalUnit: "milliseconds",
  },
]);
pipeline.describe([]);

if (task === "append") {
  let next = base + 1;
  setInterval(() => {
    for (let i = 0; i < SOURCES; i++) {
      const number = next++;
      const layout = layouts[number % SOURCES];
      const readings = Array.from({ length: VALUES }, () => ({ quality: "good", value: number }) as const);
      const { time, isSynchronised: clockSynced } = clock();
      const stamp = { time, spanMs: monotonicMs(), clockSynced, bootTimeMs: time - Math.round(uptime() * 1000) };
      if (layout) pipeline.append(layout, { ...stamp, readings });
    }
  }, STEP_MS);
}
setInterval(() => {
  const ledger = pipeline.sinks()[0]?.ledger;
  if (!ledger) return;
  const dropped = Object.values(ledger.dropped).reduce((sum, n) => sum + n, 0);
  tell(`l ${ledger.accepted} ${ledger.delivered} ${ledger.pending} ${dropped}`);
  if (task !== "drain" || ledger.pending > 0) return;
  tell("e");
  void pipeline.stop().then(() => process.exit(0));
}, LOOK_MS);
