import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import { isChange, judge, logChange, nextState, type Problem, problemOf, type SourceState, toReadoutState } from "./status.ts";

const good: Reading = { quality: "good", value: 1 };
const bad: Reading = { quality: "bad", fault: "not_found", detail: "exception 2" };
const reset = new ReasonError("CONNECTION_RESET", "read ECONNRESET");
const refused: Problem = problemOf(new ReasonError("CONNECTION_REFUSED", "connect ECONNREFUSED"));
const timeout: Problem = problemOf(new ReasonError("TIMEOUT", "no answer"));

describe("judge", () => {
  it("is well with one good value, whatever else happened", () => {
    expect(judge([bad, good, undefined], reset)).toBeUndefined();
    expect(judge([bad, { quality: "uncertain", value: 1 }], undefined)).toBeUndefined();
  });
  it("names the source's failure where nothing good was answered", () => {
    expect(judge([bad], reset)?.reason).toEqual({ type: "CONNECTION_RESET" });
  });
  it("says UNKNOWN with the first fault where the device answers and every variable is faulted", () => {
    expect(judge([bad, bad], undefined)).toMatchObject({
      reason: { type: "UNKNOWN" },
      condition: "all_variables_faulted",
      detail: expect.stringContaining("not_found: exception 2"),
    });
  });
});

describe("nextState", () => {
  it("keeps the first failure's time while the trouble lasts, also when the reason changes", () => {
    let state: SourceState = { type: "OK", since: 1 };
    state = nextState(state, refused, 10);
    state = nextState(state, refused, 20);
    expect(state).toMatchObject({ type: "ERROR", since: 10, errorAt: 10 });
    state = nextState(state, timeout, 30);
    expect(state).toMatchObject({ type: "ERROR", since: 30, errorAt: 10 });
    expect(toReadoutState(state)).toEqual({ type: "ERROR", reason: { type: "TIMEOUT" }, error_at: new Date(10).toISOString() });
  });
  it("is OK exactly after a readout without a problem", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(undefined, refused, timeout), { minLength: 1 }), (outcomes) => {
        const states: SourceState[] = [];
        for (const [i, problem] of outcomes.entries())
          states.push(nextState(states.at(-1) ?? { type: "UNKNOWN", since: 0 }, problem, i + 1));
        expect(states.map((state) => state.type)).toEqual(outcomes.map((problem) => (problem ? "ERROR" : "OK")));
      }),
    );
  });
});

describe("logChange", () => {
  it("writes one line per change of state or reason, none for a repeat, with source, reason, since and next step", () => {
    const lines: { level: string; fields: object; message: string }[] = [];
    const take = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message });
    const log: Log = { debug: take("debug"), info: take("info"), warn: take("warn"), error: take("error") };
    let state: SourceState = { type: "UNKNOWN", since: 0 };
    for (const problem of [undefined, undefined, refused, refused, refused, timeout, timeout, undefined]) {
      const before = state;
      state = nextState(before, problem, Date.UTC(2026, 0, 1) + lines.length);
      if (isChange(before, state))
        logChange(log, { add: (line) => line.write() }, before, state, { source: "press-1", endpoint: "10.0.0.5:502" });
    }
    expect(lines.map((line) => line.level)).toEqual(["info", "warn", "warn", "info"]);
    expect(lines[1]?.fields).toMatchObject({ reason: "CONNECTION_REFUSED", since: expect.any(String), nextStep: expect.any(String) });
    expect(lines[1]?.message).toMatch(/\.$/);
  });
});
