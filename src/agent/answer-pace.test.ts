import { describe, expect, it } from "vitest";
import { AnswerPace, LEAST_TIMEOUT_MS, tookNoTime } from "./answer-pace.ts";

const FULL_MS = 10_000;

describe("the pace of a device", () => {
  it("is not known at first: a request is waited for in full", () => {
    const pace = new AnswerPace();
    expect([pace.isKnown, pace.expectedMs, pace.timeoutMs(FULL_MS)]).toEqual([false, 0, FULL_MS]);
  });

  it("is that of the slowest answer, which fades with those that follow", () => {
    const pace = new AnswerPace();
    for (const ms of [400, 20, 20]) pace.note(ms);
    expect(pace.expectedMs).toBeCloseTo(400 * 0.99 ** 2);
    expect(pace.timeoutMs(FULL_MS)).toBe(Math.round(4 * 400 * 0.99 ** 2));
    for (let n = 0; n < 500; n++) pace.note(20);
    expect(pace.timeoutMs(FULL_MS)).toBe(LEAST_TIMEOUT_MS);
  });

  it("is at most what an answer took that may have waited, until one is known that did not", () => {
    const pace = new AnswerPace();
    pace.noteAtMost(900);
    pace.noteAtMost(600);
    pace.noteAtMost(800);
    expect([pace.isKnown, pace.timeoutMs(FULL_MS)]).toEqual([false, 2400]);
    pace.note(10);
    expect([pace.isKnown, pace.timeoutMs(FULL_MS)]).toEqual([true, LEAST_TIMEOUT_MS]);
  });

  it("never asks for more than the whole time-out", () => {
    const pace = new AnswerPace();
    pace.note(5000);
    expect(pace.timeoutMs(3000)).toBe(3000);
  });

  it.each([
    [0, true],
    [100, true],
    [101, false],
  ])("a failure after %d ms took no time: %s", (ms, isQuick) => expect(tookNoTime(ms)).toBe(isQuick));
});
