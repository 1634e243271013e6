import { shortFloat32 } from "../../base/number.ts";
import { FAULTS } from "../../model/fault.ts";
import { explainFault } from "../../model/words/fault-catalogue.ts";
import type { BufferTrend } from "../history/buffer-trend.ts";
import type { StateSpan, TrendData } from "../history/history.ts";
import { MINUTE_MS } from "../history/minute-states.ts";
import type { TrendLack } from "../history/trends.ts";
import type { BufferTrendAnswer, TrendAnswer, TrendGap } from "./told.ts";

interface Why {
  readonly reason: string;
  readonly words: string;
}

/** A readout may be this late, in intervals, before the minutes up to it are a gap. */
const LATE_INTERVALS = 2;
const NOT_KNOWN: Why = {
  reason: "NOT_KNOWN",
  words: "Nothing was gathered then: the collector did not run, or did not keep this variable yet.",
};
const NOT_READ: Why = { reason: "NOT_READ", words: "The variable was not read." };

const LACKS: Readonly<Record<TrendLack, (maxBytes: number) => string>> = {
  none: () => "the data source has no such variable, or was not read yet",
  no_trend: () => "only numbers and truth values have a trend, no texts and lists",
  no_room: (maxBytes) =>
    `page.trends.max_bytes (${Math.floor(maxBytes / 2 ** 20)} MiB) has no room left for it; it is kept from now on, unless the variables of page.trends.variables need all of it`,
  off: () => "page.trends.max_bytes is too small for a trend",
};

/** `intervalMs`: between two readouts of the source. Pure. */
export function trendAnswer({ found, fromMs, sinceMs, states, maxBytes }: TrendData, intervalMs: number): TrendAnswer {
  if (!found.isKept) return { kept: false, why_not: LACKS[found.why](maxBytes) };
  const { min, max, last, faults } = found.figures;
  const timeOf = (minute: number): number => fromMs + minute * MINUTE_MS;
  const gaps: TrendGap[] = [];
  const betweenReadouts = Math.floor((LATE_INTERVALS * intervalMs) / MINUTE_MS);
  for (let begin = 0; begin < min.length; begin++) {
    if (!Number.isNaN(min[begin])) continue;
    let end = begin;
    while (end < min.length && Number.isNaN(min[end])) end++;
    // The minute of now has just begun perhaps.
    const wholeMinutes = end - begin - (end === min.length ? 1 : 0);
    for (const gap of gapsIn({ begin, end, faults, states, sinceMs, timeOf }))
      if (gap.why !== NOT_READ || wholeMinutes > betweenReadouts)
        gaps.push({ from: iso(timeOf(gap.begin)), to: iso(timeOf(gap.end)), ...gap.why });
    begin = end;
  }
  return {
    kept: true,
    why_not: null,
    since: sinceMs === null ? null : iso(sinceMs),
    step_ms: MINUTE_MS,
    from: iso(fromMs),
    min: numbersOf(min),
    max: numbersOf(max),
    last: numbersOf(last),
    gaps,
  };
}

const NOT_KEPT: Why = {
  reason: "NOT_KEPT",
  words: "The buffer has nothing of it: it was delivered or dropped, was not read, was bad, or stayed as it was.",
};

/** `intervalMs`: between two readouts of the source. Pure. */
export function bufferTrendAnswer(found: BufferTrend | undefined, intervalMs: number): BufferTrendAnswer {
  if (!found) return { span: null, step_ms: MINUTE_MS, from: null, min: [], max: [], last: [], gaps: [], next_from: null };
  const { span, stepMs, fromMs, figures, nextMs } = found;
  return {
    span: { from: iso(span.fromMs), to: iso(span.toMs) },
    step_ms: stepMs,
    from: iso(fromMs),
    min: numbersOf(figures.min),
    max: numbersOf(figures.max),
    last: numbersOf(figures.last),
    gaps: bufferGaps(found, LATE_INTERVALS * intervalMs),
    next_from: nextMs === undefined ? null : iso(nextMs),
  };
}

/** Stretches without a number that are longer than two readouts lie apart, as far as it was read. */
function bufferGaps({ figures: { min }, fromMs, stepMs, nextMs }: BufferTrend, apartMs: number): readonly TrendGap[] {
  const count = nextMs === undefined ? min.length : Math.floor((nextMs - fromMs) / stepMs);
  const gaps: TrendGap[] = [];
  for (let begin = 0; begin < count; begin++) {
    if (!Number.isNaN(min[begin])) continue;
    let end = begin;
    while (end < count && Number.isNaN(min[end])) end++;
    if ((end - begin) * stepMs > apartMs) gaps.push({ from: iso(fromMs + begin * stepMs), to: iso(fromMs + end * stepMs), ...NOT_KEPT });
    begin = end;
  }
  return gaps;
}

interface Stretch {
  /** Minutes of the answer; the end is not included. */
  readonly begin: number;
  readonly end: number;
  readonly faults: Uint8Array;
  readonly states: readonly StateSpan[];
  readonly sinceMs: number | null;
  readonly timeOf: (minute: number) => number;
}

/** The stretch divided where the reason is another. */
function gapsIn({ begin, end, faults, states, sinceMs, timeOf }: Stretch): readonly { begin: number; end: number; readonly why: Why }[] {
  const gaps: { begin: number; end: number; why: Why }[] = [];
  let place = 0;
  for (let minute = begin; minute < end; minute++) {
    while ((states[place + 1]?.fromMs ?? Number.POSITIVE_INFINITY) <= timeOf(minute)) place++;
    const isBefore = sinceMs === null || timeOf(minute) < sinceMs;
    const why = whyOf(faults[minute] ?? 0, stateAt(states[place], timeOf(minute)), isBefore);
    const last = gaps.at(-1);
    if (last?.why.reason === why.reason) last.end = minute + 1;
    else gaps.push({ begin: minute, end: minute + 1, why });
  }
  return gaps;
}

const stateAt = (span: StateSpan | undefined, atMs: number): StateSpan | undefined =>
  span && span.fromMs <= atMs && atMs < span.toMs ? span : undefined;

function whyOf(fault: number, state: StateSpan | undefined, isBefore: boolean): Why {
  const name = FAULTS[fault - 1];
  if (name !== undefined) return { reason: name, words: explainFault(name).sentence };
  if (state?.state === "ERROR") return { reason: state.reason ?? "ERROR_UNKNOWN", words: state.words ?? "The data source failed." };
  return isBefore || state === undefined ? NOT_KNOWN : NOT_READ;
}

const numbersOf = (figures: Float32Array): readonly (number | null)[] =>
  Array.from(figures, (number) => (Number.isNaN(number) ? null : shortFloat32(number)));

const iso = (ms: number): string => new Date(ms).toISOString();
