import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import type { AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { Ring, ringMemory } from "../../src/lib/capture/ring.ts";
import { silentLog } from "../../src/model/context.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NODE = path.join(ROOT, "node_modules/.bin/node");
const REGISTERS = 125;
const READS = 4000;
const PAIRS = 7;
const DELAYED_READS = 400;
const DELAY_MS = 5;

const ModbusRTU = (createRequire(import.meta.url)("modbus-serial") as { default: new () => import("modbus-serial").default }).default;

interface Measured {
  readonly cpuUs: number;
  readonly perSecond: number;
}

/** CPU of this process and reads per second. */
async function timed(reads: number, work: () => Promise<void>): Promise<Measured> {
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { cpuUs: (user + system) / reads, perSecond: (reads * 1000) / (performance.now() - began) };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function device(delayMs: number): Promise<readonly [ChildProcess, number]> {
  const child = spawn(NODE, [path.join(import.meta.dirname, "devices.ts"), "1", String(REGISTERS * 4), String(delayMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await new Promise<Buffer>((ready) => child.stdout.once("data", ready));
  return [child, (JSON.parse(line.toString()) as number[])[0] ?? 0] as const;
}

async function open(
  port: number,
  settings: object,
  more: Partial<DriverContext> = {},
): Promise<{ readonly session: AnySession; readonly requests: readonly Request[]; readonly ctx: DriverContext }> {
  const ctx: DriverContext = {
    signal: new AbortController().signal,
    log: silentLog,
    timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 3000 },
    ...more,
  };
  const parsed = modbus.settings.parse(settings);
  const session = await modbus.connect(
    { details: modbus.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port }), settings: parsed, secrets: {} },
    ctx,
  );
  const points = Array.from(
    { length: REGISTERS * 4 },
    (_, index): Point => ({ index, ...modbus.parseAddress(`holding:${index}`, undefined, parsed) }),
  );
  return { session, requests: modbus.plan(points, session.limits), ctx };
}

async function readOurs({ session, requests, ctx }: Awaited<ReturnType<typeof open>>, reads: number, window: number): Promise<void> {
  let left = reads;
  const lane = async () => {
    while (left > 0) {
      const request = requests[left-- % requests.length];
      if (request) await session.read(request, ctx);
    }
  };
  await Promise.all(Array.from({ length: window }, lane));
}

/** What it costs to keep the frames of a connection for a capture, in turns on one device. */
async function benchFrames(port: number): Promise<void> {
  const [without, kept] = [await open(port, {}), await open(port, {}, { wire: new Ring(ringMemory(64 * 1024)) })];
  for (const one of [without, kept]) await readOurs(one, READS, 1);
  const pairs: (readonly [Measured, Measured])[] = [];
  for (let i = 0; i < PAIRS; i++)
    pairs.push([await timed(READS, () => readOurs(kept, READS, 1)), await timed(READS, () => readOurs(without, READS, 1))]);
  const [cpuKept, cpuWithout] = [median(pairs.map(([a]) => a.cpuUs)), median(pairs.map(([, b]) => b.cpuUs))];
  console.log(
    `modbus: CPU per read with its frames kept: ${cpuKept.toFixed(1)} µs, without: ${cpuWithout.toFixed(1)} µs: ${median(pairs.map(([a, b]) => a.cpuUs / b.cpuUs)).toFixed(3)} times (median of ${PAIRS} pairs in turns)`,
  );
  for (const { session } of [without, kept]) await session.close();
}

/** libmodbus in C, where its header and a compiler are: the same reads, one after the other. */
function libmodbus(port: number, reads: number): Measured | undefined {
  const dir = mkdtempSync(path.join(os.tmpdir(), "libmodbus-"));
  try {
    execFileSync("cc", ["-O2", "-o", path.join(dir, "bench"), path.join(import.meta.dirname, "libmodbus.c"), "-lmodbus"], {
      stdio: "ignore",
    });
    return JSON.parse(execFileSync(path.join(dir, "bench"), [String(port), String(reads), String(REGISTERS)]).toString()) as Measured;
  } catch {
    return undefined;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The driver beside bare modbus-serial, in turns on one device, and with a window beside without. */
export async function benchModbus(): Promise<void> {
  const [child, port] = await device(0);
  const ours = await open(port, {});
  const bare = new ModbusRTU();
  await bare.connectTCP("127.0.0.1", { port });
  bare.setID(1);
  // As a person would set it, and as ours has: a deadline for each answer.
  bare.setTimeout(3000);
  const readBare = async (reads: number) => {
    for (let i = 0; i < reads; i++) await bare.readHoldingRegisters((i % 4) * REGISTERS, REGISTERS);
  };
  await readOurs(ours, READS, 1);
  await readBare(READS);
  const pairs: (readonly [Measured, Measured])[] = [];
  for (let i = 0; i < PAIRS; i++)
    pairs.push([await timed(READS, () => readOurs(ours, READS, 1)), await timed(READS, () => readBare(READS))]);
  const ratio = median(pairs.map(([a, b]) => a.cpuUs / b.cpuUs));
  await benchFrames(port);
  const [cpuOurs, cpuBare] = [median(pairs.map(([a]) => a.cpuUs)), median(pairs.map(([, b]) => b.cpuUs))];
  console.log(
    `modbus: CPU per read of ${REGISTERS} registers, decoded: ${cpuOurs.toFixed(0)} µs, bare modbus-serial ${cpuBare.toFixed(0)} µs: ${ratio.toFixed(2)} times (median of ${PAIRS} pairs in turns)`,
  );
  const c = libmodbus(port, READS);
  console.log(
    c
      ? `  libmodbus in C: ${c.cpuUs.toFixed(0)} µs, ${c.perSecond.toFixed(0)} reads/s; ours ${median(pairs.map(([a]) => a.perSecond)).toFixed(0)} reads/s`
      : "  libmodbus in C: not here (Debian: libmodbus-dev, gcc)",
  );
  await ours.session.close();
  await new Promise<void>((done) => bare.close(() => done()));
  child.kill();

  const [slow, slowPort] = await device(DELAY_MS);
  const one = await open(slowPort, {});
  const four = await open(slowPort, { in_flight: 4 });
  const sequential = await timed(DELAYED_READS, () => readOurs(one, DELAYED_READS, 1));
  const windowed = await timed(DELAYED_READS, () => readOurs(four, DELAYED_READS, 4));
  console.log(
    `  answers after ${DELAY_MS} ms: ${sequential.perSecond.toFixed(0)} reads/s one by one, ${windowed.perSecond.toFixed(0)} with a window of 4: ${(windowed.perSecond / sequential.perSecond).toFixed(2)} times`,
  );
  await Promise.all([one.session.close(), four.session.close()]);
  slow.kill();
}
