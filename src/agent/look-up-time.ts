import { Deadline } from "../base/deadline.ts";
import { ReasonError } from "../model/reason.ts";

/**
 * The time in which addresses are looked up, one for all connections of a readout. Time in which the process was stopped does not count (see
 * Deadline).
 */
export class LookUpTime {
  /** Aborts when it is over, and when the source is stopped. */
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #running: Deadline;
  #isLooking = false;

  /** `onOver`: it was over in the middle of a look-up, which is to end now. */
  constructor(ms: number, stop: AbortSignal, onOver: () => void) {
    this.signal = AbortSignal.any([stop, this.#over.signal]);
    this.#running = new Deadline(ms, () => {
      this.#over.abort(new ReasonError("TIMEOUT", "the time for looking up addresses is over"));
      if (this.#isLooking) onOver();
    });
  }

  /** Settles as the look-up does. */
  async during<T>(lookUp: Promise<T>): Promise<T> {
    this.#isLooking = true;
    try {
      return await lookUp;
    } finally {
      this.#isLooking = false;
    }
  }

  /** Nothing is looked up any more. Idempotent. */
  cancel(): void {
    this.#running.cancel();
  }
}
