/** What is seen of one sink that gets the whole history. */
export interface Look {
  /** Values that the buffer has taken for it so far. */
  readonly accepted: number;
  /** Values that it has delivered, refused for good or found damaged so far. */
  readonly settled: number;
  /** Values that wait for it. */
  readonly pending: number;
  /** The sink says OK, nothing is under way to it, and nothing waits on purpose. */
  readonly isIdle: boolean;
}

/** Publish intervals after which a value that waits should have been delivered, and the least time in ms. */
const PATIENCE_INTERVALS = 3;
const LEAST_PATIENCE_MS = 10_000;
/** A sink that is attached again twice within this time, in ms, has a fault that attaching does not end. */
const AGAIN_MS = 600_000;
/** A look that comes later than this after the one before, in ms, tells of a thread that stood still. */
const MISSED_MS = 5000;

/**
 * Notices a sink that says OK and gets nothing: values wait, more are accepted, and none is delivered. Believes the buffer's account alone.
 * Has no timer and no clock of its own: times are monotonic ms.
 */
export class Watchdog {
  readonly patienceMs: number;
  #settled = Number.NaN;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Since when values wait for an idle sink, how many were accepted by then, and whether more were at an earlier look. */
  #waiting: { readonly sinceMs: number; readonly accepted: number; hasGrown: boolean } | undefined;
  #attachedMs = Number.NEGATIVE_INFINITY;
  /** Anything was settled since it was attached again last. */
  #hasMoved = true;
  #isFailing = false;

  /** `intervalMs`: the publish interval. */
  constructor(intervalMs: number) {
    this.patienceMs = Math.max(LEAST_PATIENCE_MS, PATIENCE_INTERVALS * intervalMs);
  }

  /**
   * The sink was attached again twice within ten minutes, or with nothing delivered between, as with a long interval. Until ten minutes after
   * the last time, and something was delivered or nothing waits.
   */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** True: the sink is to be attached again. */
  look(nowMs: number, { accepted, settled, pending, isIdle }: Look): boolean {
    const hasStoodStill = nowMs - this.#lookedMs > MISSED_MS;
    const hasProgress = settled !== this.#settled;
    this.#lookedMs = nowMs;
    this.#settled = settled;
    this.#hasMoved ||= hasProgress;
    if (nowMs - this.#attachedMs >= AGAIN_MS && (this.#hasMoved || pending <= 0)) this.#isFailing = false;
    if (hasStoodStill || hasProgress || !isIdle || pending <= 0) {
      this.#waiting = undefined;
      return false;
    }
    this.#waiting ??= { sinceMs: nowMs, accepted, hasGrown: false };
    // Only a later commit shows that the account would tell of a delivery; that commit itself may wake the delivery.
    const { sinceMs, hasGrown } = this.#waiting;
    this.#waiting.hasGrown = accepted > this.#waiting.accepted;
    if (nowMs - sinceMs < this.patienceMs || !hasGrown) return false;
    this.#waiting = undefined;
    this.#isFailing = nowMs - this.#attachedMs < AGAIN_MS || !this.#hasMoved;
    this.#attachedMs = nowMs;
    this.#hasMoved = false;
    return true;
  }
}
