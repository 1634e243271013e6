export const MINUTE_MS = 60_000;
/** Minutes of a timeline: a day. */
export const TIMELINE_MINUTES = 1440;

/** A state over some minutes. */
export interface StateRun {
  /** Minutes, both included. */
  readonly from: number;
  readonly to: number;
  readonly state: number;
}

/**
 * The states of a day by the minute, each a number from 1 to 255; a minute with several has the worst. It takes a byte a minute, however often the
 * state changes. Minutes are counted from any fixed moment, from 0 on.
 */
export class MinuteStates {
  readonly #cells = new Uint8Array(TIMELINE_MINUTES);
  readonly #weightOf: (state: number) => number;
  readonly #first: number;
  #newest: number;
  #state: number;

  /** `weightOf`: how bad a state is. */
  constructor(minute: number, state: number, weightOf: (state: number) => number) {
    this.#weightOf = weightOf;
    this.#first = minute;
    this.#newest = minute;
    this.#state = state;
    this.#cells[minute % TIMELINE_MINUTES] = state;
  }

  /** The state from this minute on; one before the newest counts as of the newest. */
  note(minute: number, state: number): void {
    this.#fill(minute);
    const at = this.#newest % TIMELINE_MINUTES;
    const known = this.#cells[at] ?? 0;
    if (this.#weightOf(state) > this.#weightOf(known)) this.#cells[at] = state;
    this.#state = state;
  }

  /** The day up to this minute, without the minutes before the first note. */
  runs(now: number): readonly StateRun[] {
    const runs: { from: number; to: number; state: number }[] = [];
    for (let minute = Math.max(this.#first, now - TIMELINE_MINUTES + 1); minute <= now; minute++) {
      const state = this.at(minute);
      const last = runs.at(-1);
      if (last?.state === state) last.to = minute;
      else if (state !== 0) runs.push({ from: minute, to: minute, state });
    }
    return runs;
  }

  /** 0: it is not known. */
  at(minute: number): number {
    if (minute < this.#first || minute <= this.#newest - TIMELINE_MINUTES) return 0;
    return minute > this.#newest ? this.#state : (this.#cells[minute % TIMELINE_MINUTES] ?? 0);
  }

  #fill(minute: number): void {
    for (let m = Math.max(this.#newest + 1, minute - TIMELINE_MINUTES + 1); m <= minute; m++)
      this.#cells[m % TIMELINE_MINUTES] = this.#state;
    this.#newest = Math.max(this.#newest, minute);
  }
}
