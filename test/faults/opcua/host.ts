import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Layout } from "../../../src/model/layout.ts";
import { policySchema } from "../../../src/model/policy.ts";
import type { DataType, Reading } from "../../../src/model/value.ts";
import type { Warning } from "../../../src/model/warning.ts";
import { createLogger } from "../../../src/os/log.ts";
import { Pipeline } from "../../../src/pipeline.ts";
import { variableOf } from "../../../src/sinks/opcua/testing/rig.ts";
import { reportOf } from "../../bench/opcua-plant.ts";
import { freePort } from "../../support/free-port.ts";
import { childrenOf, figuresOf } from "../../support/process-figures.ts";

/**
 * What is behind the agent, as the service runs it: store, delivery and in a process of its own the hosted server. Started as a child process
 * with the sink's details and secrets as JSON; its log, at level debug, is what it writes. Says where its server and its certificates are;
 * to any message it answers with how it stands.
 */
export interface HostStanding {
  /** Of this process and that of the hosted server. */
  readonly rssBytes: number;
  /** The process of the hosted server; undefined: none runs at this moment. */
  readonly serving: number | undefined;
  readonly states: readonly string[];
  readonly warnings: readonly Warning[];
  /** Readouts of `count` so far; each is its own number. */
  readonly round: number;
  /** Longest time between two rounds since the last question, ms. */
  readonly longestMs: number;
}
export interface HostReady {
  readonly port: number;
  readonly pkiDir: string;
}

/** Elements of each of the variables `wide-0` to `wide-3`: half a MiB as float64. */
export const WIDE = 65_535;
export const EVERY_MS = 200;
const WIDE_EVERY = 20;

const given = JSON.parse(process.argv[2] ?? "{}") as { readonly details: object; readonly secrets: Readonly<Record<string, string>> };
const dir = mkdtempSync(path.join(os.tmpdir(), "opcua-host-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
process.once("SIGTERM", () => process.exit());
process.once("disconnect", () => process.exit());
const port = await freePort();
const pkiDir = path.join(dir, "pki");
const pipeline = new Pipeline({
  run: randomUUID(),
  bufferFile: path.join(dir, "buffer.db"),
  bounds: { maxBytes: 2 ** 30, maxAgeMs: 86_400_000, keepRemovedMs: 86_400_000 },
  log: createLogger({ level: "debug", format: "json", stream: process.stderr, journald: false }),
  workerUrl: (name) => new URL(`../../../src/threads/${name}/worker.ts`, import.meta.url),
  policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
  pki: { dir: pkiDir, installation: randomUUID() },
  onAlarm: ({ text }) => process.stderr.write(`${text}\n`),
});

/** As a driver that checks nothing settles it. */
const WRONG: DataType = { scalar: "int32", count: 6, dimensions: [-2, -3] };
const small: Layout = {
  source: { uuid: "s-small", name: "small" },
  variables: [variableOf("count", { scalar: "uint32" }), variableOf("matrix", WRONG)],
};
const wide: Layout = {
  source: { uuid: "s-wide", name: "wide" },
  variables: Array.from({ length: 4 }, (_, i) => variableOf(`wide-${i}`, { scalar: "float64", count: WIDE })),
};
pipeline.setSinks([
  {
    uuid: "00000000-0000-4000-8000-00000000000a",
    name: "server",
    type: "opcua",
    details: { type: "opcua", port, path: "/", ...given.details },
    settings: { listen: "127.0.0.1" },
    secrets: given.secrets,
    publishIntervalUnit: "milliseconds",
  },
]);
const describe = (): void => pipeline.describe([reportOf(small, EVERY_MS), reportOf(wide, EVERY_MS * WIDE_EVERY)]);
describe();

let round = 0;
let lastMs = performance.now();
let longestMs = 0;
const elements = Array.from({ length: 6 }, (_, i) => i);
setInterval(() => {
  round++;
  const nowMs = performance.now();
  longestMs = Math.max(longestMs, nowMs - lastMs);
  lastMs = nowMs;
  const readings: Reading[] = [
    { quality: "good", value: round },
    { quality: "good", value: elements },
  ];
  void pipeline.append(small, { time: Date.now(), spanMs: 1, clockSynced: true, readings });
  if (round % WIDE_EVERY !== 1) return;
  const values = Array.from({ length: WIDE }, (_, i) => round + i);
  const readout = { time: Date.now(), spanMs: 1, clockSynced: true };
  void pipeline.append(wide, { ...readout, readings: wide.variables.map(() => ({ quality: "good", value: values })) });
}, EVERY_MS);

process.on("message", () => {
  describe();
  const sinks = pipeline.sinks();
  const [serving] = childrenOf(process.pid);
  const standing: HostStanding = {
    rssBytes: process.memoryUsage.rss() + (serving === undefined ? 0 : figuresOf(serving).rssMiB * 2 ** 20),
    serving,
    states: sinks.map(({ state }) => state),
    warnings: sinks.flatMap((sink) => sink.warnings),
    round,
    longestMs,
  };
  longestMs = 0;
  process.send?.(standing);
});
while (!pipeline.sinks().some(({ state }) => state === "OK")) await new Promise((done) => setTimeout(done, 50));
process.send?.({ port, pkiDir } satisfies HostReady);
