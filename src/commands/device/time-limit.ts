import { Deadline } from "../../base/deadline.ts";

/** A signal that aborts once so many ms have passed in which the process ran: see Deadline. */
export class TimeLimit {
  readonly #over = new AbortController();
  readonly #deadline: Deadline;

  /** `words`: why the signal aborts. */
  constructor(ms: number, words: string) {
    this.#deadline = new Deadline(ms, () => this.#over.abort(new DOMException(words, "TimeoutError")));
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** The signal does not abort any more. Until then the process goes on. */
  end(): void {
    this.#deadline.cancel();
  }
}
