import { monitorEventLoopDelay } from "node:perf_hooks";

/** How late this thread's timers were, ms. */
export interface Lateness {
  readonly p99: number;
  readonly max: number;
  readonly loopP99: number;
}

const TIMER_MS = 10;

/** Timers of 10 ms, one after the other, for so many ms. */
export async function latenessIn(ms: number): Promise<Lateness> {
  const late: number[] = [];
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    const due = performance.now() + TIMER_MS;
    await new Promise((done) => setTimeout(done, TIMER_MS));
    late.push(performance.now() - due);
  }
  loop.disable();
  late.sort((a, b) => a - b);
  return { p99: late[Math.floor(late.length * 0.99)] ?? Number.NaN, max: late.at(-1) ?? Number.NaN, loopP99: loop.percentile(99) / 1e6 };
}

export const latenessWords = ({ p99, max, loopP99 }: Lateness): string =>
  `p99 ${p99.toFixed(1)} ms, max ${max.toFixed(1)} ms, event loop p99 ${loopP99.toFixed(1)} ms`;
