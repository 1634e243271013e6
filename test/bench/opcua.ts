import { type ChildProcess, fork } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { type Lateness, latenessIn, latenessWords } from "./lateness.ts";
import { benchHostedMemory } from "./opcua-hosted-memory.ts";
import type { LoadCount } from "./opcua-load.ts";
import { benchOpcuaMemory } from "./opcua-memory.ts";
import type { BenchMachine, ReaderAnswer } from "./opcua-reader.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** What is ours runs as in the collector once it reads or serves OPC UA (bin/runtime-flags.sh, src/lib/thread/host.ts). */
const FLAGS = ["--scavenger-max-new-space-capacity-mb=8"];
const OURS = ["opcua-hosted.ts", "opcua-pipeline.ts", "driver", "worker"];
const NODES = 1000;
/** Requests of a turn, and before the first one: with 150 both ways take 1.3 to 2 times the CPU, and a collector reads for days. */
const READS = 1000;
const PAIRS = 5;
const ITEMS = 10_000;
const WARM_UP_MS = 4000;
const MEASURE_MS = 10_000;
const SERVED_PAIRS = 3;
/** More than is asked for, so that a server shows what it can. */
const WRITE_EVERY_MS = 60;

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A child that talks over its channel: what it says first, and its answers. */
interface Child<Hello> {
  readonly hello: Hello;
  ask<T>(message: unknown): Promise<T>;
  end(): Promise<void>;
}

async function start<Hello>(file: string, ...args: readonly (string | number)[]): Promise<Child<Hello>> {
  const child: ChildProcess = fork(path.join(ROOT, "test/bench", file), args.map(String), {
    execPath: path.join(ROOT, "node_modules/node/bin/node"),
    // The rest as a person would start it.
    execArgv: OURS.includes(file) || OURS.includes(String(args[0])) ? FLAGS : [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  const next = <T>() =>
    new Promise<T>((done, fail) => {
      child.once("message", (message) => done(message as T));
      void ended.then(() => fail(new Error(`${file} has ended`)));
    });
  return {
    hello: await next<Hello>(),
    ask(message) {
      const answer = next<never>();
      child.send(message as object);
      return answer;
    },
    async end() {
      process.removeListener("exit", kill);
      child.kill("SIGTERM");
      const timer = setTimeout(kill, 5000);
      await ended;
      clearTimeout(timer);
    },
  };
}

const WAYS = ["driver", "worker", "bare"] as const;
type Turn = Readonly<Record<(typeof WAYS)[number], ReaderAnswer>>;

/** The most of bare node-opcua's CPU that the driver takes, by security mode. */
const BUDGETS = { None: 0.45, SignAndEncrypt: 0.55 } as const;

async function benchReading(mode: keyof typeof BUDGETS): Promise<void> {
  const device = await start<BenchMachine>("opcua-device.ts", NODES);
  const readers = await Promise.all(WAYS.map((way) => start<"started">("opcua-reader.ts", way, mode)));
  const [driver, worker, bare] = readers;
  if (!driver || !worker || !bare) return;
  for (const reader of readers) await reader.ask(device.hello);
  const timed = async (reader: Child<"started">): Promise<ReaderAnswer> => {
    const answer = await reader.ask<ReaderAnswer>({ reads: READS });
    if (answer.values !== READS * NODES) throw new Error(`${answer.values} good values of ${READS * NODES}`);
    return answer;
  };
  for (const reader of readers) await timed(reader);
  const turns: Turn[] = [];
  for (let i = 0; i < PAIRS; i++) turns.push({ driver: await timed(driver), worker: await timed(worker), bare: await timed(bare) });
  const cpu = (way: keyof Turn) => median(turns.map((turn) => turn[way].cpuUs / turn[way].values)).toFixed(2);
  const ratio = (way: keyof Turn) => median(turns.map((turn) => turn[way].cpuUs / turn.bare.cpuUs)).toFixed(2);
  const speed = (way: keyof Turn) => median(turns.map((turn) => turn[way].values / turn[way].ms)).toFixed(0);
  console.log(
    `reading ${NODES} nodes a request, ${mode}, CPU per value: driver ${cpu("driver")} µs, bare node-opcua ${cpu("bare")} µs: ` +
      `${ratio("driver")} times (budget ${BUDGETS[mode]}; median of ${PAIRS} in turns)`,
  );
  console.log(`  in the session worker, with the way between the threads ${cpu("worker")} µs: ${ratio("worker")} times`);
  console.log(
    `  thousand values/s, one request after the other: driver ${speed("driver")}, in the worker ${speed("worker")}, bare ${speed("bare")}`,
  );
  // What the machine itself makes timers late by: this process has nothing else to do.
  const [busy, idle] = await Promise.all([worker.ask<Lateness>({ latenessMs: MEASURE_MS }), latenessIn(MEASURE_MS)]);
  console.log(`  timers of the main thread while the worker reads one request after the other: ${latenessWords(busy)}`);
  console.log(`  a process without work, at the same time: ${latenessWords(idle)}`);
  for (const reader of readers) await reader.end();
  await device.end();
}

interface Server {
  readonly url: string;
  readonly nodeIds: readonly string[];
}
interface Served {
  readonly changesPerSecond: number;
  readonly cpuUs: number;
}

/** A server under load by a client in another process. */
async function serve(file: string): Promise<Served> {
  const server = await start<Server>(file, ITEMS, WRITE_EVERY_MS);
  const load = await start<"started">("opcua-load.ts");
  await load.ask({ url: server.hello.url, nodeIds: server.hello.nodeIds });
  await pause(WARM_UP_MS);
  const look = async () => ({
    at: performance.now(),
    load: await load.ask<LoadCount>("count"),
    server: await server.ask<{ cpuUs: number }>("cpu"),
  });
  const before = await look();
  await pause(MEASURE_MS);
  const after = await look();
  await load.end();
  await server.end();
  const changes = after.load.changes - before.load.changes;
  return {
    changesPerSecond: (changes * 1000) / (after.at - before.at),
    cpuUs: (after.server.cpuUs - before.server.cpuUs) / changes,
  };
}

async function benchServing(): Promise<void> {
  const pairs: (readonly [ours: Served, bare: Served])[] = [];
  for (let i = 0; i < SERVED_PAIRS; i++) pairs.push([await serve("opcua-hosted.ts"), await serve("opcua-bare-server.ts")]);
  const of = (which: 0 | 1, what: keyof Served) => median(pairs.map((pair) => pair[which][what]));
  const ratio = median(pairs.map(([ours, bare]) => ours.changesPerSecond / bare.changesPerSecond));
  console.log(
    `serving ${ITEMS} monitored items, all of them changed every ${WRITE_EVERY_MS} ms: hosted server ${of(0, "changesPerSecond").toFixed(0)} changes/s ` +
      `(budget 50000), bare node-opcua ${of(1, "changesPerSecond").toFixed(0)}: ${ratio.toFixed(2)} times (budget 0.8; median of ${SERVED_PAIRS} pairs)`,
  );
  console.log(`  CPU per change: hosted server ${of(0, "cpuUs").toFixed(2)} µs, bare node-opcua ${of(1, "cpuUs").toFixed(2)} µs`);
}

/** The real way of the values, with store and delivery in their threads, while a client monitors them: how late timers of the acquisition are. */
async function benchTimersMeanwhile(): Promise<void> {
  const collector = await start<Server>("opcua-pipeline.ts", ITEMS, 200);
  const load = await start<"started">("opcua-load.ts");
  const quiet = await collector.ask<Lateness>(MEASURE_MS);
  await load.ask({ url: collector.hello.url, nodeIds: collector.hello.nodeIds });
  await pause(WARM_UP_MS);
  const before = await load.ask<LoadCount>("count");
  // What the machine itself makes timers late by: this process has nothing else to do.
  const [busy, idle] = await Promise.all([collector.ask<Lateness>(MEASURE_MS), latenessIn(MEASURE_MS)]);
  const after = await load.ask<LoadCount>("count");
  await load.end();
  await collector.end();
  const perSecond = ((after.changes - before.changes) * 1000) / MEASURE_MS;
  console.log(`timers of the agent thread while ${perSecond.toFixed(0)} changes/s are served: ${latenessWords(busy)} (budget p99 5 ms)`);
  console.log(`  with the same values and no client: ${latenessWords(quiet)}`);
  console.log(`  a process without work, at the same time: ${latenessWords(idle)}`);
}

/** The driver and the hosted server beside bare node-opcua, in turns on one machine. */
export async function benchOpcua(): Promise<void> {
  console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, load ${os.loadavg()[0]?.toFixed(1)}`);
  await benchReading("None");
  await benchReading("SignAndEncrypt");
  await benchServing();
  await benchTimersMeanwhile();
  await benchOpcuaMemory();
  await benchHostedMemory();
}
