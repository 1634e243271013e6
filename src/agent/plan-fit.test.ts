import { expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import { PlanFit } from "./plan-fit.ts";
import type { Outcome } from "./readout.ts";

const outcome = (change: Partial<Outcome>): Outcome => ({
  time: 0,
  spanMs: 0,
  bootTimeMs: 0,
  readings: [],
  failure: undefined,
  definite: true,
  restMs: 0,
  unreached: 0,
  requests: 76,
  waitedMs: 0,
  ...change,
});

it("warns of a plan that does not fit once, with the interval that would do, and says when it fits again", () => {
  const lines: string[] = [];
  const take = (_: object, message: string) => void lines.push(message);
  const fit = new PlanFit(1000, "press-1", { ...silentLog, warn: take, info: take });
  for (let i = 0; i < 2; i++) fit.watch(outcome({ spanMs: 10_000, requests: 50, unreached: 2600 }), 76);
  expect(fit.warning).toBeUndefined();
  for (let i = 0; i < 3; i++) fit.watch(outcome({ spanMs: 10_000, requests: 50, unreached: 2600 }), 76);
  expect(fit.warning?.text).toBe(
    "the plan does not fit its interval: 76 requests of 200 ms take 15.2 s, the interval is 1 s; 2600 variables were not reached in the last readout, the next one continues there; an interval of 19 s would do (`collector source set press-1 --interval 19s`); `collector plan press-1` shows the requests",
  );
  fit.watch(outcome({ spanMs: 900 }), 76);
  expect(fit.warning).toBeDefined();
  for (let i = 0; i < 2; i++) fit.watch(outcome({ spanMs: 900 }), 76);
  expect(fit.warning).toBeUndefined();
  expect(lines).toEqual([expect.stringContaining("an interval of 19 s would do"), "the plan fits the interval again"]);
});

it("takes one slow readout for what it is", () => {
  const fit = new PlanFit(1000, "press 1", silentLog);
  for (let i = 0; i < 9; i++) fit.watch(outcome({ spanMs: i % 3 === 0 ? 5000 : 10 }), 76);
  expect(fit.warning).toBeUndefined();
});

it("says by how much values are younger than their time, once several readouts in a row take longer than the interval", () => {
  const fit = new PlanFit(1000, "press-1", silentLog);
  const watch = (spanMs: number) => fit.watch(outcome({ spanMs, passedMs: Math.max(0, spanMs - 100) }), 76);
  for (const spanMs of [1500, 8200]) watch(spanMs);
  expect(fit.youngerWarning).toBeUndefined();
  watch(3000);
  expect(fit.youngerWarning?.text).toMatch(
    /^values are up to 8\.2 s younger than their ts: .* the interval is 1 s; .*`collector plan press-1`/,
  );
  expect(fit.warning).toBeUndefined();
  for (const spanMs of [100, 2000, 100, 100]) watch(spanMs);
  expect(fit.youngerWarning?.text).toContain(
    "8.2 s younger than their ts: a readout takes that long, with the turns of other data sources",
  );
  watch(100);
  expect(fit.youngerWarning).toBeUndefined();
});

it("names the longest of the last readouts, and no turns of others where there are none", () => {
  const fit = new PlanFit(1000, "press-1", silentLog);
  fit.watch(outcome({ spanMs: 9000 }), 76);
  for (let i = 0; i < 59; i++) fit.watch(outcome({ spanMs: 1500 }), 76);
  expect(fit.youngerWarning?.text).toMatch(
    /^values are up to 9 s younger than their ts: a readout takes that long, and the interval is 1 s/,
  );
  for (let i = 0; i < 60; i++) fit.watch(outcome({ spanMs: 1500 }), 76);
  expect(fit.youngerWarning?.text).toContain("up to 1.5 s");
});
