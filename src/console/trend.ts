import type { TrendAnswer } from "../service/page/told.ts";

export interface NamedTrend {
  readonly uuid: string;
  readonly name: string;
  readonly unit: string | null;
  readonly trend: TrendAnswer;
}

export type Column = (number | null | undefined)[];

/** Columns of a chart: epoch seconds, and for each variable its last, least and greatest value by minute. Undefined: no gap, between two readouts. */
export interface ChartData {
  readonly seconds: number[];
  readonly columns: readonly { readonly last: Column; readonly min: Column; readonly max: Column }[];
}

/** Lays several trends over one axis of time. Pure. */
export function chartData(trends: readonly NamedTrend[]): ChartData {
  const kept = trends.map(({ trend }) => (trend.kept ? trend : undefined));
  const begins = kept.flatMap((trend) => (trend ? [Date.parse(trend.from)] : []));
  const ends = kept.flatMap((trend) => (trend ? [Date.parse(trend.from) + trend.last.length * trend.step_ms] : []));
  const step = kept.find((trend) => trend)?.step_ms ?? 60_000;
  const from = Math.min(...begins);
  const count = begins.length === 0 ? 0 : Math.round((Math.max(...ends) - from) / step);
  const seconds = Array.from({ length: count }, (_, minute) => (from + minute * step) / 1000);
  const columns = kept.map((trend) => {
    if (!trend) return { last: seconds.map(() => null), min: seconds.map(() => null), max: seconds.map(() => null) };
    const shift = Math.round((Date.parse(trend.from) - from) / step);
    const spans = trend.gaps.map(({ from: begin, to }) => [Date.parse(begin), Date.parse(to)] as const);
    const isGap = (minute: number): boolean => {
      const at = from + minute * step;
      return spans.some(([begin, end]) => begin <= at && at < end);
    };
    const laid = (figures: readonly (number | null)[]): Column =>
      seconds.map((_, minute) => figures[minute - shift] ?? (isGap(minute) ? null : undefined));
    return { last: laid(trend.last), min: laid(trend.min), max: laid(trend.max) };
  });
  return { seconds, columns };
}
