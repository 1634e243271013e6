import { writeFileSync } from "node:fs";
import { PerformanceObserver, performance } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

/**
 * For `--import` in a process that is measured, with TURN_METER the path of a file: how long its main thread works in one go. At SIGUSR2 the
 * file gets the longest of them since the last signal, in ms without collections of garbage, the longest first.
 *
 * A timer of a millisecond looks at the clock and at the processor time of the thread: what other programs take of the machine is no work of
 * this one, and processor time counts in ticks of up to 4 ms, so the smaller of both is taken.
 */
const LOOK_EVERY_MS = 1;
const NOTED_MS = 3;
const MOST = 10;

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly cpuMs: number;
}

const file = process.env["TURN_METER"];
if (isMainThread && file !== undefined && process.argv.includes("run")) {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  const cpuMs = (): number => {
    // The kernel counts the time of a thread as it leaves the processor, and else in ticks of up to 4 ms.
    Atomics.wait(nothing, 0, 0, 0.01);
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let spans: Span[] = [];
  let collections: { readonly fromMs: number; readonly toMs: number }[] = [];
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) collections.push({ fromMs: startTime, toMs: startTime + duration });
  }).observe({ entryTypes: ["gc"] });

  let [lastMs, lastCpuMs] = [performance.now(), cpuMs()];
  setInterval(() => {
    const [nowMs, nowCpuMs] = [performance.now(), cpuMs()];
    if (nowMs - lastMs > NOTED_MS) spans.push({ fromMs: lastMs, toMs: nowMs, cpuMs: nowCpuMs - lastCpuMs });
    [lastMs, lastCpuMs] = [nowMs, nowCpuMs];
  }, LOOK_EVERY_MS).unref();

  const ownMs = ({ fromMs, toMs, cpuMs }: Span): number => {
    const within = collections.filter((one) => one.fromMs >= fromMs && one.fromMs < toMs);
    const collectedMs = within.reduce((sum, one) => sum + one.toMs - one.fromMs, 0);
    return Math.max(0, Math.min(toMs - fromMs, cpuMs) - collectedMs);
  };
  process.on("SIGUSR2", () => {
    // The observer hears of the last collections a turn later.
    setTimeout(() => {
      const longest = spans.map(ownMs).sort((a, b) => b - a);
      writeFileSync(file, JSON.stringify(longest.slice(0, MOST)));
      spans = [];
      collections = [];
      // This was the meter's own work.
      [lastMs, lastCpuMs] = [performance.now(), cpuMs()];
    }, 50);
  });
}
