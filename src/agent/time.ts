import { createHash } from "node:crypto";

export { createBreather } from "../model/timer.ts";

/** The next whole multiple of the interval plus phase that lies after `nowMs`. All in ms of one monotonic clock. */
export function nextTick(nowMs: number, intervalMs: number, phaseMs: number): number {
  const n = Math.floor((nowMs - phaseMs) / intervalMs) + 1;
  const tick = n * intervalMs + phaseMs;
  // Floating point may put `now` a hair before the tick it stands on.
  return tick > nowMs ? tick : tick + intervalMs;
}

/** Ticks that lie after `fromMs` and before `toMs`: those that a readout overran. */
export function ticksBetween(fromMs: number, toMs: number, intervalMs: number, phaseMs: number): number {
  const first = nextTick(fromMs, intervalMs, phaseMs);
  return first >= toMs ? 0 : Math.ceil((toMs - first) / intervalMs);
}

/** Spreads sources over their interval, the same way at every start: 0 ≤ fraction < 1 from the text. */
export function stableFraction(text: string): number {
  return createHash("sha1").update(text).digest().readUInt32BE(0) / 2 ** 32;
}

const STEADY_MS = 10_000;
const LONGEST_BACKOFF_MS = 60_000;

/**
 * How long to wait before the next try: one a second in the first 10 s of trouble, then a ceiling that doubles
 * to 60 s with full jitter above one second, so that many sources do not return in step.
 */
export function backoffMs(troubleMs: number, attemptsAfterSteady: number, random: () => number = Math.random): number {
  if (troubleMs < STEADY_MS) return 1000;
  const ceiling = Math.min(LONGEST_BACKOFF_MS, 2000 * 2 ** Math.min(attemptsAfterSteady, 10));
  return 1000 + random() * (ceiling - 1000);
}

/** The waits of one trouble, from its first failed try on: takes the ms since it began, gives the ms to the next try (see backoffMs). */
export function createBackoff(): (troubleMs: number) => number {
  let triesAfterSteady = 0;
  return (troubleMs) => backoffMs(troubleMs, troubleMs < STEADY_MS ? 0 : triesAfterSteady++);
}
