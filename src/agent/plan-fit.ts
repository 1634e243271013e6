import { formatDuration } from "../base/duration.ts";
import { countOf } from "../base/number.ts";
import { shellWord } from "../base/shell-word.ts";
import type { Log } from "../model/context.ts";
import { type Warning, warning } from "../model/warning.ts";
import { ROOM } from "./plan-view.ts";
import type { Outcome } from "./readout.ts";

/** Readouts in a row that must say the same: one slow readout is no warning. */
const IN_A_ROW = 3;
/** Readouts in a row of which the longest is named: long beside a disturbance, and short beside a shift. */
const SPANS = 60;

/** True: a source's plan fits its interval. Where it does not, the values come less often than configured, and somebody has to be told. */
export class PlanFit {
  readonly #intervalMs: number;
  readonly #log: Log;
  /** The source in a command. */
  readonly #source: string;
  #over = 0;
  #under = 0;
  #warning: Warning | undefined;
  /** Readouts in a row that take longer than the interval, and that do not, whoever has the device meanwhile. */
  #long = 0;
  #short = 0;
  #isLong = false;
  /** The longest of the last ones that do, and of those that will be the last ones; in one of them, others had their turn. */
  #longest: Span = NO_SPAN;
  #next: Span = NO_SPAN;

  /** `source`: its name. */
  constructor(intervalMs: number, source: string, log: Log) {
    this.#intervalMs = intervalMs;
    this.#source = shellWord(source, "SOURCE");
    this.#log = log;
  }

  /** One sentence with the interval that would do; undefined: it fits. */
  get warning(): Warning | undefined {
    return this.#warning;
  }

  /** By how much values are younger than the time of their readout, where that is more than an interval; undefined: it is not. */
  get youngerWarning(): Warning | undefined {
    if (!this.#isLong) return undefined;
    const { ms, isShared } = this.#longest;
    const span = formatDuration(Math.round(ms));
    const withOthers = isShared ? ", with the turns of other data sources on the device" : "";
    const text = `values are up to ${span} younger than their ts: a readout takes that long${withOthers}, and the interval is ${formatDuration(this.#intervalMs)}; span_ms says it of each readout, \`collector plan ${this.#source}\` shows the requests`;
    return warning("values_younger", text);
  }

  /** After a readout that was answered; `planned`: requests of its plan. */
  watch({ unreached, spanMs, requests, passedMs = 0 }: Outcome, planned: number): void {
    this.#watchSpan(spanMs, passedMs > 0);
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

  #watchSpan(spanMs: number, isShared: boolean): void {
    const isLong = spanMs > this.#intervalMs;
    this.#long = isLong ? this.#long + 1 : 0;
    this.#short = isLong ? 0 : this.#short + 1;
    if (this.#short >= IN_A_ROW) this.#isLong = false;
    if (this.#long >= IN_A_ROW) this.#isLong = true;
    if (!this.#isLong && this.#long === 0) [this.#longest, this.#next] = [NO_SPAN, NO_SPAN];
    if (!isLong) return;
    // The longest of many: a span that changes a little is no other warning, and one that has become shorter is after a while.
    const isWhole = this.#long % SPANS === 0;
    this.#next = longerOf(this.#next, { ms: spanMs, isShared });
    this.#longest = isWhole ? this.#next : longerOf(this.#longest, this.#next);
    if (isWhole) this.#next = NO_SPAN;
  }

  #warn(unreached: number, eachMs: number, planned: number): void {
    const neededMs = planned * eachMs;
    const fits = Math.ceil((neededMs * ROOM) / 1000);
    const missed =
      unreached > 0
        ? `; ${countOf(unreached, "variable")} ${unreached === 1 ? "was" : "were"} not reached in the last readout, the next one continues there`
        : "";
    const isFirst = this.#warning === undefined;
    const text = `the plan does not fit its interval: ${countOf(planned, "request")} of ${formatDuration(Math.max(1, Math.round(eachMs)))} take ${formatDuration(Math.round(neededMs))}, the interval is ${formatDuration(this.#intervalMs)}${missed}; an interval of ${fits} s would do (\`collector source set ${this.#source} --interval ${fits}s\`); \`collector plan ${this.#source}\` shows the requests`;
    this.#warning = warning("plan_exceeds_interval", text);
    if (isFirst) this.#log.warn({}, text);
  }
}

interface Span {
  readonly ms: number;
  readonly isShared: boolean;
}

const NO_SPAN: Span = { ms: 0, isShared: false };

const longerOf = (one: Span, other: Span): Span => ({ ms: Math.max(one.ms, other.ms), isShared: one.isShared || other.isShared });
