import { describe, expect, it } from "vitest";
import { LEAST_TIMEOUT_MS, newPace, noteAnswer, noteAtMost, timeoutOf, tookNoTime } from "./pace.ts";

const FULL_MS = 10_000;

describe("the pace of a device", () => {
  it("is not known at first: a request is waited for in full", () => {
    const pace = newPace();
    expect([pace.slowestMs, timeoutOf(pace, FULL_MS)]).toEqual([0, FULL_MS]);
  });

  it("is that of the slowest answer, which fades with those that follow", () => {
    const pace = newPace();
    for (const ms of [400, 20, 20]) noteAnswer(pace, ms);
    expect(pace.slowestMs).toBeCloseTo(400 * 0.99 ** 2);
    expect(timeoutOf(pace, FULL_MS)).toBe(Math.round(4 * 400 * 0.99 ** 2));
    for (let n = 0; n < 500; n++) noteAnswer(pace, 20);
    expect(timeoutOf(pace, FULL_MS)).toBe(LEAST_TIMEOUT_MS);
  });

  it("is at most what an answer took that may have waited, until one is known that did not", () => {
    const pace = newPace();
    noteAtMost(pace, 900);
    noteAtMost(pace, 600);
    noteAtMost(pace, 800);
    expect([pace.slowestMs, timeoutOf(pace, FULL_MS)]).toEqual([0, 2400]);
    noteAnswer(pace, 10);
    expect([pace.slowestMs, timeoutOf(pace, FULL_MS)]).toEqual([10, LEAST_TIMEOUT_MS]);
  });

  it("never asks for more than the whole time-out", () => {
    const pace = newPace();
    noteAnswer(pace, 5000);
    expect(timeoutOf(pace, 3000)).toBe(3000);
  });

  it.each([
    [0, true],
    [100, true],
    [101, false],
  ])("a failure after %d ms took no time: %s", (ms, isQuick) => expect(tookNoTime(ms)).toBe(isQuick));
});
