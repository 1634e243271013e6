import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { plainLayout } from "../../../src/buffer/testing/readouts.ts";
import { heaps } from "../../../src/lib/heap.ts";
import type { Layout } from "../../../src/model/layout.ts";
import { policySchema } from "../../../src/model/policy.ts";
import type { DataType, Value } from "../../../src/model/value.ts";
import { createLogger } from "../../../src/os/log.ts";
import { Pipeline } from "../../../src/pipeline.ts";

/**
 * What is behind the agent, as the service runs it, with one MQTT sink. Started as a child process with a shape as JSON. To a number it
 * appends so many readouts, and answers once they are stored; to "pending" it answers with what the sink has left.
 */
export interface Shape {
  readonly name: string;
  readonly type: DataType;
  readonly variables: number;
  readonly sources: number;
  readonly value: "bool" | "numbers" | "text";
  readonly port: number;
}

const shape = JSON.parse(process.argv[2] ?? "{}") as Shape;
const dir = mkdtempSync(path.join(os.tmpdir(), "memory-host-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
process.once("disconnect", () => process.exit());
heaps.begin();
const pipeline = new Pipeline({
  run: randomUUID(),
  bufferFile: path.join(dir, "buffer.db"),
  bounds: { maxBytes: 2 ** 30, maxAgeMs: 86_400_000, keepRemovedMs: 86_400_000 },
  log: createLogger({ level: "error", format: "json", stream: process.stderr, journald: false }),
  workerUrl: (name) => new URL(`../../../src/threads/${name}/worker.ts`, import.meta.url),
  policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
  pki: { dir: path.join(dir, "pki"), installation: randomUUID() },
  onAlarm: ({ text }) => process.stderr.write(`${text}\n`),
});
pipeline.setSinks([
  {
    uuid: "sink-1",
    name: "broker",
    type: "mqtt",
    details: { type: "mqtt", host: "127.0.0.1", port: shape.port, topic: "plant/values", publish_interval: 5000 },
    settings: {},
    secrets: {},
    publishIntervalUnit: "milliseconds",
  },
]);

/** Names as long as those of a controller's tags. */
const named = (layout: Layout): Layout => ({
  ...layout,
  variables: layout.variables.map((variable, i) => ({ ...variable, name: `Line_1.Station.${"x".repeat(80)}.${i}` })),
});
const layouts = Array.from({ length: shape.sources }, (_, i) => named(plainLayout(shape.variables, shape.type, `press-${i}`)));
let round = 0;

function sampleOf(place: number): Value {
  const { count = 1 } = shape.type;
  if (shape.value === "bool") return (place + round) % 3 === 0;
  if (shape.value === "text") return `"${round}\n`.repeat(30);
  return Array.from({ length: count }, (_, i) => Math.sqrt(i + place + round));
}

async function append(readouts: number): Promise<void> {
  for (let n = 0; n < readouts; n++) {
    round++;
    const readings = Array.from({ length: shape.variables }, (_, i) => ({ quality: "good" as const, value: sampleOf(i) }));
    for (const layout of layouts)
      while (!pipeline.append(layout, { time: 1_800_000_000_000 + round * 100, spanMs: 1, clockSynced: true, readings })) await delay(20);
    await delay(1);
  }
  while (pipeline.buffer().unanswered_bytes > 0) await delay(20);
}

process.on("message", (message: number | "pending") => {
  if (typeof message === "number") void append(message).then(() => process.send?.("stored"));
  else process.send?.(pipeline.sinks()[0]?.ledger?.pending ?? -1);
});
process.send?.("ready");
