/** A bucket of what may be logged or written: so many at once, and one more each `refillMs`. */
export interface Budget {
  /** False: nothing is left. */
  take(): boolean;
}

/** `most` at once, from 1; `now` is monotonic, in ms. */
export function createBudget(most: number, refillMs: number, now: () => number): Budget {
  let left = most;
  let filledAt = now();
  return {
    take() {
      const more = Math.floor((now() - filledAt) / refillMs);
      if (more > 0) {
        filledAt += more * refillMs;
        left = Math.min(most, left + more);
      }
      if (left < 1) return false;
      left--;
      return true;
    },
  };
}
