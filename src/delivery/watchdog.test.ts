import { expect, test } from "vitest";
import { type Look, Watchdog } from "./watchdog.ts";

const SECOND = 1000;

/** Looks once a second; the account of a sink to which two values a second are accepted. */
function setUp({ intervalMs = 1000 } = {}) {
  const watchdog = new Watchdog(intervalMs);
  let nowMs = 0;
  let accepted = 0;
  let settled = 0;
  const attached: number[] = [];
  const look = (more: Partial<Look> = {}): void => {
    if (watchdog.look(nowMs, { accepted, settled, pending: accepted - settled, isIdle: true, ...more })) attached.push(nowMs / SECOND);
    nowMs += SECOND;
  };
  return {
    watchdog,
    attached,
    look,
    /** Nothing is delivered. */
    starve(seconds: number, more: Partial<Look> = {}): void {
      for (let i = 0; i < seconds; i++) {
        accepted += 2;
        look(more);
      }
    },
    serve(seconds: number): void {
      for (let i = 0; i < seconds; i++) {
        accepted += 2;
        settled = accepted;
        look();
      }
    },
    /** Nothing is accepted and nothing delivered. */
    rest(seconds: number): void {
      for (let i = 0; i < seconds; i++) look();
    },
    standStill(seconds: number): void {
      nowMs += seconds * SECOND;
      accepted += 2 * seconds;
    },
  };
}

test("a sink that says OK and gets nothing for ten seconds is attached again", () => {
  const { starve, serve, attached, watchdog } = setUp();
  serve(5);
  starve(12);
  expect(attached).toEqual([15]);
  expect(watchdog.isFailing).toBe(false);
});

test("three publish intervals are waited for where they are longer", () => {
  const { starve, serve, attached } = setUp({ intervalMs: 20_000 });
  serve(1);
  starve(59);
  expect(attached).toEqual([]);
  starve(3);
  expect(attached).toEqual([61]);
});

test("the second time within ten minutes is a failure, which ends ten minutes after the last", () => {
  const { starve, serve, attached, watchdog } = setUp();
  starve(12);
  serve(580);
  starve(12);
  expect(attached).toHaveLength(2);
  expect(watchdog.isFailing).toBe(true);
  serve(590);
  expect(watchdog.isFailing).toBe(true);
  serve(11);
  expect(watchdog.isFailing).toBe(false);
  starve(12);
  expect(attached).toHaveLength(3);
  expect(watchdog.isFailing).toBe(false);
});

test("with an interval of minutes, or a value an hour, the second time is a failure too, until something is delivered", () => {
  const { starve, serve, attached, watchdog } = setUp({ intervalMs: 300_000 });
  serve(1);
  starve(902);
  expect([attached.length, watchdog.isFailing]).toEqual([1, false]);
  starve(902);
  expect([attached.length, watchdog.isFailing]).toEqual([2, true]);
  starve(800);
  expect(watchdog.isFailing).toBe(true);
  serve(1);
  expect(watchdog.isFailing).toBe(false);
  const hourly = setUp();
  for (let hour = 0; hour < 3; hour++) {
    hourly.starve(1);
    hourly.rest(3599);
  }
  expect([hourly.attached.length, hourly.watchdog.isFailing]).toEqual([2, true]);
  hourly.look({ pending: 0 });
  expect(hourly.watchdog.isFailing).toBe(false);
});

test("values that wait for a file that takes nothing are no sign: no later commit could have told of a delivery", () => {
  const { starve, rest, attached } = setUp();
  starve(1);
  rest(300);
  expect(attached).toEqual([]);
});

test("one value a minute that is not delivered is noticed with the next, unless that one ends the trouble", () => {
  const { starve, serve, rest, attached } = setUp();
  starve(1);
  rest(59);
  starve(1);
  rest(1);
  expect(attached).toEqual([61]);
  starve(1);
  rest(59);
  starve(1);
  serve(1);
  expect(attached).toEqual([61]);
});

test("what waits on purpose, is under way, or is not OK is left alone, and so is a sink that gets anything", () => {
  const { starve, serve, attached } = setUp();
  starve(300, { isIdle: false });
  for (let i = 0; i < 60; i++) {
    starve(8);
    starve(1, { isIdle: false });
    starve(8);
    serve(1);
  }
  expect(attached).toEqual([]);
});

test("a buffer that drops its oldest values for want of room hides nothing: the pending no longer grow", () => {
  const { starve, serve, attached } = setUp();
  serve(1);
  starve(12, { pending: 100 });
  expect(attached).toHaveLength(1);
});

test("a thread that stood still has delivered nothing meanwhile", () => {
  const { serve, starve, standStill, attached } = setUp();
  serve(3);
  starve(2);
  standStill(60);
  starve(2);
  serve(3);
  expect(attached).toEqual([]);
});
