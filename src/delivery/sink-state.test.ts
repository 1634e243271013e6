import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import { createStanding, type Standing } from "./sink-state.ts";

let said: (readonly [level: string, detail: unknown, message: string])[];
let standing: Standing;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "Date"] });
  said = [];
  const at = (level: string) => (fields: object, message: string) =>
    void said.push([level, "detail" in fields ? fields.detail : undefined, message]);
  const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  standing = createStanding("broker:1883", log, () => {});
});
afterEach(() => void vi.useRealTimers());

const closed = new ReasonError("CONNECTION_CLOSED", "the broker closed the connection");
const silent = new ReasonError("TIMEOUT", "the broker does not answer");

test("each change is said once; the next try moves without a word", () => {
  standing.opened();
  standing.lost(silent, 1000);
  const first = standing.report();
  vi.advanceTimersByTime(5000);
  standing.lost(silent, 2000);
  standing.lost(silent, 4000, { hint: "another client" });
  standing.opened();
  standing.stopped();
  standing.stopped();
  expect(said.map(([level, detail]) => [level, detail])).toEqual([
    ["info", undefined],
    ["warn", "the broker does not answer"],
    ["warn", "the broker does not answer; another client"],
    ["info", undefined],
    ["info", undefined],
  ]);
  expect(first).toMatchObject({ state: "ERROR", error: { reason: { type: "TIMEOUT" }, condition: null } });
  expect(Date.parse(first.next_retry_at ?? "") - Date.parse(first.since)).toBe(1000);
  expect(standing.report()).toMatchObject({ state: "STOPPED", error: null, next_retry_at: null });
});

test("a refusal is said once, in data-loss words, and over a minute after the last one", () => {
  standing.opened();
  standing.wrote(4, "not authorized");
  vi.advanceTimersByTime(50_000);
  standing.wrote(4, "too large");
  vi.advanceTimersByTime(50_000);
  standing.wrote(0, undefined);
  expect(standing.report()).toMatchObject({ state: "ERROR", error: { detail: "not authorized" } });
  vi.advanceTimersByTime(10_001);
  standing.wrote(0, undefined);
  expect(standing.report()).toMatchObject({ state: "OK", error: null });
  expect(said).toEqual([
    ["info", undefined, "the sink is connected"],
    ["error", "not authorized", "the sink refuses values; they are dropped and counted"],
    ["info", undefined, "the sink is connected"],
  ]);
});

test("a close right after a refusal does not hide it; a later one, and one of a later opening, has nothing to do with it", () => {
  standing.opened();
  standing.wrote(1, "not authorized");
  vi.advanceTimersByTime(100);
  standing.lost(closed, 1000);
  expect(standing.report().error?.detail).toBe("the broker closed the connection; right after this: not authorized");
  standing.opened();
  standing.lost(closed, 1000);
  expect(standing.report().error?.detail).toBe("the broker closed the connection");
  standing.opened();
  standing.wrote(1, "not authorized");
  vi.advanceTimersByTime(2001);
  standing.lost(closed, 1000);
  expect(standing.report().error?.detail).toBe("the broker closed the connection");
  standing.opened();
  standing.wrote(1, "not authorized");
  standing.lost(silent, 1000);
  expect(standing.report().error?.detail).toBe("the broker does not answer");
});

test("what is dropped is a line each, ten a minute, and is shown over openings for a minute", () => {
  standing.opened();
  for (let i = 1; i <= 12; i++) standing.dropped(1, `dropped ${i}`);
  const errors = () => said.filter(([level]) => level === "error").map(([, detail]) => detail);
  expect(errors()).toEqual(Array.from({ length: 10 }, (_, i) => `dropped ${i + 1}`));
  standing.lost(closed, 1000, { isIsolating: true });
  expect(standing.report()).toMatchObject({ state: "ERROR", error: { detail: "the broker closed the connection" } });
  standing.opened();
  expect(standing.report()).toMatchObject({ state: "ERROR", error: { detail: "dropped 12" } });
  vi.advanceTimersByTime(60_001);
  standing.wrote(0, undefined);
  expect(standing.report()).toMatchObject({ state: "OK", error: null });
  standing.dropped(1, "dropped 13");
  expect(errors()).toHaveLength(11);
});

test("what is kept to be tried again is shown while it is, and said once over all the openings that it costs", () => {
  standing.opened();
  standing.keeping("the broker refuses a publish");
  for (let openings = 0; openings < 5; openings++) {
    expect(standing.report()).toMatchObject({ state: "ERROR", error: { detail: "the broker refuses a publish" } });
    standing.lost(closed, 1000, { isIsolating: true });
    standing.opened();
    standing.keeping("the broker refuses a publish");
  }
  standing.keeping(undefined);
  expect(standing.report()).toMatchObject({ state: "OK", error: null });
  expect(said.filter(([level]) => level !== "debug").map(([level]) => level)).toEqual(["info", "warn", "info"]);
});
