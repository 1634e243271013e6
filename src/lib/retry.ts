/** One retry a second for so long after the first failure. */
const STEADY_MS = 10_000;
const SHORTEST_RETRY_MS = 1000;
export const LONGEST_RETRY_MS = 60_000;
/** What has been open for so long was healthy: the next failure is a first one. */
export const HEALTHY_MS = 10_000;

/**
 * How long to wait before the next try, in ms: one second each in the first ten seconds of trouble, then a random time between one second and
 * a ceiling that doubles from 2 s to 60 s, so that many retries do not come in step. `triesAfterSteady`: those before this one, from 0.
 * Pure but for `random`, 0 ≤ random() ≤ 1.
 */
export function backoffMs(troubleMs: number, triesAfterSteady: number, random: () => number = Math.random): number {
  if (troubleMs < STEADY_MS) return SHORTEST_RETRY_MS;
  const ceilingMs = Math.min(LONGEST_RETRY_MS, 2 * SHORTEST_RETRY_MS * 2 ** Math.min(triesAfterSteady, 10));
  return SHORTEST_RETRY_MS + random() * (ceilingMs - SHORTEST_RETRY_MS);
}

/** The waits of one trouble, from its first failure on: takes the ms since it began, gives the ms to the next try (backoffMs). */
export function createBackoff(random?: () => number): (troubleMs: number) => number {
  let triesAfterSteady = 0;
  return (troubleMs) => backoffMs(troubleMs, troubleMs < STEADY_MS ? 0 : triesAfterSteady++, random);
}
