import { describe, expect, it } from "vitest";
import { TIMELINE_MINUTES } from "./minute-states.ts";
import { stateOf, Timelines } from "./timelines.ts";

const OK = stateOf("OK", null);
const REFUSED = stateOf("ERROR", { reason: { type: "CONNECTION_REFUSED" }, condition: null });
const NOT_READ = stateOf("UNKNOWN", null);
const runsOf = (timelines: Timelines, minute: number) =>
  timelines.runs("a", minute)?.map(({ from, to, state, reason }) => [from, to, reason ?? state]);

describe("the timeline of a day", () => {
  it("has a run for each state, from the first note on, and a sentence for a reason", () => {
    const timelines = new Timelines();
    timelines.note("a", 5, NOT_READ);
    timelines.note("a", 6, OK);
    timelines.note("a", 10, REFUSED);
    timelines.note("a", 12, OK);
    expect(runsOf(timelines, 15)).toEqual([
      [5, 6, "UNKNOWN"],
      [7, 9, "OK"],
      [10, 12, "CONNECTION_REFUSED"],
      [13, 15, "OK"],
    ]);
    expect(timelines.runs("a", 15)?.[2]?.words).toMatch(/refused/i);
    expect(timelines.runs("b", 15)).toBeUndefined();
  });

  it("shows the worst state of a minute, however often it changes, and forgets what is older than a day", () => {
    const timelines = new Timelines();
    timelines.note("a", 0, OK);
    for (let minute = 1; minute <= 2 * TIMELINE_MINUTES; minute++)
      for (const state of [OK, REFUSED, OK, REFUSED, OK]) timelines.note("a", minute, state);
    expect(runsOf(timelines, 2 * TIMELINE_MINUTES + 10)).toEqual([
      [TIMELINE_MINUTES + 11, 2 * TIMELINE_MINUTES, "CONNECTION_REFUSED"],
      [2 * TIMELINE_MINUTES + 1, 2 * TIMELINE_MINUTES + 10, "OK"],
    ]);
  });

  it("keeps the state where the words of reasons are more than a byte counts", () => {
    const timelines = new Timelines();
    for (let n = 0; n < 400; n++) timelines.note("a", n, { state: "ERROR", reason: `R${n}`, words: null });
    const runs = timelines.runs("a", 399) ?? [];
    expect(runs.every(({ state }) => state === "ERROR")).toBe(true);
    expect(runs.at(-1)?.reason).toBeNull();
    timelines.keep(new Set());
    expect(timelines.runs("a", 399)).toBeUndefined();
  });
});
