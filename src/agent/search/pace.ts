/** Never waited for less, ms: a busy controller or a serial line behind a gateway takes that long now and then. */
export const LEAST_TIMEOUT_MS = 500;
/** Times the slowest of the last answers that one is waited for: four, as a scan of a controller may fall between. */
const MARGIN = 4;
/** Part of the slowest answer that is left with each further one: half of it after about 70. */
const FADING = 0.99;
/** A request that failed within this time, ms, met no silence. */
const QUICK_MS = 100;

/** How fast a device answers, learned from its good answers: how long a request that may stay without one is waited for. */
export interface Pace {
  /** The slowest of the last answers, ms; 0: none is known. */
  slowestMs: number;
  /** An answer that may have waited for something else took so long, ms; 0: none is known. It counts until `slowestMs` is known. */
  atMostMs: number;
}

export const newPace = (): Pace => ({ slowestMs: 0, atMostMs: 0 });

/** An answer came after so many ms. Pure but for `pace`. */
export function noteAnswer(pace: Pace, ms: number): void {
  pace.slowestMs = Math.max(ms, pace.slowestMs * FADING, Number.MIN_VALUE);
}

/** An answer came after so many ms, in some of which the device may have been busy with something else. */
export function noteAtMost(pace: Pace, ms: number): void {
  pace.atMostMs = pace.atMostMs === 0 ? ms : Math.min(ms, pace.atMostMs);
}

/** Whole milliseconds to wait for an answer that may not come: 500 at least, `fullMs` at most and as long as nothing is known. Pure. */
export function timeoutOf({ slowestMs, atMostMs }: Pace, fullMs: number): number {
  const knownMs = slowestMs || atMostMs;
  return knownMs === 0 ? fullMs : Math.min(fullMs, Math.max(LEAST_TIMEOUT_MS, Math.round(MARGIN * knownMs)));
}

/** True: to ask again what has failed costs others of the device a new connection at most, and no time-out. Pure. */
export const tookNoTime = (costMs: number): boolean => costMs <= QUICK_MS;
