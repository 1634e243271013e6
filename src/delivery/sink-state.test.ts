import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import { SinkState } from "./sink-state.ts";

/** By the faked times: the wall clock is the one that can be set. */
const clock: Clock = { monotonicMs: () => performance.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 };
const PRESS = "press-1";
const MILL = "mill-1";
let logged: (readonly [level: string, detail: unknown, message: string])[];
let state: SinkState;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "Date", "setTimeout", "clearTimeout"] });
  logged = [];
  const at = (level: string) => (fields: object, message: string) =>
    void logged.push([level, "detail" in fields ? fields.detail : undefined, message]);
  const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  state = new SinkState({ endpoint: "broker:1883", sinkType: "mqtt" }, log, () => {}, clock);
});
afterEach(() => void vi.useRealTimers());

const closed = new ReasonError("CONNECTION_CLOSED", "the broker closed the connection");
const silent = new ReasonError("TIMEOUT", "the broker does not answer");

test("logs each change once; a later next try is not logged", () => {
  state.opened();
  state.lost(silent, 1000);
  const first = state.report();
  vi.advanceTimersByTime(5000);
  state.lost(silent, 2000);
  state.lost(silent, 4000, { hint: "another client" });
  state.opened();
  state.stopped();
  state.stopped();
  expect(logged.map(([level, detail]) => [level, detail])).toEqual([
    ["info", undefined],
    ["warn", "the broker does not answer"],
    ["warn", "the broker does not answer; another client"],
    ["info", undefined],
    ["info", undefined],
  ]);
  expect(first).toMatchObject({ state: "ERROR", error: { reason: { type: "TIMEOUT" }, condition: null } });
  expect(Date.parse(first.next_retry_at ?? "") - Date.parse(first.since)).toBe(1000);
  expect(state.report()).toMatchObject({ state: "STOPPED", error: null, next_retry_at: null });
});

test("an outage is logged once for each cause, whatever the system call says and however the causes alternate", () => {
  const reset = (call: string) => new ReasonError("CONNECTION_RESET", `${call} ECONNRESET`);
  const refused = new ReasonError("CONNECTION_REFUSED", "connect ECONNREFUSED 10.0.0.9:1883");
  state.opened();
  state.lost(reset("read"), 1000);
  const { since } = state.report();
  vi.advanceTimersByTime(5000);
  state.lost(reset("write"), 1000);
  expect(state.report()).toMatchObject({ since, error: { detail: "write ECONNRESET" } });
  for (let n = 0; n < 5; n++) {
    vi.advanceTimersByTime(5000);
    state.lost(n % 2 === 0 ? refused : reset("connect"), 1000);
  }
  const warned = () => logged.flatMap(([level, detail]) => (level === "warn" ? [detail] : []));
  expect(warned()).toEqual(["read ECONNRESET", "connect ECONNREFUSED 10.0.0.9:1883"]);
  state.opened();
  state.lost(reset("read"), 1000);
  expect(warned()).toHaveLength(3);
});

test.each([
  ["forward", 20_783 * 86_400_000],
  ["back", -7_200_000],
])("a clock that is set %s moves the times of the state along", (_, byMs) => {
  state.lost(silent, 10_000);
  vi.advanceTimersByTime(5000);
  vi.setSystemTime(Date.now() + byMs);
  const { since, next_retry_at: retryAt } = state.report();
  expect(Date.now() - Date.parse(since)).toBe(5000);
  expect(Date.parse(retryAt ?? "") - Date.now()).toBe(5000);
});

test("a broker's outage is explained in a broker's words", () => {
  const steps: unknown[] = [];
  const warn = (fields: object) => void steps.push("nextStep" in fields ? fields.nextStep : undefined);
  const silentLog = { debug: () => {}, info: () => {}, warn, error: () => {} };
  new SinkState({ endpoint: "broker:1883", sinkType: "mqtt" }, silentLog, () => {}, clock).lost(closed, 1000);
  expect(steps).toEqual([expect.stringContaining("talk to the broker")]);
});

test("a refusal is logged once, in data-loss words, and over a minute after the last one", () => {
  state.opened();
  state.wrote(PRESS, 4, "not authorized");
  vi.advanceTimersByTime(50_000);
  state.wrote(PRESS, 4, "too large");
  vi.advanceTimersByTime(50_000);
  state.wrote(PRESS, 0, undefined);
  expect(state.report()).toMatchObject({ state: "ERROR", error: { detail: "not authorized" } });
  vi.advanceTimersByTime(10_001);
  state.wrote(PRESS, 0, undefined);
  expect(state.report()).toMatchObject({ state: "OK", error: null });
  expect(logged).toEqual([
    ["info", undefined, "the sink is connected"],
    ["error", "not authorized", "the sink refuses values; they are dropped and counted"],
    ["info", undefined, "the sink is connected"],
  ]);
});

test("a close right after a refusal does not hide it; a later one, and one of a later opening, has nothing to do with it", () => {
  state.opened();
  state.wrote(PRESS, 1, "not authorized");
  vi.advanceTimersByTime(100);
  state.lost(closed, 1000);
  expect(state.report().error?.detail).toBe("the broker closed the connection; right after this: not authorized");
  state.opened();
  state.lost(closed, 1000);
  expect(state.report().error?.detail).toBe("the broker closed the connection");
  state.opened();
  state.wrote(PRESS, 1, "not authorized");
  vi.advanceTimersByTime(2001);
  state.lost(closed, 1000);
  expect(state.report().error?.detail).toBe("the broker closed the connection");
  state.opened();
  state.wrote(PRESS, 1, "not authorized");
  state.lost(silent, 1000);
  expect(state.report().error?.detail).toBe("the broker does not answer");
});

test("what is dropped is a line each, ten a minute, and is shown over openings for a minute", () => {
  state.opened();
  for (let i = 1; i <= 12; i++) state.dropped(1, `dropped ${i}`);
  const errors = () => logged.filter(([level]) => level === "error").map(([, detail]) => detail);
  expect(errors()).toEqual(Array.from({ length: 10 }, (_, i) => `dropped ${i + 1}`));
  state.lost(closed, 1000, { isIsolating: true });
  expect(state.report()).toMatchObject({ state: "ERROR", error: { detail: "the broker closed the connection" } });
  state.opened();
  expect(state.report()).toMatchObject({ state: "ERROR", error: { detail: "dropped 12" } });
  vi.advanceTimersByTime(60_001);
  state.wrote(PRESS, 0, undefined);
  expect(state.report()).toMatchObject({ state: "OK", error: null });
  state.dropped(1, "dropped 13");
  expect(errors()).toHaveLength(11);
});

test("what is kept to be tried again is shown while it is, and logged once over all the openings that it costs", () => {
  state.opened();
  state.keeping("the broker refuses a publish");
  for (let openings = 0; openings < 5; openings++) {
    expect(state.report()).toMatchObject({ state: "ERROR", error: { detail: "the broker refuses a publish" } });
    state.lost(closed, 1000, { isIsolating: true });
    state.opened();
    state.keeping("the broker refuses a publish");
  }
  state.keeping(undefined);
  expect(state.report()).toMatchObject({ state: "OK", error: null });
  expect(logged.filter(([level]) => level !== "debug").map(([level]) => level)).toEqual(["info", "warn", "info"]);
});

test("a refusal ends a minute after the last one without another write, and what never opens again leaves no timer", () => {
  state.opened();
  state.wrote(PRESS, 1, "not authorized");
  vi.advanceTimersByTime(30_000);
  state.wrote(PRESS, 1, "not authorized");
  state.dropped(1, "dropped");
  vi.advanceTimersByTime(59_999);
  expect(state.report().state).toBe("ERROR");
  vi.advanceTimersByTime(10);
  expect(state.report()).toMatchObject({ state: "OK", error: null });
  state.dropped(1, "dropped");
  state.stopped();
  expect(vi.getTimerCount()).toBe(0);
});

test("of several sources each heals by itself, and the state names one that does not", () => {
  state.opened();
  state.wrote(PRESS, 4, "no right to press-1");
  state.wrote(MILL, 4, "no right to mill-1");
  state.dropped(4, "press-1: held for long enough", PRESS);
  state.recovered(PRESS);
  expect(state.report()).toMatchObject({ state: "ERROR", error: { detail: "no right to mill-1" } });
  state.dropped(1, "poison");
  state.recovered(MILL);
  expect(state.report()).toMatchObject({ state: "ERROR", error: { detail: "poison" } });
  vi.advanceTimersByTime(60_010);
  expect(state.report()).toMatchObject({ state: "OK", error: null });
});

test("what is kept is named as it is now", () => {
  state.opened();
  state.keeping("no right to press-1");
  state.keeping("no right to mill-1");
  expect(state.report().error?.detail).toBe("no right to mill-1");
  expect(logged.filter(([level]) => level === "warn")).toHaveLength(1);
  state.keeping(undefined);
  expect(state.report().state).toBe("OK");
});
