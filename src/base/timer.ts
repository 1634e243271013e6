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

/** The waits of one who waits again and again, one at a time: without the listener that `sleep` adds and removes each time. */
export class Nap {
  #timer: NodeJS.Timeout | undefined;
  #end: (() => void) | undefined;

  /** Waits `ms` (any length; ≤ 0 still yields once to the event loop), or until it is woken. Never rejects. */
  sleep(ms: number): Promise<void> {
    return new Promise((done) => {
      this.#end = done;
      this.#wait(ms);
    });
  }

  /** Ends the wait under way, if there is one. */
  wake(): void {
    clearTimeout(this.#timer);
    const end = this.#end;
    this.#end = undefined;
    end?.();
  }

  #wait(ms: number): void {
    const slice = timerMs(ms);
    // Node cuts fractions off, which would end the wait before its time.
    this.#timer = setTimeout(() => (ms > slice ? this.#wait(ms - slice) : this.wake()), Math.ceil(Math.max(0, slice)));
  }
}

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

/** Well below the longest slice that may hold up a readout (5 ms), because what comes after a look at the clock has a length too. */
const SLICE_MS = 2;

const AT_ONCE = Promise.resolve();

/**
 * The long loops of one thread. All together they work for one slice between two looks at the timers: a loop that is begun by an answer, one
 * that follows it, and one that was paused before make no longer slices than one loop.
 */
export class Slices {
  readonly #now: () => number;
  /** The longest first. */
  readonly #paused: (() => void)[] = [];
  /** When the first loop began to work since the timers had their turn; undefined: none has. */
  #beganMs: number | undefined;
  /** What holds the end of this turn; undefined: nothing. The timers of a test end with it, and what they held never comes. */
  #scheduledBy: typeof setImmediate | undefined;
  #hasWaited = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** For one loop, which begins. */
  readonly yielder = (): YieldToEventLoop => {
    this.#isOver();
    return this.#yield;
  };

  readonly #yield: YieldToEventLoop = () =>
    this.#isOver()
      ? new Promise((done) => {
          this.#paused.push(done);
        })
      : AT_ONCE;

  #isOver(): boolean {
    const nowMs = this.#now();
    this.#schedule();
    this.#beganMs ??= nowMs;
    return nowMs - this.#beganMs >= SLICE_MS;
  }

  /** Timers and sockets have their turn, then the check phase has both of these, and between them what the resumed loop does. */
  #schedule(): void {
    if (this.#scheduledBy === setImmediate) return;
    this.#scheduledBy = setImmediate;
    this.#beganMs = undefined;
    setImmediate(() => this.#resumeNext());
    setImmediate(() => this.#endTurn());
  }

  #resumeNext(): void {
    if (this.#paused.length === 0) return;
    // What sockets and timers began has had the slice of this turn; it may have it in every turn.
    this.#hasWaited = this.#beganMs !== undefined && this.#now() - this.#beganMs >= SLICE_MS && !this.#hasWaited;
    if (this.#hasWaited) return;
    this.#beganMs = this.#now();
    this.#paused.shift()?.();
  }

  #endTurn(): void {
    this.#beganMs = undefined;
    this.#scheduledBy = undefined;
    if (this.#paused.length > 0) this.#schedule();
  }
}

/** For long loops: lets timers and sockets have their turn as soon as the loops of this thread have run for a slice (2 ms). */
export const createYielder = new Slices().yielder;
