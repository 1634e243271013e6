import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { policySchema } from "../../src/model/policy.ts";
import { createLogger } from "../../src/os/log.ts";
import { Pipeline } from "../../src/pipeline.ts";
import { freePort } from "../support/free-port.ts";
import { latenessIn } from "./lateness.ts";
import { layoutsOf, nodeIdsOf, readoutOf, reportOf, sinkSpec } from "./opcua-plant.ts";

/**
 * What is behind the agent, fed with readouts as it does it: store, delivery and in it the hosted server. Arguments: how many
 * variables, each read every so many ms. Started as a child process: says where its server is; told a number of ms, it answers with how late
 * the timers of this thread were in that time.
 */
const [count = 0, everyMs = 0] = process.argv.slice(2).map(Number);

const dir = mkdtempSync(path.join(os.tmpdir(), "bench-opcua-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
process.once("SIGTERM", () => process.exit());
const port = await freePort();
const installation = randomUUID();
const pipeline = new Pipeline({
  run: randomUUID(),
  bufferFile: path.join(dir, "buffer.db"),
  bounds: { maxBytes: 2 ** 30, maxAgeMs: 86_400_000, keepRemovedMs: 0 },
  log: createLogger({ level: "warn", format: "text", stream: process.stderr, journald: false }),
  workerUrl: (name) => new URL(`../../src/threads/${name}/worker.ts`, import.meta.url),
  policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
  pki: { dir: path.join(dir, "pki"), installation },
  onAlarm: ({ text }) => console.error(text),
});
const layouts = layoutsOf(count);
pipeline.setSinks([sinkSpec(port)]);
pipeline.describe(layouts.map((layout) => reportOf(layout, everyMs)));

// Sources are read at moments of their own, as they are by the agent.
layouts.forEach((layout, i) => {
  let round = 0;
  setTimeout(() => setInterval(() => void pipeline.append(layout, readoutOf(layout, ++round)), everyMs), (everyMs * i) / layouts.length);
});

process.on("message", async (ms: number) => {
  process.send?.(await latenessIn(ms));
});
const isServing = () => pipeline.sinks().some(({ state }) => state === "OK");
while (!isServing()) await new Promise((done) => setTimeout(done, 100));
process.send?.({ url: `opc.tcp://127.0.0.1:${port}`, nodeIds: nodeIdsOf(layouts) });
