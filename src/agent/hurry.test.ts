import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Hurry, hurryAnswered, hurryLost, NO_HURRY, provenPauseMs } from "./hurry.ts";

const AT_ONCE = 1;
const LATER = 1000;

/** After these: `x1` is a loss of 1 right after an answer, `x1~` one after a while; `1` and `1~` are answers. */
const hurryOf = (events: string, pauseMs = 0): Hurry =>
  events.split(" ").reduce((hurry, event) => {
    const what = event.replace(/[x~]/g, "");
    const afterMs = event.endsWith("~") ? LATER : AT_ONCE;
    return (event.startsWith("x") ? hurryLost : hurryAnswered)(hurry, what, afterMs, pauseMs);
  }, NO_HURRY);

describe("requests that come right after an answer", () => {
  it.each([
    ["x1 1~ x2 2~", 0, 100, "two that are answered after a while"],
    ["x1 1~ x2 2~", 100, 300, "the pause is too short"],
    ["x1 1~", 0, undefined, "one may be chance"],
    ["x1~ 1~ x2~ 2~", 0, undefined, "these were lost though they came late"],
    ["x1 1~ 2 3 4 5 6 7 x2 2~", 0, undefined, "most that come at once are answered: the network lost two"],
    ["x1 x1~ 1~ x2 x2~ 2~", 0, undefined, "a unit was silent and is back"],
    ["x1 1 x2 2", 0, undefined, "what comes at once is answered"],
    ["x1 1~ x2", 0, undefined, "the second was not answered yet"],
  ])("%s at a pause of %i ms: %o, because %s", (events, pauseMs, provenMs, _) => {
    expect(provenPauseMs(hurryOf(events, pauseMs), pauseMs)).toBe(provenMs);
  });

  it("are forgotten where many more are answered", () => {
    expect(hurryOf(`x1 ${"2 ".repeat(25)}3`)).toEqual(NO_HURRY);
  });

  it("say that no pause helps where the longest does not", () => {
    expect(provenPauseMs({ suspects: [], proofs: 2, lost: 2, answered: 0 }, 1000)).toBe(0);
  });

  it("are never more than sixteen, whatever comes", () => {
    const event = fc.record({ what: fc.string(), afterMs: fc.double({ min: 0, noNaN: true }), isLost: fc.boolean() });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 100 }), (events) => {
        const hurry = events.reduce(
          (known, { what, afterMs, isLost }) => (isLost ? hurryLost : hurryAnswered)(known, what, afterMs, 0),
          NO_HURRY,
        );
        expect(hurry.suspects.length).toBeLessThanOrEqual(16);
        expect(new Set(hurry.suspects).size).toBe(hurry.suspects.length);
      }),
    );
  });
});
