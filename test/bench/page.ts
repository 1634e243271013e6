import { setTimeout as delay } from "node:timers/promises";
import { isChromiumMissing, TestBrowser } from "../support/chromium/browser.ts";
import { DESKTOP } from "../support/chromium/visit.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { figuresOf, threadCpuMs } from "../support/process-figures.ts";
import { ask, build, child, NODE, readoutsOf, withProduct } from "./product.ts";

const SOURCES = 1000;
const VIEWERS = 10;
const ROUNDS = 5;
const MEASURE_MS = 12_000;
const METRICS_TRIES = 10;
/** The first page of each viewer is not what is measured. */
const SETTLE_MS = 3000;
/** Viewers are people at other computers: here they take what nobody else wants. */
const NICE = ["nice", "-n", "19"];

/** Of one stretch of time, with or without viewers. */
interface Stretch {
  /** Of the thread that reads, in percent of a core. */
  readonly threadPercent: number;
  /** CPU of that thread by readouts: the same where a busy machine leaves time for fewer of them. */
  readonly perReadoutUs: number;
  readonly processPercent: number;
  readonly skipped: number;
  readonly readouts: number;
  readonly latenessMs: number;
  /** Part of the readouts that began more than 50 ms after their tick. */
  readonly lateShare: number;
}

/** What viewers of the page cost the thread that reads: stretches with and without them take turns, so that both see the same machine. */
export async function benchPage(): Promise<void> {
  build();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await withProduct(
    { sources: SOURCES },
    () => ({ pagePort: port }),
    async ({ collector, children }) => {
      const browser = isChromiumMissing ? undefined : await TestBrowser.start(NICE);
      try {
        const [without, viewed]: [Stretch[], Stretch[]] = [[], []];
        for (let round = 0; round < ROUNDS; round++) {
          without.push(await stretch(collector));
          const window = await browser?.open(`${url}/`, DESKTOP);
          const viewers = await child(children, [
            ...NICE,
            NODE,
            "test/bench/viewers.ts",
            `${url}/events?path=%2F&version=`,
            String(VIEWERS),
          ]);
          await delay(SETTLE_MS);
          viewed.push(await stretch(collector));
          const { events, bytes } = await ask<{ readonly events: number; readonly bytes: number }>(viewers.process);
          console.log(
            `  round ${round + 1}: each viewer had ${(events / VIEWERS).toFixed(0)} events of ${(bytes / events / 1024).toFixed(0)} KiB`,
          );
          print("without viewers", without.slice(-1));
          print(`with ${VIEWERS}${window ? " and a browser" : ""}`, viewed.slice(-1));
          viewers.process.kill("SIGKILL");
          await window?.close();
          await delay(SETTLE_MS);
        }
        print("all without", without);
        print("all with", viewed);
        const costs = (stretches: readonly Stretch[]) => stretches.map(({ perReadoutUs }) => perReadoutUs).toSorted((a, b) => a - b);
        const [alone, watched] = [costs(without), costs(viewed)];
        console.log(
          `  CPU of the thread that reads by readouts, with viewers by without: ${(mean(watched) / mean(alone)).toFixed(3)}; ` +
            `stretches without viewers alone differ from ${alone.at(0)?.toFixed(0)} to ${alone.at(-1)?.toFixed(0)} µs`,
        );
      } finally {
        await browser?.close();
      }
    },
  );
}

async function stretch(collector: CollectorProcess): Promise<Stretch> {
  const before = await latenessOf(collector);
  const from = await borderOf(collector);
  await delay(MEASURE_MS);
  const to = await borderOf(collector);
  const after = await latenessOf(collector);
  const [elapsedMs, readouts, begun] = [to.atMs - from.atMs, to.made - from.made, after.count - before.count];
  return {
    threadPercent: ((to.threadMs - from.threadMs) / elapsedMs) * 100,
    perReadoutUs: ((to.threadMs - from.threadMs) / readouts) * 1000,
    processPercent: ((to.wholeMs - from.wholeMs) / elapsedMs) * 100,
    skipped: to.skipped - from.skipped,
    readouts,
    latenessMs: ((after.sumS - before.sumS) / begun) * 1000,
    lateShare: 1 - (after.soon - before.soon) / begun,
  };
}

/** What has been counted and used up to now, of one moment. */
async function borderOf(collector: CollectorProcess) {
  const { made, skipped } = await readoutsOf(collector);
  const { pid } = collector;
  return { made, skipped, threadMs: threadCpuMs(pid), wholeMs: figuresOf(pid).cpuMs, atMs: performance.now() };
}

/** How late readouts began so far, as the product itself has it in its metrics. */
async function latenessOf({ httpUrl }: CollectorProcess) {
  const text = await metricsAt(httpUrl);
  const figure = (name: string): number =>
    Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length),
    );
  const name = "collector_readout_lateness_seconds";
  return { count: figure(`${name}_count`), sumS: figure(`${name}_sum`), soon: figure(`${name}_bucket{le="0.05"}`) };
}

/** On a machine with too much to do an answer comes after the listener's own deadline: it is asked again. */
async function metricsAt(httpUrl: string): Promise<string> {
  for (let tries = 1; ; tries++)
    try {
      return await (await fetch(`${httpUrl}/metrics`)).text();
    } catch (error) {
      if (tries === METRICS_TRIES) throw error;
    }
}

function print(title: string, stretches: readonly Stretch[]): void {
  const sum = (of: (one: Stretch) => number) => stretches.reduce((total, one) => total + of(one), 0);
  const average = (of: (one: Stretch) => number) => sum(of) / stretches.length;
  console.log(
    `  ${title}: thread that reads ${average((s) => s.threadPercent).toFixed(1)} % of a core, ${average((s) => s.perReadoutUs).toFixed(0)} µs a readout; ` +
      `process ${average((s) => s.processPercent).toFixed(0)} %; ${sum((s) => s.readouts)} readouts, ${sum((s) => s.skipped)} skipped; ` +
      `lateness ${average((s) => s.latenessMs).toFixed(2)} ms in the mean, ${(average((s) => s.lateShare) * 100).toFixed(1)} % later than 50 ms`,
  );
}

const mean = (figures: readonly number[]): number => figures.reduce((sum, one) => sum + one, 0) / figures.length;
