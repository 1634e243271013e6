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

/** A deadline looks this often, and at each quarter of its length, whether the thread ran or was stopped together with its process. */
const SLICE_MS = 1000;
/** A timer that fires so much later than due: the thread stood still, and what came meanwhile has not been looked at. */
const LATE_MS = 50;
/** What is left at least after the thread stood still: time for the sockets' bytes to be taken. */
const LOOK_MS = 100;
/** So often a deadline is put off because the thread stood still: a thread that is always late has deadlines all the same. */
const MOST_PUT_OFF = 20;

/**
 * Calls `onDue` once, when `ms` (any length) have passed in which this thread ran. Time in which the process was stopped or the machine
 * frozen does not count, to within a second and a quarter of `ms`: what came meanwhile is taken first, and what is awaited has the rest of its time. Where the
 * thread never runs on time, it is due late, but it is.
 */
export class Deadline {
  readonly #ms: number;
  readonly #onDue: () => void;
  #leftMs: number;
  #armedAt = 0;
  #sliceMs = 0;
  #putOff = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, onDue: () => void) {
    this.#ms = ms;
    this.#leftMs = ms;
    this.#onDue = onDue;
    this.#arm();
  }

  /** Counts all of `ms` again from here on. Nothing once it is due or cancelled. */
  extend(): void {
    if (this.#timer !== undefined) this.#leftMs = this.#ms + performance.now() - this.#armedAt;
  }

  /** Idempotent. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    this.#armedAt = performance.now();
    // Node cuts fractions off, which would end the wait before its time.
    this.#sliceMs = Math.ceil(Math.max(0, Math.min(this.#leftMs, this.#ms / 4, SLICE_MS)));
    this.#timer = setTimeout(Deadline.#look, this.#sliceMs, this);
  }

  static #look(deadline: Deadline): void {
    const passedMs = performance.now() - deadline.#armedAt;
    if (passedMs - deadline.#sliceMs >= LATE_MS && deadline.#putOff < MOST_PUT_OFF) {
      deadline.#putOff++;
      deadline.#leftMs = Math.max(deadline.#leftMs - deadline.#sliceMs, Math.min(deadline.#ms, LOOK_MS));
    } else deadline.#leftMs -= passedMs;
    if (deadline.#leftMs > 0) {
      deadline.#arm();
      return;
    }
    deadline.#timer = undefined;
    deadline.#onDue();
  }
}

/** Well below the longest slice that may hold up a readout (5 ms), because what comes after a look at the clock has a length too. */
const RUN_MS = 2;

/** Called in each turn of a long loop; settles at once, or after the event loop had its turn. */
export type YieldToEventLoop = () => Promise<void>;

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
