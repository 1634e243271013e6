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
const WARM_UP_MS = 20_000;
const VALUES = 10;

/** The product at work, and what goes with it. */
export interface Product {
  readonly collector: CollectorProcess;
  /** Of the bench, removed at its end. */
  readonly dir: string;
  /** Ended with the bench. */
  readonly children: ChildProcess[];
}

/**
 * The bundled collector as it is shipped (its flags, store and delivery workers, a broker; the configuration API is elsewhere): `count`
 * sources of 10 values, read every second. Hands it on when it is warm, and ends all of it afterwards.
 */
export async function withProduct(
  count: number,
  options: (dir: string) => Pick<CollectorOptions, "pagePort" | "env"> | Promise<Pick<CollectorOptions, "pagePort" | "env">>,
  measure: (product: Product) => Promise<void>,
): Promise<void> {
  const built = spawnSync(NODE, [path.join(ROOT, "build.ts")], { cwd: ROOT, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`);
  const children: ChildProcess[] = [];
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-"));
  const uuid = randomUUID();
  const keysDir = path.join(dir, "keys");
  mkdirSync(path.join(dir, "variables"));
  const { said: ports } = await child<number[]>(children, [NODE, "test/bench/devices.ts", String(count), String(VALUES)]);
  const { said: broker } = await child<{ port: number }>(children, [NODE, "test/bench/broker.ts"]);
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
    const api = apiOf(site.url, readFileSync(path.join(keysDir, "admin.key"), "utf8").trim());
    const details = { type: "mqtt", host: "127.0.0.1", port: broker.port, topic: "bench/{source}" };
    await api.post("/v2/data-sinks", { name: "bench", collector: uuid, details });
    const csv = `name;address\n${Array.from({ length: VALUES }, (_, i) => `r${i};holding:${i}`).join("\n")}\n`;
    for (const port of ports) {
      const name = `machine-${port}`;
      writeFileSync(path.join(dir, "variables", `${name}.csv`), csv);
      const details = { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false };
      const source = await api.post("/v2/data-sources", { name, collector: uuid, machine: randomUUID(), details });
      await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: 1000 });
    }
    const settings = {
      collector: uuid,
      readout_interval_unit: "milliseconds",
      api: { url: site.url, key_file: path.join(keysDir, "collector.key") },
    };
    const collector = await startCollector({
      dir,
      command: [NODE, path.join(ROOT, "dist/main.js")],
      settings,
      ...(await options(dir)),
    });
    children.push(collector.child);
    await new Promise((done) => setTimeout(done, WARM_UP_MS));
    await measure({ collector, dir, children });
    await collector.stop();
  } finally {
    for (const process of children) process.kill("SIGKILL");
    await site.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Readouts of all sources that the product has made and skipped so far. Asked directly: a verb of its own would take more CPU than what is measured. */
export async function readoutsOf({ stateDir }: CollectorProcess): Promise<{ readonly made: number; readonly skipped: number }> {
  const { sources } = await new Promise<Pick<ServiceStatusJson, "sources">>((done, failed) => {
    get({ socketPath: localSocketPath(stateDir), path: "/status" }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => done(JSON.parse(Buffer.concat(chunks).toString()) as Pick<ServiceStatusJson, "sources">));
    }).on("error", failed);
  });
  const sum = (of: (counters: ServiceStatusJson["sources"][number]["counters"]) => number) =>
    sources.reduce((total, { counters }) => total + of(counters), 0);
  return { made: sum(({ readouts }) => readouts), skipped: sum(({ overruns }) => overruns) };
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

/** What such a program answers to a line on its standard input. */
export function ask<T>(running: ChildProcess): Promise<T> {
  const line = lineOf<T>(running);
  running.stdin?.write("?\n");
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
