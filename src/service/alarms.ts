import type { Log } from "../model/context.ts";

/** The latest ones stay in the status. */
const MAX_ALARMS = 20;

/** Trouble of the collector itself: in the log, and in the status until the process ends. */
export class Alarms {
  readonly #log: Log;
  readonly #entries: string[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  readonly raise = (message: string): void => {
    this.#log.error({}, message);
    this.#entries.push(`${new Date().toISOString()} ${message}`);
    if (this.#entries.length > MAX_ALARMS) this.#entries.shift();
  };

  /** The oldest first, each with its time. */
  list(): readonly string[] {
    return this.#entries;
  }
}
