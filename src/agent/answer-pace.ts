/** Never waited for less: a busy controller or a serial line behind a gateway takes that long now and then. */
export const LEAST_TIMEOUT_MS = 500;
/** This many times the slowest of the last answers. */
const MARGIN = 4;
/** What is left of the slowest answer with each further one: half of it after about 70. */
const FADING = 0.99;

/** How fast a device answers, learned from its good answers: how long a request that may stay without one is waited for. */
export class AnswerPace {
  #slowestMs: number | undefined;
  /** An answer that may have waited for something else took so long: no more than that is known. */
  #atMostMs: number | undefined;

  /** An answer came after so many ms. */
  note(ms: number): void {
    this.#slowestMs = this.#slowestMs === undefined ? ms : Math.max(ms, this.#slowestMs * FADING);
  }

  /** An answer came after so many ms, in some of which the device may have been busy with something else. It counts until there is one by `note`. */
  noteAtMost(ms: number): void {
    this.#atMostMs = Math.min(ms, this.#atMostMs ?? ms);
  }

  /** The slowest of the last answers; 0: none is known. */
  get expectedMs(): number {
    return this.#slowestMs ?? 0;
  }

  /** True: anything has been learned by `note`. */
  get isKnown(): boolean {
    return this.#slowestMs !== undefined;
  }

  /** Whole milliseconds to wait for an answer that may not come: 500 at least, `fullMs` at most and as long as nothing is known. */
  timeoutMs(fullMs: number): number {
    const slowestMs = this.#slowestMs ?? this.#atMostMs;
    if (slowestMs === undefined) return fullMs;
    return Math.min(fullMs, Math.max(LEAST_TIMEOUT_MS, Math.round(MARGIN * slowestMs)));
  }
}

/** A request that failed within this met no silence. */
const QUICK_MS = 100;
/** True: to ask again what has failed costs others of the device a new connection at most, and no time-out. Pure. */
export const tookNoTime = (costMs: number): boolean => costMs <= QUICK_MS;
