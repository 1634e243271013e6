import { createHash } from "node:crypto";

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

/**
 * Places of an interval at which sources begin their readouts: those of one place are asked, answered and passed on in one turn of the event
 * loop, because waking a thread costs more than a small readout.
 */
const PLACES = 20;

/** The beginning of a source in its interval, ms; `fraction`: see stableFraction. */
export const phaseOf = (fraction: number, intervalMs: number): number => Math.floor((Math.floor(fraction * PLACES) / PLACES) * intervalMs);

/** Spreads sources over their interval, the same way at every start: 0 ≤ fraction < 1 from the text. */
export function stableFraction(text: string): number {
  return createHash("sha1").update(text).digest().readUInt32BE(0) / 2 ** 32;
}
