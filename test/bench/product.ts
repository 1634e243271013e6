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
import { type CollectorOptions, type CollectorProcess, type ServiceStatusJson, startCollector } from "../support/collector-process.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
export const NODE = path.join(ROOT, "bin/collector-node");
/** The program of the package, started with the package's flags (bin/runtime-flags.sh). */
export const BUNDLE = [NODE, path.join(ROOT, "dist/main.js")] as const;

/** The product at work, and what goes with it. */
export interface Product {
  readonly collector: CollectorProcess;
  /** Folder of the bench, removed at its end. */
  readonly dir: string;
  /** Ended with the bench. */
  readonly children: ChildProcess[];
  readonly devices: ChildProcess;
  readonly broker: ChildProcess;
  /** Stops the collector, does the work, and starts it again with what it has kept; ms since 1970 when that began. */
  again(between: () => Promise<unknown>): Promise<{ readonly collector: CollectorProcess; readonly startedAt: number }>;
}

/** Sources that the product reads. */
export interface ProductPlan {
  readonly sources: number;
  /** Variables of each source; absent: 10. */
  readonly values?: number;
  /** Absent: 1,000. */
  readonly intervalMs?: number;
  /** Absent: 20,000. */
  readonly warmUpMs?: number;
  /** True: the variables come from the configuration API; absent: from a file for each source, which the start waits for where it is new. */
  readonly isFromApi?: boolean;
  /** Settings of each source in collector.yaml. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Devices and broker of the bench, which leaves them running; absent: of this product. */
  readonly plant?: Plant;
}

export interface Plant {
  readonly devices: ChildProcess;
  readonly ports: readonly number[];
  readonly broker: ChildProcess;
  readonly brokerPort: number;
}

/** Bundles the product. Throws Error with the build's words. */
export function build(): void {
  const built = spawnSync(NODE, [path.join(ROOT, "build.ts")], { cwd: ROOT, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`);
}

/** Devices and a broker, each in a process of its own. */
export async function startPlant(children: ChildProcess[], devices: readonly number[]): Promise<Plant> {
  const [read, broker] = [
    await child<number[]>(children, [NODE, "test/bench/devices.ts", ...devices.map(String)]),
    await child<{ port: number }>(children, [NODE, "test/bench/broker.ts"]),
  ];
  return { devices: read.process, ports: read.said, broker: broker.process, brokerPort: broker.said.port };
}

/**
 * The bundled collector as it is shipped (its flags, store and delivery workers, a broker; the configuration API is in the bench's process).
 * Hands it on when it is warm, and ends all of it afterwards.
 */
export async function withProduct(
  { sources, values = 10, intervalMs = 1000, warmUpMs = 20_000, isFromApi, settings: sourceSettings, plant: given }: ProductPlan,
  options: (dir: string) => Pick<CollectorOptions, "pagePort" | "env"> | Promise<Pick<CollectorOptions, "pagePort" | "env">>,
  measure: (product: Product) => Promise<void>,
): Promise<void> {
  const children: ChildProcess[] = [];
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-"));
  const uuid = randomUUID();
  const keysDir = path.join(dir, "keys");
  mkdirSync(path.join(dir, "variables"));
  const site = await startApiServer({
    databaseFile: path.join(dir, "api.db"),
    keysDir,
    listen: "127.0.0.1:0",
    collector: uuid,
    readoutIntervalUnit: "milliseconds",
    publishIntervalUnit: "seconds",
    version: "bench",
    values: { maxBytes: 2 ** 20, maxAgeMs: 3_600_000 },
    log: silentLog,
  });
  try {
    const plant = given ?? (await startPlant(children, [sources, values]));
    const api = apiOf(site.url, readFileSync(path.join(keysDir, "admin.key"), "utf8").trim());
    const details = { type: "mqtt", host: "127.0.0.1", port: plant.brokerPort, topic: "bench/{source}" };
    await api.post("/v2/data-sinks", { name: "bench", collector: uuid, details });
    const variables = Array.from({ length: values }, (_, i) => ({ name: `r${i}`, address: `holding:${i}` }));
    const csv = ["name;address", ...variables.map(({ name, address }) => `${name};${address}`), ""].join("\n");
    const names = plant.ports.map((port) => `machine-${port}`);
    for (const [at, port] of plant.ports.entries()) {
      const name = names[at] ?? "";
      if (!isFromApi) writeFileSync(path.join(dir, "variables", `${name}.csv`), csv);
      const details = { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false };
      const source = await api.post("/v2/data-sources", { name, collector: uuid, machine: randomUUID(), details });
      await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: intervalMs });
      if (isFromApi) for (const variable of variables) await api.post("/ext/v1/variables", { data_source: source.uuid, ...variable });
    }
    const settings = {
      collector: uuid,
      readout_interval_unit: "milliseconds",
      api: { url: site.url, key_file: path.join(keysDir, "collector.key") },
      ...(sourceSettings && { sources: Object.fromEntries(names.map((name) => [name, sourceSettings])) }),
    };
    const more = await options(dir);
    const start = async () => {
      const started = await startCollector({ dir, command: BUNDLE, settings, ...more });
      children.push(started.child);
      return started;
    };
    let collector = await start();
    const again = async (between: () => Promise<unknown>) => {
      await collector.stop();
      await between();
      const startedAt = Date.now();
      collector = await start();
      return { collector, startedAt };
    };
    await new Promise((done) => setTimeout(done, warmUpMs));
    await measure({ collector, dir, children, devices: plant.devices, broker: plant.broker, again });
    await collector.stop();
  } finally {
    for (const process of children) process.kill("SIGKILL");
    await site.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

export interface Readouts {
  readonly made: number;
  readonly skipped: number;
  readonly dropped: number;
}

/** Readouts of all sources that the product has made and skipped so far, and values that it has dropped. Asked directly: a verb of its own would take more CPU than what is measured. */
export async function readoutsOf({ stateDir }: CollectorProcess): Promise<Readouts> {
  const { sources, sinks } = await new Promise<Pick<ServiceStatusJson, "sources" | "sinks">>((done, failed) => {
    get({ socketPath: localSocketPath(stateDir), path: "/status" }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => done(JSON.parse(Buffer.concat(chunks).toString()) as ServiceStatusJson));
    }).on("error", failed);
  });
  const sum = (of: (counters: ServiceStatusJson["sources"][number]["counters"]) => number) =>
    sources.reduce((total, { counters }) => total + of(counters), 0);
  const dropped = sinks.flatMap(({ ledger }) => Object.values(ledger?.dropped ?? {})).reduce((total, count) => total + count, 0);
  return { made: sum(({ readouts }) => readouts), skipped: sum(({ overruns }) => overruns), dropped };
}

/** Starts a program of the bench that prints one line of JSON when it is ready. */
export async function child<T>(
  children: ChildProcess[],
  [program = "", ...args]: readonly string[],
): Promise<{ readonly process: ChildProcess; readonly said: T }> {
  const started = spawn(program, args, { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  children.push(started);
  return { process: started, said: await lineOf<T>(started) };
}

/** Answer of such a program to a line on its standard input. */
export function ask<T>(running: ChildProcess, question = "?\n"): Promise<T> {
  const line = lineOf<T>(running);
  running.stdin?.write(question);
  return line;
}

function lineOf<T>(running: ChildProcess): Promise<T> {
  return new Promise((done, failed) => {
    let text = "";
    const ended = (code: number | null) => failed(new Error(`${running.spawnargs.join(" ")} ended with ${code}`));
    const hear = (data: Buffer) => {
      text += data.toString();
      if (!text.includes("\n")) return;
      running.stdout?.removeListener("data", hear);
      running.removeListener("exit", ended);
      done(JSON.parse(text) as T);
    };
    running.stdout?.on("data", hear);
    running.once("exit", ended);
  });
}
