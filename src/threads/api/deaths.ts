/** How long a death stays in the status. */
const NOTE_MS = 3_600_000;

/** Deaths of the embedded API's worker, for status: it is started again each time, and only who configures notices. */
export class ApiDeaths {
  #count = 0;
  #lastMs = 0;
  #cause = "";

  /** `nowMs`: epoch milliseconds. */
  add(cause: string, nowMs: number): void {
    this.#count++;
    this.#lastMs = nowMs;
    this.#cause = cause;
  }

  /** For an hour after the last one. */
  notes(nowMs: number): readonly string[] {
    if (this.#count === 0 || nowMs - this.#lastMs > NOTE_MS) return [];
    const times = this.#count === 1 ? "" : `; it failed ${this.#count} times since the service started`;
    return [
      `the embedded configuration API failed at ${new Date(this.#lastMs).toISOString()} and was restarted${times}; ` +
        `readings and sinks continue. Cause: ${this.#cause}`,
    ];
  }
}
