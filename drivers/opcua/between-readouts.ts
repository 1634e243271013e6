import { sleep } from "../../src/base/timer.ts";

/** One piece of work, such as one request with its answer. */
export interface Piece {
  /** Never throws. */
  run(): Promise<void>;
  /** Pause behind it, as a multiple of the time that it took. */
  readonly rest: number;
}

/** A readout follows on the one before within this where it has several requests. */
const QUIET_MS = 20;
/** Work that found no quiet moment for so long is begun beside a readout. */
const STARVED_MS = 1000;
/** If there was nothing to do, this long passes until the next look for work. */
const IDLE_MS = 1000;

/**
 * Does work of a session in the time that its readouts leave: one piece at a time, none begun while a readout is under way, and a pause
 * behind each.
 */
export class BetweenReadouts {
  readonly #next: () => Piece | undefined;
  readonly #now: () => number;
  #readouts = 0;
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #waitingSinceMs: number | undefined;
  #restUntilMs = Number.NEGATIVE_INFINITY;
  #idleUntilMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  /** `now`: monotonic ms. */
  constructor(next: () => Piece | undefined, now: () => number = () => performance.now()) {
    this.#next = next;
    this.#now = now;
  }

  began(): void {
    this.#readouts++;
    if (this.#isStarved) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** `isUrgent`: there is work, without a look. */
  ended(isUrgent: boolean): void {
    this.#readouts--;
    const isWanted = isUrgent || this.#waitingSinceMs !== undefined || this.#now() >= this.#idleUntilMs;
    if (this.#readouts === 0 && isWanted) this.#arm();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Works at once, without pauses, for at most so many ms; false: there was nothing to do. */
  async hurry(withinMs: number): Promise<boolean> {
    const untilMs = this.#now() + withinMs;
    let hasDone = false;
    while (this.#now() < untilMs) {
      const running = this.#running ?? this.#begin();
      if (!running) break;
      const over = new AbortController();
      await Promise.race([running, sleep(untilMs - this.#now(), over.signal)]);
      over.abort();
      if (this.#running === running) break;
      hasDone = true;
    }
    return hasDone;
  }

  get #isStarved(): boolean {
    return this.#waitingSinceMs !== undefined && this.#now() - this.#waitingSinceMs >= STARVED_MS;
  }

  #arm(): void {
    if (this.#isStopped || this.#timer || this.#running) return;
    this.#waitingSinceMs ??= this.#now();
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        // It may have been set while a readout was under way, whose end sets it again.
        if (!this.#running && (this.#readouts === 0 || this.#isStarved)) this.#begin();
      },
      Math.max(QUIET_MS, this.#restUntilMs - this.#now()),
    ).unref();
  }

  #begin(): Promise<void> | undefined {
    this.#waitingSinceMs = undefined;
    const piece = this.#isStopped ? undefined : this.#next();
    if (!piece) {
      this.#idleUntilMs = this.#now() + IDLE_MS;
      return undefined;
    }
    const beganMs = this.#now();
    const running = piece.run().finally(() => {
      this.#restUntilMs = this.#now() + piece.rest * (this.#now() - beganMs);
      this.#running = undefined;
      this.#arm();
    });
    this.#running = running;
    return running;
  }
}
