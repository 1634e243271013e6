import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { apiOf } from "../support/api.ts";
import { type CollectorProcess, startCollector } from "../support/collector-process.ts";
import { figuresOf } from "../support/process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NODE = path.join(ROOT, "bin/collector-node");
const DEVICES = 10;
const REGISTERS = 1000;
/** While the backlog grows, and while it drains. */
const FAST_MS = 100;
const SLOW_MS = 1000;
const WARM_UP_S = 30;
/** Until a new interval is at work. */
const SETTLE_S = 5;
/** The median of so many seconds is a figure: a garbage collection more or less does not count. */
const WINDOW_S = 15;
const BACKLOG = 10_000_000;
const BUDGET_MIB = 20;
const OVERDUE_S = 600;
/** From the moment the broker is back: the backlog, and live values behind it. */
const CPU_S = 60;
const perSecond = (intervalMs: number): number => (DEVICES * REGISTERS * 1000) / intervalMs;

/**
 * The memory of the bundled collector without and with a backlog, at the same load: all that differs is what waits in the file. Then how
 * the backlog drains beside live values that come at a tenth of that load, and what CPU a value takes meanwhile.
 */
export async function benchDelivery(): Promise<void> {
  const built = spawnSync(NODE, [path.join(ROOT, "build.ts")], { cwd: ROOT, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`);
  const children: ChildProcess[] = [];
  const dir = mkdtempSync(path.join(process.env["COLLECTOR_BENCH_DIR"] ?? os.tmpdir(), "collector-bench-"));
  try {
    const [, ports] = await child<number[]>(children, ["test/bench/devices.ts", String(DEVICES), String(REGISTERS)]);
    const [first, { port }] = await child<{ port: number }>(children, ["test/bench/broker.ts"]);
    const collector = await startCollector({
      dir,
      command: [NODE, path.join(ROOT, "dist/main.js")],
      settings: { readout_interval_unit: "milliseconds" },
    });
    children.push(collector.child);
    const readEvery = await configure(collector, dir, ports, port);
    console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, ${perSecond(FAST_MS).toLocaleString("en")} values/s`);

    await delay(WARM_UP_S * 1000);
    const connected = await rss(collector, "connected, nothing waits");
    first.kill("SIGKILL");
    await once(first, "exit");
    await pendingAbove(collector, BACKLOG / 10);
    const small = await rss(collector, "the broker is away, a tenth of the backlog");
    await pendingAbove(collector, BACKLOG);
    const large = await rss(collector, "the broker is away, all of the backlog");

    await readEvery(SLOW_MS);
    await delay(SETTLE_S * 1000);
    const livePerS = perSecond(SLOW_MS);
    const backlog = (await ledgerOf(collector)).pending;
    const [broker] = await child<{ port: number }>(children, ["test/bench/broker.ts", String(port)]);
    const began = performance.now();
    const before = await ask(broker, "?");
    const { cpuMs } = figuresOf(collector.pid);
    const { delivered: earlier } = await ledgerOf(collector);
    await ask(broker, "l");
    const peaks: number[] = [];
    while ((await ledgerOf(collector)).pending > 3 * livePerS) {
      peaks.push(figuresOf(collector.pid).rssMiB);
      if (performance.now() - began > OVERDUE_S * 1000) throw new Error(`the backlog is not drained after ${OVERDUE_S} s`);
      await delay(1000);
    }
    const seconds = (performance.now() - began) / 1000;
    const older = (await ask(broker, "?")) - before - livePerS * seconds;
    console.log(
      `drained ${backlog.toLocaleString("en")} values in ${seconds.toFixed(0)} s next to ${livePerS.toLocaleString("en")} live ones a second (${(older / seconds / livePerS).toFixed(1)} times their rate); live at most ${await ask(broker, "l")} ms old at the broker, with a publish_interval of 1000 ms; RSS meanwhile median ${median(peaks).toFixed(0)} MiB, at most ${Math.max(...peaks).toFixed(0)}`,
    );
    await delay(CPU_S * 1000 - (performance.now() - began));
    const values = (await ledgerOf(collector)).delivered - earlier;
    const microseconds = ((figuresOf(collector.pid).cpuMs - cpuMs) * 1000) / values;
    console.log(`CPU ${microseconds.toFixed(3)} µs for each of ${values.toLocaleString("en")} values delivered in the first ${CPU_S} s`);
    const after = await rss(collector, "drained");
    const { accepted, delivered, unconfirmed, pending, dropped } = await ledgerOf(collector);
    console.log(
      `ledger: accepted ${accepted} = delivered ${delivered} + unconfirmed ${unconfirmed} + pending ${pending} + dropped ${JSON.stringify(dropped)}`,
    );
    console.log(
      `RSS with a backlog of ${BACKLOG.toLocaleString("en")} values: ${signed(large - connected)} MiB more than without one, ${signed(large - small)} more than with a tenth of it, ${signed(after - connected)} once it is drained (budget ${BUDGET_MIB})`,
    );
    await collector.stop();
  } finally {
    for (const process of children) process.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

const signed = (mib: number): string => `${mib < 0 ? "−" : "+"}${Math.abs(mib).toFixed(1)}`;
const median = (figures: readonly number[]): number => [...figures].sort((a, b) => a - b)[figures.length >> 1] ?? Number.NaN;

/** Returns what changes the interval of all sources. */
async function configure(
  collector: CollectorProcess,
  dir: string,
  ports: readonly number[],
  brokerPort: number,
): Promise<(intervalMs: number) => Promise<void>> {
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const { collector: uuid } = await collector.status();
  mkdirSync(path.join(dir, "variables"));
  const csv = `name;address\n${Array.from({ length: REGISTERS }, (_, i) => `r${i};holding:${i}`).join("\n")}\n`;
  await api.post("/v2/data-sinks", {
    name: "bench",
    collector: uuid,
    details: { type: "mqtt", host: "127.0.0.1", port: brokerPort, topic: "bench/{source}" },
  });
  const sources: string[] = [];
  const readEvery = async (intervalMs: number): Promise<void> => {
    for (const source of sources) await api.patch(`/v2/data-sources/${source}`, { readout_interval: intervalMs });
  };
  for (const port of ports) {
    const name = `machine-${port}`;
    writeFileSync(path.join(dir, "variables", `${name}.csv`), csv);
    const { uuid: source } = await api.post("/v2/data-sources", {
      name,
      collector: uuid,
      machine: randomUUID(),
      details: { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false },
    });
    sources.push(source);
  }
  await readEvery(FAST_MS);
  return readEvery;
}

/** Median of WINDOW_S seconds, in MiB. */
async function rss(collector: CollectorProcess, what: string): Promise<number> {
  const figures: number[] = [];
  for (let i = 0; i < WINDOW_S * 4; i++) {
    figures.push(figuresOf(collector.pid).rssMiB);
    await delay(250);
  }
  const { pending } = await ledgerOf(collector);
  console.log(
    `${what.padEnd(44)} RSS ${median(figures).toFixed(1).padStart(6)} MiB (${Math.min(...figures).toFixed(0)} to ${Math.max(...figures).toFixed(0)}), pending ${pending.toLocaleString("en")}`,
  );
  return median(figures);
}

async function pendingAbove(collector: CollectorProcess, values: number): Promise<void> {
  const began = performance.now();
  while ((await ledgerOf(collector)).pending < values) {
    if (performance.now() - began > OVERDUE_S * 1000) throw new Error(`no backlog of ${values} values after ${OVERDUE_S} s`);
    await delay(2000);
  }
}

async function ledgerOf(collector: CollectorProcess) {
  for (;;) {
    const ledger = (await collector.status()).sinks[0]?.ledger;
    if (ledger) return ledger;
    await delay(500);
  }
}

async function ask(broker: ChildProcess, what: "?" | "l"): Promise<number> {
  const answer = new Promise<number>((done) => broker.stdout?.once("data", (text: Buffer) => done(Number(text.toString()))));
  broker.stdin?.write(what);
  return await answer;
}

async function child<T>(children: ChildProcess[], args: readonly string[]): Promise<[ChildProcess, T]> {
  const process = spawn(NODE, [...args], { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  children.push(process);
  const line = await new Promise<string>((done, fail) => {
    process.stdout.once("data", (text: Buffer) => done(text.toString()));
    process.once("exit", (code) => fail(new Error(`${args[0]} ended with ${code}`)));
  });
  return [process, JSON.parse(line) as T];
}
