import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { CollectorProcess } from "../support/collector-process.ts";
import { figuresOf } from "../support/process-figures.ts";
import { build, NODE, readoutsOf, withProduct } from "./product.ts";

const MEASURE_MS = 15_000;

/** In the thread that reads: its last collections, once a second to a file. In the others it would take memory that is measured here. */
const GC_PROBE = `
  import { renameSync, writeFileSync } from "node:fs";
  import { isMainThread } from "node:worker_threads";
  const { PerformanceObserver } = isMainThread ? await import("node:perf_hooks") : {};
  const folder = process.env.BENCH_GC_FOLDER;
  const found = [];
  const file = folder + "/main.json";
  const begin = () => {
    new PerformanceObserver((list) => {
      for (const { duration, detail } of list.getEntries()) found.push([Date.now(), duration, detail.kind]);
      if (found.length > 500) found.splice(0, 250);
    }).observe({ entryTypes: ["gc"] });
    const timer = setInterval(() => {
      writeFileSync(file + ".tmp", JSON.stringify({ found }));
      renameSync(file + ".tmp", file);
    }, 1000);
    timer.unref();
  };
  if (isMainThread) begin();`;

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

/** The product alone, and beside a process that takes a whole core. */
export async function benchProductTimers(count: number): Promise<void> {
  build();
  const gcFolderOf = (dir: string): string => path.join(dir, "gc");
  const options = (dir: string) => {
    mkdirSync(gcFolderOf(dir));
    return { env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(GC_PROBE)}`, BENCH_GC_FOLDER: gcFolderOf(dir) } };
  };
  await withProduct({ sources: count }, options, async ({ collector, dir, children }) => {
    await measure("alone", collector, gcFolderOf(dir));
    const stillFile = path.join(dir, "still");
    children.push(spawn(NODE, ["-e", NEIGHBOUR, stillFile], { stdio: "ignore" }));
    await measure("with a neighbour that takes a core", collector, gcFolderOf(dir));
    console.log(`  the neighbour itself stood still for up to ${Number(readFileSync(stillFile, "utf8")).toFixed(1)} ms`);
  });
}

async function measure(title: string, product: CollectorProcess, gcFolder: string): Promise<void> {
  const [{ skipped }, cpu, fromMs] = [await readoutsOf(product), figuresOf(product.pid).cpuMs, Date.now()];
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
    `  ${title}: ${(await readoutsOf(product)).skipped - skipped} readouts skipped in ${(elapsedMs / 1000).toFixed(0)} s; ` +
      `longest collection of the thread that reads ${longest([1, 4, 8, 16]).toFixed(1)} ms (full ${longest([4]).toFixed(1)} ms, ` +
      `${collections.filter(({ kind }) => kind === 4).length} of them; young ${longest([1]).toFixed(1)} ms); ` +
      `RSS ${after.rssMiB.toFixed(0)} MiB; CPU ${(((after.cpuMs - cpu) / elapsedMs) * 100).toFixed(0)} % of a core`,
  );
}
