import { expect, it } from "vitest";
import type { BufferTrendAnswer, TrendAnswer } from "../service/page/told.ts";
import { chartData, joined, trendOfBuffer } from "./trend.ts";

const at = (minute: number): string => new Date(Date.parse("2026-11-20T09:00:00Z") + minute * 60_000).toISOString();
const WHY = { reason: "NOT_KEPT", words: "x" };
const answer = (more: Partial<BufferTrendAnswer>): BufferTrendAnswer => ({
  span: { from: at(0), to: at(6) },
  step_ms: 120_000,
  from: at(0),
  min: [],
  max: [],
  last: [],
  gaps: [],
  next_from: null,
  ...more,
});
const named = (trend: TrendAnswer) => ({ uuid: "v", name: "v", unit: null, trend });

it("joins the answers of the buffer in the steps of the first, with the gaps of both", () => {
  const first = answer({ min: [1, 2, null, null], max: [3, 3, null, null], last: [2, 3, null, null], next_from: at(3) });
  const gaps = [{ from: at(4), to: at(6), ...WHY }];
  const next = answer({ step_ms: 60_000, from: at(3), min: [1, null, null, 7], max: [9, null, null, 8], last: [4, null, null, 8], gaps });
  const whole = joined(first, next);
  expect(whole).toMatchObject({ min: [1, 1, null, 7], max: [3, 9, null, 8], last: [2, 4, null, 8], gaps, next_from: null });
});

it("lays trends of different steps over one axis; a gap breaks the line, a minute between two readouts does not", () => {
  const buffered = trendOfBuffer(
    answer({ min: [1, null, 3], max: [1, null, 3], last: [1, null, 3], gaps: [{ from: at(2), to: at(4), ...WHY }] }),
  );
  const minutes = trendOfBuffer(answer({ step_ms: 60_000, from: at(1), min: [5, null, 6], max: [5, null, 6], last: [5, null, 6] }));
  const { seconds, columns } = chartData([named(buffered), named({ kept: false, why_not: "no" }), named(minutes)]);
  expect(seconds).toHaveLength(6);
  expect(columns.map(({ last }) => last)).toEqual([
    [1, 1, null, null, 3, 3],
    [null, null, null, null, null, null],
    [undefined, 5, undefined, 6, undefined, undefined],
  ]);
});

it("says why the buffer has no trend", () => {
  expect(trendOfBuffer(answer({ span: null, from: null }))).toMatchObject({ kept: false, why_not: expect.stringContaining("empty") });
  expect(trendOfBuffer(answer({ last: [null, null] }))).toMatchObject({ kept: false, why_not: expect.stringContaining("no number") });
  expect(chartData([])).toEqual({ seconds: [], columns: [] });
});
