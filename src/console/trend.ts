import type { BufferTrendAnswer, TrendAnswer } from "../service/page/told.ts";

export interface NamedTrend {
  readonly uuid: string;
  readonly name: string;
  readonly unit: string | null;
  readonly trend: TrendAnswer;
}

export type Column = (number | null | undefined)[];

/** Columns of a chart: epoch seconds, and for each variable its last, least and greatest value by step. Undefined: no gap, between two readouts. */
export interface ChartData {
  readonly seconds: number[];
  readonly columns: readonly { readonly last: Column; readonly min: Column; readonly max: Column }[];
}

type KeptTrend = Extract<TrendAnswer, { kept: true }>;

const begin = ({ from }: KeptTrend): number => Date.parse(from);

/** Lays several trends over one axis of time, in the shortest of their steps. Pure. */
export function chartData(trends: readonly NamedTrend[]): ChartData {
  const kept = trends.map(({ trend }) => (trend.kept ? trend : undefined));
  const known = kept.filter((trend) => trend !== undefined);
  const step = Math.min(...known.map((trend) => trend.step_ms));
  const from = Math.min(...known.map(begin));
  const end = Math.max(...known.map((trend) => begin(trend) + trend.last.length * trend.step_ms));
  const seconds = Array.from({ length: known.length === 0 ? 0 : Math.round((end - from) / step) }, (_, i) => (from + i * step) / 1000);
  const columns = kept.map((trend) => {
    const none: Column = seconds.map(() => null);
    if (!trend) return { last: none, min: none, max: none };
    const spans = trend.gaps.map(({ from: first, to }) => [Date.parse(first), Date.parse(to)] as const);
    const isGap = (at: number): boolean => spans.some(([first, to]) => first <= at && at < to);
    const laid = (figures: readonly (number | null)[]): Column =>
      seconds.map(
        (second) => figures[Math.floor((second * 1000 - begin(trend)) / trend.step_ms)] ?? (isGap(second * 1000) ? null : undefined),
      );
    return { last: laid(trend.last), min: laid(trend.min), max: laid(trend.max) };
  });
  return { seconds, columns };
}

/** The trend of an answer of the buffer. Pure. */
export function trendOfBuffer({ span, from, next_from: _, ...figures }: BufferTrendAnswer): TrendAnswer {
  if (span === null || from === null) return { kept: false, why_not: "the buffer is empty: all values were delivered" };
  if (figures.last.every((number) => number === null)) return { kept: false, why_not: "the buffer has no number of it" };
  return { kept: true, why_not: null, since: span.from, from, ...figures };
}

/** The answer with the one that goes on where it ended, in its own steps. Pure. */
export function joined(first: BufferTrendAnswer, next: BufferTrendAnswer): BufferTrendAnswer {
  const [from, nextFrom] = [Date.parse(first.from ?? ""), Date.parse(next.from ?? "")];
  const [min, max, last] = [[...first.min], [...first.max], [...first.last]];
  for (const [i, number] of next.last.entries()) {
    const step = Math.floor((nextFrom + i * next.step_ms - from) / first.step_ms);
    if (number === null || step < 0 || step >= last.length) continue;
    min[step] = Math.min(min[step] ?? Number.POSITIVE_INFINITY, next.min[i] ?? number);
    max[step] = Math.max(max[step] ?? Number.NEGATIVE_INFINITY, next.max[i] ?? number);
    last[step] = number;
  }
  return { ...first, min, max, last, gaps: [...first.gaps, ...next.gaps], next_from: next.next_from };
}
