import { randomUUID } from "node:crypto";
import path from "node:path";
import { policySchema } from "../../src/model/policy.ts";
import { createLogger } from "../../src/os/log.ts";
import { Pipeline } from "../../src/pipeline.ts";

/** What is behind the agent, as the service runs it, with one MQTT sink. Arguments: the buffer's file, the sink, the broker's port. It sends alarms and ledgers. */
const [bufferFile = "", sink = "", port = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit());
const pipeline = new Pipeline({
  run: randomUUID(),
  bufferFile,
  bounds: { maxBytes: 2 ** 30, maxAgeMs: 86_400_000, keepRemovedMs: 86_400_000 },
  log: createLogger({ level: "error", format: "json", stream: process.stderr, journald: false }),
  workerUrl: (name) => new URL(`../../src/threads/${name}/worker.ts`, import.meta.url),
  policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
  pki: { dir: path.join(path.dirname(bufferFile), "pki"), installation: randomUUID() },
  onAlarm: ({ text }) => process.send?.({ alarm: text }),
});
pipeline.setSinks([
  {
    uuid: sink,
    name: "broker",
    type: "mqtt",
    details: { type: "mqtt", host: "127.0.0.1", port: Number(port), topic: "plant/values", publish_interval: 5000 },
    settings: {},
    secrets: {},
    publishIntervalUnit: "milliseconds",
  },
]);
setInterval(() => process.send?.({ ledger: pipeline.sinks()[0]?.ledger }), 100);
