import { type ChildProcess, fork } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { AttributeIds, MessageSecurityMode, OPCUAClient, resolveNodeId, SecurityPolicy } from "node-opcua-client";
import type { AnyDriver, AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import opcua from "../../drivers/opcua/driver.ts";
import { createAcquisition } from "../../src/acquire/acquisition.ts";
import { remoteDriver } from "../../src/acquire/drivers.ts";
import { silentLog } from "../../src/model/context.ts";
import { policySchema } from "../../src/model/policy.ts";
import { type Lateness, latenessIn, latenessWords } from "./lateness.ts";
import type { LoadCount } from "./opcua-load.ts";
import { benchOpcuaMemory } from "./opcua-memory.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** As bin/collector starts everything. */
const FLAGS = ["--scavenger-max-new-space-capacity-mb=8"];
const NODES = 1000;
const READS = 150;
const PAIRS = 7;
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
    execArgv: FLAGS,
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

interface Device {
  readonly port: number;
  readonly url: string;
  readonly nodeIds: readonly string[];
}

const context: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 10_000 },
};

interface OurReader {
  readonly session: AnySession;
  read(): Promise<number>;
}

async function openOurs(driver: AnyDriver, { port, url, nodeIds }: Device): Promise<OurReader> {
  const settings = driver.settings.parse({});
  const details = driver.details.parse({
    type: "opcua",
    host: "127.0.0.1",
    port,
    endpoint_url: url,
    security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
    user_identity: { type: "Anonymous" },
  });
  const session = await driver.connect({ details, settings, secrets: {} }, context);
  const points = nodeIds.map((text, index): Point => ({ index, ...driver.parseAddress(text, undefined, settings) }));
  const requests: readonly Request[] = driver.plan(points, session.limits);
  return {
    session,
    async read() {
      let good = 0;
      for (const request of requests) for (const { quality } of await session.read(request, context)) if (quality === "good") good++;
      return good;
    },
  };
}

/** What a person would write with node-opcua: the same nodes in one Read, their values taken. */
async function openBare({ url, nodeIds }: Device): Promise<{ read(): Promise<number>; close(): Promise<void> }> {
  const client = OPCUAClient.create({
    endpointMustExist: false,
    securityMode: MessageSecurityMode.None,
    securityPolicy: SecurityPolicy.None,
    connectionStrategy: { maxRetry: 0 },
  });
  await client.connect(url);
  const session = await client.createSession();
  const nodes = nodeIds.map((nodeId) => ({ nodeId: resolveNodeId(nodeId), attributeId: AttributeIds.Value }));
  return {
    async read() {
      let good = 0;
      for (const { statusCode, value } of await session.read(nodes)) if (statusCode.isGood() && typeof value.value === "number") good++;
      return good;
    },
    async close() {
      await session.close();
      await client.disconnect();
    },
  };
}

/** CPU of this process, all its threads, in µs per value; and values per second. */
async function timed(read: () => Promise<number>): Promise<{ readonly cpuUs: number; readonly perSecond: number }> {
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  let values = 0;
  for (let i = 0; i < READS; i++) values += await read();
  const { user, system } = process.cpuUsage(cpu);
  if (values !== READS * NODES) throw new Error(`${values} good values of ${READS * NODES}`);
  return { cpuUs: (user + system) / values, perSecond: (values * 1000) / (performance.now() - began) };
}

async function benchReading(): Promise<void> {
  const device = await start<Device>("opcua-device.ts", NODES);
  const acquisition = createAcquisition({
    entry: new URL("../../src/workers/acquire.ts", import.meta.url),
    workerData: { policy: policySchema.parse({ sources: { networks: ["127.0.0.0/8"] } }) },
    log: silentLog,
  });
  const ours = await openOurs(opcua, device.hello);
  const inWorker = await openOurs(remoteDriver(opcua, acquisition), device.hello);
  const bare = await openBare(device.hello);
  const readers = [ours.read, inWorker.read, bare.read] as const;
  for (const read of readers) await timed(read);
  const turns: (readonly [ours: Timed, inWorker: Timed, bare: Timed])[] = [];
  for (let i = 0; i < PAIRS; i++) turns.push([await timed(readers[0]), await timed(readers[1]), await timed(readers[2])]);
  const cpu = (which: 0 | 1 | 2) => median(turns.map((turn) => turn[which].cpuUs));
  const ratio = (which: 0 | 1) => median(turns.map((turn) => turn[which].cpuUs / turn[2].cpuUs));
  const speed = (which: 0 | 1 | 2) => (median(turns.map((turn) => turn[which].perSecond)) / 1000).toFixed(0);
  console.log(
    `reading ${NODES} nodes a request, CPU per value: driver ${cpu(0).toFixed(2)} µs, bare node-opcua ${cpu(2).toFixed(2)} µs: ` +
      `${ratio(0).toFixed(2)} times (budget 1.3; median of ${PAIRS} in turns)`,
  );
  console.log(`  in the acquisition worker, with the way between the threads ${cpu(1).toFixed(2)} µs: ${ratio(1).toFixed(2)} times`);
  console.log(`  thousand values/s, one request after the other: driver ${speed(0)}, in the worker ${speed(1)}, bare ${speed(2)}`);
  const idle = await start<"started">("opcua-load.ts");
  let reading = true;
  const delays = Promise.all([latenessIn(MEASURE_MS), idle.ask<Lateness>(MEASURE_MS)]).finally(() => {
    reading = false;
  });
  while (reading) await inWorker.read();
  const [here, there] = await delays;
  console.log(`  timers of this thread while the worker reads one request after the other: ${latenessWords(here)}`);
  console.log(`  a process without work, beside it: ${latenessWords(there)}`);
  await idle.end();
  await ours.session.close();
  await inWorker.session.close();
  await bare.close();
  await acquisition.stop(5000);
  await device.end();
}
type Timed = Awaited<ReturnType<typeof timed>>;

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
  console.log(
    `timers of the acquisition thread while ${perSecond.toFixed(0)} changes/s are served: ${latenessWords(busy)} (budget p99 5 ms)`,
  );
  console.log(`  with the same values and no client: ${latenessWords(quiet)}`);
  console.log(`  a process without work, beside it: ${latenessWords(idle)}`);
}

/** The driver and the hosted server beside bare node-opcua, in turns on one machine. */
export async function benchOpcua(): Promise<void> {
  console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, load ${os.loadavg()[0]?.toFixed(1)}`);
  await benchReading();
  await benchServing();
  await benchTimersMeanwhile();
  await benchOpcuaMemory();
}
