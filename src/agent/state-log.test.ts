import { describe, expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import type { PlainReasonType } from "../model/reason.ts";
import { createReasonBudget, StateLog } from "./state-log.ts";
import { nextState, type SourceState } from "./status.ts";

const problem = (type: PlainReasonType) => ({ reason: { type }, condition: null, detail: type });

function speakers(count: number) {
  let now = 0;
  const lines: object[] = [];
  const log = { ...silentLog, info: (fields: object) => void lines.push(fields), warn: (fields: object) => void lines.push(fields) };
  const budget = createReasonBudget(() => now);
  const all = Array.from({ length: count }, (_, i) => {
    let state: SourceState = { type: "UNKNOWN", since: 0 };
    const speaker = new StateLog(
      log,
      { source: `s${i}`, endpoint: null },
      state,
      { reasonLines: budget, stateLines: { add: (line) => line.write() } },
      () => now,
    );
    return (what: PlainReasonType | undefined) => {
      state = nextState(state, what && problem(what), now);
      speaker.note(state);
    };
  });
  return {
    lines,
    all,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

describe("the log of state changes", () => {
  it("says each change once while there are few", () => {
    const { lines, all, wait } = speakers(1);
    for (const what of ["TIMEOUT", "TIMEOUT", "CONNECTION_REFUSED", "CONNECTION_REFUSED", undefined, undefined] as const) {
      all[0]?.(what);
      wait(1000);
    }
    expect(lines).toMatchObject([{ reason: "TIMEOUT" }, { reason: "CONNECTION_REFUSED" }, { reason: "CONNECTION_REFUSED" }]);
  });

  it("stays under 100 lines an hour with 50 dead devices, also where their reasons alternate", () => {
    const { lines, all, wait } = speakers(50);
    for (let second = 0; second < 3600; second += 10) {
      all.forEach((say, i) => {
        say(i % 2 === 0 || second % 20 === 0 ? "TIMEOUT" : "NO_ROUTE_TO_HOST");
      });
      wait(10_000);
    }
    expect(lines.length).toBeGreaterThanOrEqual(50);
    expect(lines.length).toBeLessThan(100);
  });

  it("never withholds the last word: a state that stands for a minute is logged whatever was said before", () => {
    const { lines, all, wait } = speakers(1);
    for (let i = 0; i < 21; i++) {
      all[0]?.(i % 2 === 0 ? "TIMEOUT" : undefined);
      wait(1000);
    }
    const said = lines.length;
    all[0]?.("TIMEOUT");
    expect(lines).toHaveLength(said);
    wait(60_000);
    all[0]?.("TIMEOUT");
    expect(lines).toHaveLength(said + 1);
    expect(lines.at(-1)).toMatchObject({ reason: "TIMEOUT", changesNotLogged: expect.any(Number) });
  });

  it("counts what it did not say, and ends with how things stand", () => {
    const { lines, all, wait } = speakers(1);
    for (let i = 0; i < 100; i++) {
      all[0]?.(i % 2 === 0 ? "TIMEOUT" : undefined);
      wait(1000);
    }
    expect(lines).toHaveLength(4);
    all[0]?.("HOST_DOWN");
    wait(3_600_000);
    all[0]?.("HOST_DOWN");
    expect(lines).toHaveLength(5);
    expect(lines[4]).toMatchObject({ reason: "HOST_DOWN", changesNotLogged: expect.any(Number) });
  });
});
