/** A delay that setTimeout takes: above 2^31 - 1 ms (24 days) it would fire at once. */
export const timerMs = (ms: number): number => Math.min(ms, 2 ** 31 - 1);

/**
 * Waits `ms` (any length; ≤ 0 still yields once to the event loop); false at once where the signal aborts. Leaves no listener and no timer
 * behind, and never rejects.
 */
export async function sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
  let rest = ms;
  do {
    const slice = timerMs(rest);
    if (!(await sleepOnce(slice, signal))) return false;
    rest -= slice;
  } while (rest > 0);
  return true;
}

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((done) => {
    if (signal?.aborted) {
      done(false);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      done(false);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", stop);
        done(true);
      },
      // Node cuts fractions off, which would end the wait before its time.
      Math.ceil(Math.max(0, ms)),
    );
    signal?.addEventListener("abort", stop, { once: true });
  });
}
