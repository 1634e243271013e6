/** One retry a second for so long after the first failure. */
const STEADY_MS = 10_000;
const LEAST_MS = 1000;
const MOST_MS = 60_000;
/** What has been open for so long was well: the next failure is a first one. */
export const HEALTHY_MS = 10_000;

export interface Backoff {
  /** When the trouble began, on a monotonic clock. */
  readonly sinceMs: number;
  /** Tries after the steady seconds. */
  readonly doublings: number;
}

/**
 * How long to wait before the next try: one second each in the first ten, then a ceiling that doubles to 60 s,
 * with full jitter above one second. `before` is undefined for a first failure. Pure but for `random`, 0 ≤ random() < 1.
 */
export function backOff(
  before: Backoff | undefined,
  nowMs: number,
  random: () => number = Math.random,
): { readonly delayMs: number; readonly state: Backoff } {
  const sinceMs = before?.sinceMs ?? nowMs;
  if (nowMs - sinceMs < STEADY_MS) return { delayMs: LEAST_MS, state: { sinceMs, doublings: 0 } };
  const doublings = (before?.doublings ?? 0) + 1;
  const ceilingMs = Math.min(MOST_MS, LEAST_MS * 2 ** Math.min(doublings, 10));
  return { delayMs: LEAST_MS + random() * (ceilingMs - LEAST_MS), state: { sinceMs, doublings } };
}
