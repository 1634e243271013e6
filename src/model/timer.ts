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

/** Well below the longest slice that may hold up a readout (5 ms), because what comes after a look at the clock has a length too. */
const RUN_MS = 2;

/** Called in each turn of a long loop; settles at once, or after the event loop had its turn. */
export type YieldToEventLoop = () => Promise<void>;

/** Work in steps, each far shorter than a slice. */
export type Steps<T> = Generator<void, T>;

/** Does all steps at once. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Does the steps by slices. */
export async function inSlices<T>(steps: Steps<T>, yieldToEventLoop: YieldToEventLoop): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await yieldToEventLoop();
  }
}

/** Loops of this thread that wait for their next slice, the longest first. */
const paused: (() => void)[] = [];

/** Goes on with one of them in each turn of the event loop: two that run at once make no longer slices than one. */
function resumeNext(): void {
  paused.shift()?.();
  if (paused.length > 0) setImmediate(resumeNext);
}

/** For long loops: lets timers and sockets have their turn as soon as the loop has run for a slice (2 ms). */
export function createYielder(now: () => number = () => performance.now()): YieldToEventLoop {
  let began = now();
  return async () => {
    if (now() - began < RUN_MS) return;
    await new Promise<void>((done) => {
      paused.push(done);
      if (paused.length === 1) setImmediate(resumeNext);
    });
    began = now();
  };
}
