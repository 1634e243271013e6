/** How long something is not asked for again, after answers that gave nothing. Monotonic ms. */
export interface GrowingPause {
  readonly untilMs: number;
  readonly ms: number;
}

/** After the first such answer. */
export const FIRST_PAUSE_MS = 60_000;
export const LONGEST_PAUSE_MS = 3_600_000;

/**
 * The pause after one more answer that gave nothing: twice the one before, so that it is about as long as it has been so already. An answer
 * that comes within a pause tells nothing new. Pure.
 */
export function longerPause(before: GrowingPause | undefined, nowMs: number): GrowingPause {
  if (before && nowMs < before.untilMs) return before;
  const ms = before ? Math.min(2 * before.ms, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
  return { untilMs: nowMs + ms, ms };
}

/** A pause that is over at once: the one after it is the first. Pure. */
export const noPause = (nowMs: number): GrowingPause => ({ untilMs: nowMs, ms: FIRST_PAUSE_MS / 2 });
