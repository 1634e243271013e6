import type { Log } from "../model/context.ts";

/** The latest ones stay in the status. */
const MAX_ALARMS = 20;

/** Trouble of the collector itself: in the log, and in the status until it is over or, where nothing tells that, until the process ends. */
export class Alarms {
  readonly #log: Log;
  #entries: readonly { readonly at: string; readonly message: string }[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  /** `over`: the alarm whose trouble this says the end of. */
  readonly raise = (message: string, over?: string): void => {
    if (over !== undefined) {
      this.#log.info({}, message);
      this.#entries = this.#entries.filter((entry) => entry.message !== over);
      return;
    }
    this.#log.error({}, message);
    this.#entries = [...this.#entries, { at: new Date().toISOString(), message }].slice(-MAX_ALARMS);
  };

  /** The oldest first, each with its time. */
  list(): readonly string[] {
    return this.#entries.map(({ at, message }) => `${at} ${message}`);
  }
}
