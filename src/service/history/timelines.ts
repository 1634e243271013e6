import type { ReportedError } from "../../model/report.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { errorWords } from "../words/state-words.ts";
import { MinuteStates } from "./minute-states.ts";

/** A state of a source or sink, without what differs each time. */
export interface TimelineState {
  readonly state: "OK" | "ERROR" | "UNKNOWN" | "CONNECTING" | "STOPPED";
  /** Reason or condition of an ERROR, in a word. */
  readonly reason: string | null;
  /** A sentence for it. */
  readonly words: string | null;
}

export interface TimelineRun extends TimelineState {
  /** Minutes, both included. */
  readonly from: number;
  readonly to: number;
}

/** How bad a state is: the worst of a minute is shown. */
const WEIGHTS: Readonly<Record<TimelineState["state"], number>> = { OK: 1, CONNECTING: 2, UNKNOWN: 3, STOPPED: 4, ERROR: 5 };
/** A byte holds the number of a state; with more different ones the reason is left out. */
const MAX_STATES = 256;
const UNKNOWN: TimelineState = { state: "UNKNOWN", reason: null, words: null };
const PLAIN: readonly TimelineState[] = (["UNKNOWN", "OK", "ERROR", "CONNECTING", "STOPPED"] as const).map((state) => ({
  state,
  reason: null,
  words: null,
}));

export const stateOf = (state: TimelineState["state"], error: Pick<ReportedError, "reason" | "condition"> | null): TimelineState =>
  state === "ERROR" && error
    ? { state, reason: errorWords(error), words: explainReason(error.reason, error.condition).sentence }
    : { state, reason: null, words: null };

/** The states of all sources or sinks over a day, by the minute: 1,440 bytes each. */
export class Timelines {
  /** The place is the number of a state; 0 stands for a minute of which nothing is known. */
  readonly #states: TimelineState[] = [UNKNOWN, ...PLAIN];
  readonly #numbers = new Map<string, number>();
  readonly #minutes = new Map<string, MinuteStates>();

  /** The state from this minute on. */
  note(uuid: string, minute: number, state: TimelineState): void {
    const number = this.#numberOf(state);
    const known = this.#minutes.get(uuid);
    if (known) known.note(minute, number);
    else this.#minutes.set(uuid, new MinuteStates(minute, number, (one) => WEIGHTS[this.#stateOf(one).state]));
  }

  /** Those with other uuids were removed. */
  keep(uuids: ReadonlySet<string>): void {
    for (const uuid of this.#minutes.keys()) if (!uuids.has(uuid)) this.#minutes.delete(uuid);
  }

  /** The day up to this minute, the oldest first; undefined: it is not known. */
  runs(uuid: string, minute: number): readonly TimelineRun[] | undefined {
    return this.#minutes
      .get(uuid)
      ?.runs(minute)
      .map(({ from, to, state }) => ({ from, to, ...this.#stateOf(state) }));
  }

  #stateOf(number: number): TimelineState {
    return this.#states[number] ?? UNKNOWN;
  }

  #numberOf(state: TimelineState): number {
    const key = JSON.stringify(state);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (state.reason === null || this.#states.length >= MAX_STATES) return PLAIN.findIndex((plain) => plain.state === state.state) + 1;
    this.#numbers.set(key, this.#states.length);
    return this.#states.push(state) - 1;
  }
}
