import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import os from "node:os";
import path from "node:path";
import { startApiServer } from "../../src/api/server/server.ts";
import { silentLog } from "../../src/model/context.ts";
import { localSocketPath } from "../../src/service/local-socket.ts";
import { apiOf } from "../support/api.ts";
import { type CollectorProcess, type ServiceStatusJson, startCollector } from "../support/collector-process.ts";
import { figuresOf } from "../support/process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NODE = path.join(ROOT, "bin/collector-node");
const WARM_UP_MS = 20_000;
const MEASURE_MS = 15_000;
const VALUES = 10;

/** In each thread of the program: its last collections, once a second to a file. */
const GC_PROBE = `
  import { renameSync, writeFileSync } from "node:fs";
  import { PerformanceObserver } from "node:perf_hooks";
  import { threadId, isMainThread } from "node:worker_threads";
  const folder = process.env.BENCH_GC_FOLDER;
  const found = [];
  new PerformanceObserver((list) => {
    for (const { duration, detail, startTime } of list.getEntries()) found.push([Date.now(), duration, detail.kind]);
    if (found.length > 5000) found.splice(0, 2500);
  }).observe({ entryTypes: ["gc"] });
  const file = folder + "/" + (isMainThread ? "main" : threadId) + ".json";
  const timer = setInterval(() => {
    writeFileSync(file + ".tmp", JSON.stringify({ found }));
    renameSync(file + ".tmp", file);
  }, 1000);
  timer.unref();`;

/** Takes a core, and keeps in a file for how many ms it stood still at most: what this machine takes away from a thread that never waits. */
const NEIGHBOUR = `
  const { writeFileSync } = require("node:fs");
  let last = performance.now(), longest = 0, next = last + 1000;
  for (;;) {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (now < next) continue;
    writeFileSync(process.argv[1], String(longest));
    last = performance.now();
    next = last + 1000;
  }`;

interface Collection {
  readonly atMs: number;
  readonly ms: number;
  /** perf_hooks: 1 young, 4 full, 8 incremental steps, 16 weak callbacks. */
  readonly kind: number;
}

/**
 * The bundled collector as it is shipped (its flags, store and delivery workers, a broker), beside a process that takes a whole core:
 * `count` sources of 10 values, read every second.
 */
export async function benchProductTimers(count: number): Promise<void> {
  const built = spawnSync(NODE, [path.join(ROOT, "build.ts")], { cwd: ROOT, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`);
  const children: ChildProcess[] = [];
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-"));
  const collector = randomUUID();
  const keysDir = path.join(dir, "keys");
  const gcFolder = path.join(dir, "gc");
  for (const folder of [gcFolder, path.join(dir, "variables")]) mkdirSync(folder);
  const ports = await child<number[]>(children, ["test/bench/devices.ts", String(count), String(VALUES)]);
  const { port: brokerPort } = await child<{ port: number }>(children, ["test/bench/broker.ts"]);
  const site = await startApiServer({
    databaseFile: path.join(dir, "api.db"),
    keysDir,
    listen: "127.0.0.1:0",
    collector,
    readoutIntervalUnit: "milliseconds",
    publishIntervalUnit: "seconds",
    version: "bench",
    values: { maxBytes: 2 ** 20, maxAgeMs: 3_600_000 },
    log: silentLog,
  });
  try {
    const api = apiOf(site.url, readFileSync(path.join(keysDir, "admin.key"), "utf8").trim());
    const details = { type: "mqtt", host: "127.0.0.1", port: brokerPort, topic: "bench/{source}" };
    await api.post("/v2/data-sinks", { name: "bench", collector, details });
    const csv = `name;address\n${Array.from({ length: VALUES }, (_, i) => `r${i};holding:${i}`).join("\n")}\n`;
    for (const port of ports) {
      const name = `machine-${port}`;
      writeFileSync(path.join(dir, "variables", `${name}.csv`), csv);
      const details = { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false };
      const { uuid } = await api.post("/v2/data-sources", { name, collector, machine: randomUUID(), details });
      await api.patch(`/v2/data-sources/${uuid}`, { readout_interval: 1000 });
    }
    const product = await startCollector({
      dir,
      command: [NODE, path.join(ROOT, "dist/main.js")],
      settings: { collector, readout_interval_unit: "milliseconds", api: { url: site.url, key_file: path.join(keysDir, "collector.key") } },
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(GC_PROBE)}`, BENCH_GC_FOLDER: gcFolder },
    });
    children.push(product.child);
    await delay(WARM_UP_MS);
    await measure("alone", product, gcFolder);
    const stillFile = path.join(dir, "still");
    children.push(spawn(NODE, ["-e", NEIGHBOUR, stillFile], { stdio: "ignore" }));
    await measure("with a neighbour that takes a core", product, gcFolder);
    console.log(`  the neighbour itself stood still for up to ${Number(readFileSync(stillFile, "utf8")).toFixed(1)} ms`);
    await product.stop();
  } finally {
    for (const process of children) process.kill("SIGKILL");
    await site.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measure(title: string, product: CollectorProcess, gcFolder: string): Promise<void> {
  const skippedOf = async () => (await statusOf(product.stateDir)).sources.reduce((sum, { counters }) => sum + counters.overruns, 0);
  const [skipped, cpu, fromMs] = [await skippedOf(), figuresOf(product.pid).cpuMs, Date.now()];
  await delay(MEASURE_MS);
  const after = figuresOf(product.pid);
  // Of the thread that reads: its last figures are up to a second old.
  const { found } = JSON.parse(readFileSync(path.join(gcFolder, "main.json"), "utf8")) as {
    readonly found: readonly (readonly number[])[];
  };
  const collections = found.map(([atMs = 0, ms = 0, kind = 0]): Collection => ({ atMs, ms, kind })).filter(({ atMs }) => atMs > fromMs);
  const longest = (kinds: readonly number[]) =>
    collections.filter(({ kind }) => kinds.includes(kind)).reduce((most, { ms }) => Math.max(most, ms), 0);
  const elapsedMs = Date.now() - fromMs;
  console.log(
    `  ${title}: ${(await skippedOf()) - skipped} readouts skipped in ${(elapsedMs / 1000).toFixed(0)} s; ` +
      `longest collection of the thread that reads ${longest([1, 4, 8, 16]).toFixed(1)} ms (full ${longest([4]).toFixed(1)} ms, ` +
      `${collections.filter(({ kind }) => kind === 4).length} of them; young ${longest([1]).toFixed(1)} ms); ` +
      `RSS ${after.rssMiB.toFixed(0)} MiB; CPU ${(((after.cpuMs - cpu) / elapsedMs) * 100).toFixed(0)} % of a core`,
  );
}

/** Asked directly: a verb of its own would take more CPU than what is measured. */
function statusOf(stateDir: string): Promise<Pick<ServiceStatusJson, "sources">> {
  return new Promise((done, failed) => {
    get({ socketPath: localSocketPath(stateDir), path: "/status" }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => done(JSON.parse(Buffer.concat(chunks).toString()) as Pick<ServiceStatusJson, "sources">));
    }).on("error", failed);
  });
}

const delay = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function child<T>(children: ChildProcess[], args: readonly string[]): Promise<T> {
  const started = spawn(NODE, [...args], { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  children.push(started);
  const line = await new Promise<string>((done, failed) => {
    let text = "";
    started.stdout.on("data", (data: Buffer) => {
      text += data.toString();
      if (text.includes("\n")) done(text);
    });
    started.once("exit", (code) => failed(new Error(`${args[0]} ended with ${code}`)));
  });
  return JSON.parse(line) as T;
}
