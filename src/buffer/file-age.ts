/** A wall clock that moves so far from the monotonic one was set. */
const STEP_MS = 2000;
/** Nothing goes by its age so soon after a step. */
const QUIET_MS = 60_000;
/** Time in which no process ran counts only after this: it is known by the wall clock alone, which may be wrong at a start. */
const BELIEVE_AFTER_MS = 3_600_000;
/** So little counts at once. */
const BELIEVED_MS = 60_000;
/** Marks of the age over the longest time that values are kept. */
const MARKS = 500;

/** How old the file is, as it is saved: ages are differences of it. */
export interface SavedAge {
  /** In which a process had it open, and other times that are believed, ms. */
  readonly ageMs: number;
  /** In which none had it open, by the wall clock, and that is not believed yet, ms. */
  readonly downMs: number;
  /** Epoch ms of the saving; null: it never was. */
  readonly at: number | null;
}

/**
 * The age of the file, by which its values get too old: it goes with the monotonic clock, and over restarts with the wall clock, whose steps
 * neither age values nor make them young.
 */
export class FileAge {
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  readonly #openedMs: number;
  readonly #openedAgeMs: number;
  #downMs: number;
  /** The wall clock's distance from the monotonic one, when it was last looked at. */
  #offsetMs: number;
  #quietUntilMs = Number.NEGATIVE_INFINITY;

  constructor({ ageMs, downMs, at }: SavedAge, now: () => number, monotonicMs: () => number) {
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#openedMs = monotonicMs();
    this.#openedAgeMs = ageMs;
    this.#downMs = downMs + (at === null ? 0 : Math.max(0, now() - at));
    this.#offsetMs = now() - this.#openedMs;
  }

  /** Ms; never falls. */
  nowMs(): number {
    return this.#ranMs() + this.#openedAgeMs + (this.#isDownTimeBelieved() ? this.#downMs : 0);
  }

  /** To be called at least every few seconds: notices that the wall clock was set. True: values may go by their age now. */
  look(): boolean {
    const nowMs = this.#monotonicMs();
    const stepMs = this.#now() - nowMs - this.#offsetMs;
    if (Math.abs(stepMs) > STEP_MS) {
      this.#quietUntilMs = nowMs + QUIET_MS;
      // Set back: it may have been ahead when the file was opened.
      if (!this.#isDownTimeBelieved()) this.#downMs = Math.max(0, this.#downMs + Math.min(0, stepMs));
    }
    this.#offsetMs += stepMs;
    return nowMs >= this.#quietUntilMs;
  }

  /** True: an age of now compares with one of later: all time in which no process ran is in it. */
  isSettled(): boolean {
    return this.#downMs === 0 || this.#isDownTimeBelieved();
  }

  toSave(): SavedAge {
    const isBelieved = this.#isDownTimeBelieved();
    return { ageMs: this.nowMs(), downMs: isBelieved ? 0 : this.#downMs, at: this.#now() };
  }

  #ranMs(): number {
    return this.#monotonicMs() - this.#openedMs;
  }

  #isDownTimeBelieved(): boolean {
    return this.#downMs <= BELIEVED_MS || this.#ranMs() >= BELIEVE_AFTER_MS;
  }
}

/** So far apart are the marks of the age in the file. */
export const markEveryMs = (maxAgeMs: number): number => maxAgeMs / MARKS;
