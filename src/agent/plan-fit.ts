import type { Log } from "../model/context.ts";
import { formatDuration } from "../model/duration.ts";
import { countOf } from "../model/number.ts";
import { shellWord } from "../model/shell-word.ts";
import { ROOM } from "./plan-view.ts";
import type { Outcome } from "./readout.ts";

/** Readouts in a row that must say the same: one slow readout is no warning. */
const IN_A_ROW = 3;

/** True: a source's plan fits its interval. Where it does not, the values come less often than configured, and somebody has to be told. */
export class PlanFit {
  readonly #intervalMs: number;
  readonly #log: Log;
  /** The source in a command. */
  readonly #source: string;
  #over = 0;
  #under = 0;
  #warning: string | undefined;
  /** Readouts in a row that take longer than the interval, and that do not, whoever has the device meanwhile; the longest of them. */
  #long = 0;
  #short = 0;
  #longestMs = 0;
  #isLong = false;

  /** `source`: its name. */
  constructor(intervalMs: number, source: string, log: Log) {
    this.#intervalMs = intervalMs;
    this.#source = shellWord(source, "SOURCE");
    this.#log = log;
  }

  /** One sentence with the interval that would do; undefined: it fits. */
  get warning(): string | undefined {
    return this.#warning;
  }

  /** By how much values are younger than the time of their readout, where that is more than an interval; undefined: it is not. */
  get youngerWarning(): string | undefined {
    if (!this.#isLong) return undefined;
    const span = formatDuration(Math.round(this.#longestMs));
    return `values are up to ${span} younger than their ts: a readout takes that long, with the turns of other data sources on the device, and the interval is ${formatDuration(this.#intervalMs)}; span_ms says it of each readout, \`collector plan ${this.#source}\` shows the requests`;
  }

  /** After a readout that was answered; `planned`: requests of its plan. */
  watch({ unreached, spanMs, requests, passedMs = 0 }: Outcome, planned: number): void {
    this.#watchSpan(spanMs);
    const ownMs = Math.max(0, spanMs - passedMs);
    const isOver = requests > 0 && (unreached > 0 || ownMs > this.#intervalMs);
    this.#over = isOver ? this.#over + 1 : 0;
    this.#under = isOver ? 0 : this.#under + 1;
    if (this.#over >= IN_A_ROW) this.#warn(unreached, ownMs / requests, planned);
    else if (this.#under >= IN_A_ROW && this.#warning !== undefined) {
      this.#warning = undefined;
      this.#log.info({}, "the plan fits the interval again");
    }
  }

  #watchSpan(spanMs: number): void {
    const isLong = spanMs > this.#intervalMs;
    this.#long = isLong ? this.#long + 1 : 0;
    this.#short = isLong ? 0 : this.#short + 1;
    if (this.#short >= IN_A_ROW) this.#isLong = false;
    if (this.#long >= IN_A_ROW) this.#isLong = true;
    // The longest of those in a row: a span that changes a little is no other warning.
    if (this.#long === 0) this.#longestMs = this.#isLong ? this.#longestMs : 0;
    else this.#longestMs = Math.max(spanMs, this.#longestMs);
  }

  #warn(unreached: number, eachMs: number, planned: number): void {
    const neededMs = planned * eachMs;
    const fits = Math.ceil((neededMs * ROOM) / 1000);
    const missed =
      unreached > 0
        ? `; ${countOf(unreached, "variable")} ${unreached === 1 ? "was" : "were"} not reached in the last readout, the next one continues there`
        : "";
    const isFirst = this.#warning === undefined;
    this.#warning = `the plan does not fit its interval: ${countOf(planned, "request")} of ${formatDuration(Math.max(1, Math.round(eachMs)))} take ${formatDuration(Math.round(neededMs))}, the interval is ${formatDuration(this.#intervalMs)}${missed}; an interval of ${fits} s would do (\`collector source set ${this.#source} --interval ${fits}s\`); \`collector plan ${this.#source}\` shows the requests`;
    if (isFirst) this.#log.warn({}, this.#warning);
  }
}
