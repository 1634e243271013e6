import type { ChildProcess } from "node:child_process";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { type BenchOptions, median, type Stretch, spread, stretchOf } from "./pairs.ts";
import { type Peer, peersOf } from "./peers.ts";
import { ask, build, type Plant, type ProductPlan, readoutsOf, startPlant, withProduct } from "./product.ts";

const DEVICES = 10;
const REGISTERS = 1000;
const INTERVAL_MS = 100;
/** A twentieth. */
const CHANGING = 50;
/** Until V8 has compiled what is hot and the collector's heap has its size: it runs for months. */
const WARM_UP_MS = 30_000;
const MEASURE_S = 20;
const ROUNDS = 3;
/** Requests in flight of both sides where they are given. */
const WINDOW = 4;

interface Measured extends Stretch {
  readonly values: number;
  readonly note: string;
}

interface Side {
  readonly name: string;
  measure(): Promise<Measured>;
}

/**
 * The bundled collector with the flags it is installed with (another collector's API serves the configuration) beside what a person would
 * use in its place: same devices, same broker, same content. Each runs without the others, in rounds whose order turns round. Ratios are of
 * CPU per value at the broker, within a round, so that a side which loses values gains nothing.
 */
export async function benchE2e({ isMeant, rounds = ROUNDS, seconds = MEASURE_S, perf }: BenchOptions): Promise<void> {
  sameIdentifiers();
  build();
  const children: ChildProcess[] = [];
  try {
    const plant = await startPlant(children, [DEVICES, REGISTERS]);
    const quiet = await startPlant(children, [DEVICES, REGISTERS, 0, CHANGING]);
    const ours = (name: string, settings?: ProductPlan["settings"], read = plant): Side => ({
      name,
      measure: () => measureProduct(read, settings, seconds, perf),
    });
    const peers = peersOf({
      brokerPort: plant.brokerPort,
      ports: plant.ports,
      registers: REGISTERS,
      intervalMs: INTERVAL_MS,
      window: WINDOW,
    });
    const sides: readonly Side[] = [
      ours("collector"),
      ours("collector, 1 in flight", { in_flight: 1 }),
      ours(`collector, ${WINDOW} in flight`, { in_flight: WINDOW }),
      ...peers.map((peer): Side => ({ name: peer.name, measure: () => measurePeer(peer, plant.broker, seconds, perf) })),
      ours("collector, report changes", { report: "changes" }),
      ours("collector, report changes, few change", { report: "changes" }, quiet),
    ].filter(({ name }) => isMeant(name));
    const offered = (DEVICES * REGISTERS * seconds * 1000) / INTERVAL_MS;
    console.log(
      `${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, ${rounds} rounds, ${seconds} s after ${WARM_UP_MS / 1000} s, offered ${offered} values`,
    );
    const found = await inTurns(sides, rounds);
    for (const [name, measured] of found) print(name, measured, offered);
    printRatios(found);
  } finally {
    for (const process of children) process.kill("SIGKILL");
  }
}

/** Figures of each side by round. A side that cannot be measured here is named and left out of all rounds. */
async function inTurns(sides: readonly Side[], rounds: number): Promise<ReadonlyMap<string, readonly Measured[]>> {
  const found = new Map<string, Measured[]>(sides.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, measure } of round % 2 === 0 ? sides : [...sides].reverse()) {
      const measured = found.get(name);
      if (!measured) continue;
      try {
        measured.push(await measure());
      } catch (error) {
        console.log(`  ${name} is left out (${error instanceof Error ? error.message : String(error)})`);
        found.delete(name);
      }
    }
  }
  return found;
}

const perValueNs = ({ cpuMs, values }: Measured): number => (cpuMs * 1e6) / values;

function print(name: string, measured: readonly Measured[], offered: number): void {
  const of = (pick: (one: Measured) => number, digits: number) => spread(measured.map(pick), digits);
  console.log(
    `${name}: CPU ${of(({ cpuMs, elapsedMs }) => (cpuMs / elapsedMs) * 100, 1)} % of a core, ${of(perValueNs, 0)} ns a value, ` +
      `RSS ${of(({ figures }) => figures.rssMiB, 0)} MiB, PSS ${of(({ pssMiB }) => pssMiB, 0)} MiB, ` +
      `${of(({ values }) => (values / offered) * 100, 0)} % of the values at the broker${measured.map(({ note }) => note).join("")}`,
  );
}

/** Like with like: as installed with all, and with a side that has as many requests in flight. */
const PAIRS: readonly (readonly [string, string, string])[] = [
  ["collector", "bare script", "1.1 pipelined, 1.5 not"],
  ["collector", "bare script with the collector's flags", ""],
  ["collector, 1 in flight", "bare script", "1.5"],
  [`collector, ${WINDOW} in flight`, `bare script, ${WINDOW} in flight`, "1.1"],
  ["collector", "bare script, SQLite FULL", ""],
  [`collector, ${WINDOW} in flight`, `bare script, ${WINDOW} in flight, SQLite FULL`, ""],
  ["collector", "Node-RED", "0.35 pipelined, 0.5 not"],
  ["collector, 1 in flight", "Node-RED", "0.5"],
  ["collector, 1 in flight", "C", ""],
  ["collector, report changes", "collector", "1.1"],
];

function printRatios(found: ReadonlyMap<string, readonly Measured[]>): void {
  for (const [name, other, budget] of PAIRS) {
    const [ours, theirs] = [found.get(name), found.get(other)];
    if (!ours?.length || !theirs?.length) continue;
    const ratios = ours.flatMap((one, round) => (theirs[round] ? [perOffered(name, one) / perOffered(name, theirs[round])] : []));
    console.log(`${name}, next to ${other}: CPU ${spread(ratios, 2)} times${budget && ` (budget ${budget})`}`);
  }
  const [few, all] = [found.get("collector, report changes, few change"), found.get("collector")];
  if (!few?.length || !all?.length) return;
  console.log(
    `report by exception, ${CHANGING} of ${REGISTERS} change: CPU ${(median(few.map(({ cpuMs }) => cpuMs)) / median(all.map(({ cpuMs }) => cpuMs))).toFixed(2)} times (budget 0.5)`,
  );
}

/** CPU per value; by exception per time, since fewer values are meant to come. */
const perOffered = (name: string, one: Measured): number => (name.includes("report changes") ? one.cpuMs / one.elapsedMs : perValueNs(one));

/**
 * A source's readouts begin at a phase of its interval that its uuid decides, and how many answers come in one turn of the event loop
 * depends on the phases: the same ones in each run.
 */
function sameIdentifiers(): void {
  let last = 0;
  crypto.randomUUID = () => `00000000-0000-4000-8000-${(++last).toString(16).padStart(12, "0")}`;
  syncBuiltinESMExports();
}

async function measurePeer(peer: Peer, broker: ChildProcess, seconds: number, perf: boolean): Promise<Measured> {
  const running = await peer.start();
  try {
    await delay(WARM_UP_MS);
    return { ...(await withValues(broker, () => stretchOf(running.pid, seconds, perf))), note: "" };
  } finally {
    running.stop();
  }
}

async function measureProduct(plant: Plant, settings: ProductPlan["settings"], seconds: number, perf: boolean): Promise<Measured> {
  const measured: Measured[] = [];
  const plan: ProductPlan = {
    sources: DEVICES,
    values: REGISTERS,
    intervalMs: INTERVAL_MS,
    warmUpMs: WARM_UP_MS,
    plant,
    ...(settings && { settings }),
  };
  await withProduct(
    plan,
    () => ({}),
    async ({ collector, broker }) => {
      const stretch = await withValues(broker, () => stretchOf(collector.pid, seconds, perf));
      const { skipped, dropped } = await readoutsOf(collector);
      measured.push({ ...stretch, note: skipped + dropped === 0 ? "" : `; ${skipped} readouts skipped, ${dropped} values dropped` });
    },
  );
  const [one] = measured;
  if (!one) throw new Error("the collector was not measured");
  return one;
}

/** With the values that the broker took meanwhile; it counts them itself. */
async function withValues(broker: ChildProcess, measure: () => Promise<Stretch>): Promise<Stretch & { readonly values: number }> {
  const before = await ask<number>(broker);
  const stretch = await measure();
  const values = (await ask<number>(broker)) - before;
  if (values === 0) throw new Error("no value reached the broker");
  return { ...stretch, values };
}
