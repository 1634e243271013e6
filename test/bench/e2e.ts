import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import crypto, { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import path from "node:path";
import { startApiServer } from "../../src/api/server/server.ts";
import { silentLog } from "../../src/model/context.ts";
import { apiOf } from "../support/api.ts";
import { startCollector } from "../support/collector-process.ts";
import { figuresOf, type ProcessFigures } from "../support/process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NODE = path.join(ROOT, "bin/collector-node");
/** What a person's own script would run on: the same Node without our flags. */
const PLAIN_NODE = path.join(ROOT, "node_modules/node/bin/node");
const DEVICES = 10;
const REGISTERS = 1000;
const INTERVAL_MS = 100;
/** A twentieth. */
const CHANGING = 50;
const WARM_UP_S = 10;
const MEASURE_S = 30;

interface Measured {
  readonly cpuPercent: number;
  readonly figures: ProcessFigures;
  readonly values: number;
}

/**
 * The bundled collector, with its embedded API off (another collector serves the configuration), beside a bare script of modbus-serial and
 * mqtt without a buffer: the same devices, the same broker, the same content. One after the other, each alone on the machine.
 */
export async function benchE2e(): Promise<void> {
  sameIdentifiers();
  const built = spawnSync(NODE, [path.join(ROOT, "build.ts")], { cwd: ROOT, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`);
  const children: ChildProcess[] = [];
  try {
    const [, ports] = await child<number[]>(children, ["test/bench/devices.ts", String(DEVICES), String(REGISTERS)]);
    const [broker, { port: brokerPort }] = await child<{ port: number }>(children, ["test/bench/broker.ts"]);
    const bare = await measureBare(children, broker, brokerPort, ports);
    const ours = await measureCollector(children, broker, brokerPort, ports);
    const changes = await measureCollector(children, broker, brokerPort, ports, "changes");
    const [, quietPorts] = await child<number[]>(children, ["test/bench/devices.ts", ...[DEVICES, REGISTERS, 0, CHANGING].map(String)]);
    const few = await measureCollector(children, broker, brokerPort, quietPorts, "changes");
    const offered = (DEVICES * REGISTERS * MEASURE_S * 1000) / INTERVAL_MS;
    console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, ${MEASURE_S} s after ${WARM_UP_S} s, offered ${offered} values`);
    print("bare script", bare);
    print("collector", ours);
    print("by exception", changes);
    print("few change", few);
    const ratioOf = ({ cpuPercent }: Measured): string => (cpuPercent / ours.cpuPercent).toFixed(2);
    console.log(
      `report by exception: CPU ${ratioOf(changes)} times with everything changing (goal 1.1), ${ratioOf(few)} with ${CHANGING} of ${REGISTERS} registers changing (goal 0.5)`,
    );
    console.log(
      `CPU ratio ${(ours.cpuPercent / bare.cpuPercent).toFixed(2)} (budget 2), RSS of the collector ${ours.figures.rssMiB.toFixed(0)} MiB (budget 150)`,
    );
  } finally {
    for (const process of children) process.kill("SIGKILL");
  }
}

/**
 * A source's readouts begin at a phase of its interval that its uuid decides, and how many answers come in one turn of the event loop
 * depends on the phases: the same ones in each run.
 */
function sameIdentifiers(): void {
  let last = 0;
  crypto.randomUUID = () => `00000000-0000-4000-8000-${(++last).toString(16).padStart(12, "0")}`;
  syncBuiltinESMExports();
}

const print = (name: string, { cpuPercent, figures, values }: Measured) =>
  console.log(
    `${name.padEnd(12)} CPU ${cpuPercent.toFixed(1).padStart(6)} % of a core   RSS ${figures.rssMiB.toFixed(0).padStart(4)} MiB (peak ${figures.peakRssMiB.toFixed(0)})   ${values} values at the broker`,
  );

async function measureBare(
  children: ChildProcess[],
  broker: ChildProcess,
  brokerPort: number,
  ports: readonly number[],
): Promise<Measured> {
  const [bare] = await child<string>(
    children,
    ["test/bench/bare.ts", ...[brokerPort, REGISTERS, INTERVAL_MS, ...ports].map(String)],
    PLAIN_NODE,
  );
  const measured = await measure(bare.pid ?? 0, broker);
  bare.kill("SIGKILL");
  return measured;
}

async function measureCollector(
  children: ChildProcess[],
  broker: ChildProcess,
  brokerPort: number,
  ports: readonly number[],
  report: "all" | "changes" = "all",
): Promise<Measured> {
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-"));
  const collector = randomUUID();
  const keysDir = path.join(dir, "keys");
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
    mkdirSync(path.join(dir, "variables"));
    const csv = `name;address\n${Array.from({ length: REGISTERS }, (_, i) => `r${i};holding:${i}`).join("\n")}\n`;
    await api.post("/v2/data-sinks", {
      name: "bench",
      collector,
      details: { type: "mqtt", host: "127.0.0.1", port: brokerPort, topic: "bench/{source}" },
    });
    for (const port of ports) {
      const name = `machine-${port}`;
      writeFileSync(path.join(dir, "variables", `${name}.csv`), csv);
      const { uuid } = await api.post("/v2/data-sources", {
        name,
        collector,
        machine: randomUUID(),
        details: { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false },
      });
      await api.patch(`/v2/data-sources/${uuid}`, { readout_interval: INTERVAL_MS });
    }
    const ours = await startCollector({
      dir,
      command: [NODE, path.join(ROOT, "dist/main.js")],
      settings: {
        collector,
        readout_interval_unit: "milliseconds",
        api: { url: site.url, key_file: path.join(keysDir, "collector.key") },
        sources: Object.fromEntries(ports.map((port) => [`machine-${port}`, { report }])),
      },
    });
    children.push(ours.child);
    return await measure(ours.pid, broker, async () => {
      const status = await ours.status();
      const ledger = status.sinks[0]?.ledger;
      const overruns = status.sources.reduce((sum, s) => sum + s.counters.overruns, 0);
      console.log(
        `collector's ledger: accepted ${ledger?.accepted}, delivered ${ledger?.delivered}, pending ${ledger?.pending}, dropped ${JSON.stringify(ledger?.dropped)}; overruns ${overruns}`,
      );
      await ours.stop();
    });
  } finally {
    await site.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measure(pid: number, broker: ChildProcess, atEnd: () => Promise<void> = async () => {}): Promise<Measured> {
  await seconds(WARM_UP_S);
  const [before, valuesBefore] = [figuresOf(pid), await valuesAt(broker)];
  const began = performance.now();
  await seconds(MEASURE_S);
  const [after, valuesAfter] = [figuresOf(pid), await valuesAt(broker)];
  const cpuPercent = ((after.cpuMs - before.cpuMs) / (performance.now() - began)) * 100;
  await atEnd();
  return { cpuPercent, figures: after, values: valuesAfter - valuesBefore };
}

const seconds = (s: number) => new Promise((done) => setTimeout(done, s * 1000));

/** Values that the broker has taken so far; it counts them itself. */
function valuesAt(broker: ChildProcess): Promise<number> {
  return new Promise((done) => {
    broker.stdout?.once("data", (text: Buffer) => done(Number(text.toString())));
    broker.stdin?.write("?");
  });
}

async function child<T>(children: ChildProcess[], args: readonly string[], node = NODE): Promise<[ChildProcess, T]> {
  const process = spawn(node, [...args], { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  children.push(process);
  const line = await new Promise<string>((done, fail) => {
    process.stdout.once("data", (text: Buffer) => done(text.toString()));
    process.once("exit", (code) => fail(new Error(`${args[0]} ended with ${code}`)));
  });
  return [process, line.trim().startsWith("[") || line.trim().startsWith("{") ? (JSON.parse(line) as T) : (line as T)];
}
