import os from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { startCollector } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { figuresOf } from "../support/process-figures.ts";
import { type BenchOptions, spread, stretchOf } from "./pairs.ts";
import { ask, BUNDLE, build, type Product, type ProductPlan, readoutsOf, withProduct } from "./product.ts";

const MEASURE_S = 20;
const SLOW_MEASURE_S = 60;
const IDLE_S = 45;
const STARTS = 5;
const FIRST_WITHIN_MS = 30_000;
const POLL_MS = 500;
/** Values a second and sources, from few to many. */
const CASES: readonly (ProductPlan & { readonly values: number; readonly intervalMs: number; readonly budget?: string })[] = [
  { sources: 100, values: 10, intervalMs: 10_000, budget: "1.5 % of a core" },
  { sources: 10, values: 100, intervalMs: 1000 },
  { sources: 10, values: 1000, intervalMs: 1000 },
  { sources: 1000, values: 10, intervalMs: 1000, budget: "230 MiB" },
  { sources: 3000, values: 10, intervalMs: 1000 },
  { sources: 10, values: 1000, intervalMs: 100, budget: "140 MiB" },
  { sources: 100, values: 1000, intervalMs: 1000 },
  { sources: 1000, values: 100, intervalMs: 1000 },
  { sources: 100, values: 1000, intervalMs: 100 },
];
const FEW = "10 sources of 1000 each 1000 ms";
const MANY = "1000 sources of 10 each 1000 ms";
const FIRST: readonly (ProductPlan & { readonly budget: string })[] = [
  { sources: 1, values: 10, budget: "350" },
  { sources: 10, values: 1000, budget: "450" },
];

const none = () => ({});
const nameOf = ({ sources, values, intervalMs }: (typeof CASES)[number]): string => `${sources} sources of ${values} each ${intervalMs} ms`;

/** The bundle with its flags, store and a broker: what it takes as sources and values grow; idle, with its own API and page; its start. */
export async function benchGrowth({ isMeant, rounds = 1, seconds, perf }: BenchOptions): Promise<void> {
  build();
  console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, ${rounds} rounds`);
  if (isMeant("idle")) await benchIdle();
  for (const plan of FIRST) {
    const name = `first readout after start, ${plan.sources} × ${plan.values}`;
    if (isMeant(name)) await benchFirst(name, plan);
  }
  const cases = CASES.map((plan) => ({ name: nameOf(plan), plan })).filter(({ name }) => isMeant(name));
  const cpu = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const { name, plan } of round % 2 === 0 ? cases : [...cases].reverse())
      await withProduct(plan, none, async (product) => {
        const forSeconds = seconds ?? (plan.intervalMs > 1000 ? SLOW_MEASURE_S : MEASURE_S);
        cpu.get(name)?.push(await measure(name, plan, product, { seconds: forSeconds, perf }));
      });
  const [few, many] = [cpu.get(FEW) ?? [], cpu.get(MANY) ?? []];
  const ratios = many.flatMap((one, round) => (few[round] ? [one / few[round]] : []));
  if (ratios.length > 0) console.log(`1,000 sources next to ten with the same values: CPU ${spread(ratios, 2)} times (budget 4)`);
}

/** Prints the row and gives back the CPU, ms a second. */
async function measure(
  name: string,
  { sources, values, intervalMs, budget }: (typeof CASES)[number],
  { collector, broker }: Product,
  { seconds, perf }: { readonly seconds: number; readonly perf: boolean },
): Promise<number> {
  const [before, valuesBefore] = [await readoutsOf(collector), await ask<number>(broker)];
  await ask<number>(broker, "l");
  const { cpuMs, elapsedMs, figures, pssMiB } = await stretchOf(collector.pid, seconds, perf);
  const [ageMs, valuesAfter, after] = [await ask<number>(broker, "l"), await ask<number>(broker), await readoutsOf(collector)];
  const offered = Math.round((sources * values * 1000) / intervalMs);
  const taken = valuesAfter - valuesBefore;
  console.log(
    `${name}, ${offered} values/s: CPU ${((cpuMs / elapsedMs) * 100).toFixed(1)} % of a core, ${((cpuMs * 1e6) / taken).toFixed(0)} ns a value, ` +
      `RSS ${figures.rssMiB.toFixed(0)} MiB, PSS ${pssMiB.toFixed(0)} MiB, ${after.skipped - before.skipped} of ${after.made - before.made} readouts skipped, ` +
      `${after.dropped - before.dropped} values dropped, ${((taken / offered / elapsedMs) * 100_000).toFixed(0)} % at the broker, at most ${(ageMs / 1000).toFixed(1)} s old${budget ? ` (budget ${budget})` : ""}`,
  );
  return (cpuMs / elapsedMs) * 1000;
}

async function benchIdle(): Promise<void> {
  const collector = await startCollector({ command: BUNDLE, pagePort: await freePort() });
  try {
    await delay(IDLE_S * 1000);
    const { cpuMs, elapsedMs, figures, pssMiB } = await stretchOf(collector.pid, MEASURE_S, false);
    console.log(
      `idle with the embedded API, ${IDLE_S} s after the start: RSS ${figures.rssMiB.toFixed(0)} MiB, PSS ${pssMiB.toFixed(0)} MiB, CPU ${((cpuMs / elapsedMs) * 100).toFixed(2)} % of a core (budget 120 MiB)`,
    );
  } finally {
    await collector.stop();
  }
}

/** From the start of the process, with the configuration that it has kept, until the devices have answered. Their process keeps the times. */
async function benchFirst(name: string, plan: (typeof FIRST)[number]): Promise<void> {
  await withProduct({ ...plan, isFromApi: true, warmUpMs: 5000 }, none, async ({ devices, again }) => {
    const [first, all, cpu]: [number[], number[], number[]] = [[], [], []];
    for (let n = 0; n < STARTS; n++) {
      const { pid, startedAt, answered } = await startAgain(devices, again);
      first.push(answered.firstAt - startedAt);
      all.push(answered.allAt - startedAt);
      cpu.push(figuresOf(pid).cpuMs);
    }
    console.log(
      `${name}: first request ${spread(first, 0)} ms, all values read ${spread(all, 0)} ms, CPU of the start ${spread(cpu, 0)} ms, ${STARTS} starts (budget ${plan.budget})`,
    );
  });
}

async function startAgain(devices: Product["devices"], again: Product["again"]) {
  const { collector, startedAt } = await again(() => ask(devices, "0"));
  for (let waitedMs = 0; waitedMs < FIRST_WITHIN_MS; waitedMs += POLL_MS) {
    await delay(POLL_MS);
    const { firstAt, allAt } = await ask<{ readonly firstAt: number | null; readonly allAt: number | null }>(devices);
    if (firstAt !== null && allAt !== null) return { pid: collector.pid, startedAt, answered: { firstAt, allAt } };
  }
  throw new Error(`not all values were read within ${FIRST_WITHIN_MS} ms of being ready`);
}
