import { describe, expect, test } from "vitest";
import type { Hold } from "../../sinks/sink.ts";
import {
  beginHeld,
  dueHeld,
  endHeld,
  expireHeld,
  giveBackHeld,
  heldDetail,
  heldDueMs,
  hold,
  isFull,
  isHoldOver,
  passHeld,
} from "./holds.ts";
import { newIsolation, type Part } from "./state.ts";

const HOLD: Hold = { forMs: 60_000, next: "drop" };
const part = (row: number, layout = 1): Part => ({ layout, backlog: true, pieces: [{ row, from: 0, values: 4 }] });
const rowsOf = (parts: readonly Part[] = []) => parts.flatMap(({ pieces }) => pieces.map(({ row }) => row));

/** The functions over one state, and a take that begins what is due. */
function holding(...rows: readonly number[]) {
  const state = newIsolation();
  for (const row of rows) hold(state, "a", part(row), HOLD, "no right", 0);
  return {
    state,
    add: (source: string, one: Part, nowMs: number) => hold(state, source, one, HOLD, "no right", nowMs),
    take(nowMs: number) {
      const due = dueHeld(state, nowMs);
      if (due) beginHeld(state, due.source, due.parts);
      return due;
    },
    tried: (source: string, rest: Part | undefined, hasPassed: boolean, nowMs: number, detail?: string) =>
      endHeld(state, source, rest, hasPassed, nowMs, detail),
  };
}

describe("what is held", () => {
  test("tries one part at a time, oldest and newest by turns, less and less often", () => {
    const holds = holding(1, 2, 3);
    const tries: number[][] = [];
    for (let nowMs = 0; nowMs < 59_000; nowMs += 500) {
      const taken = holds.take(nowMs);
      if (!taken) continue;
      tries.push([nowMs / 1000, ...rowsOf(taken.parts)]);
      expect(holds.take(nowMs)).toBeUndefined();
      holds.tried("a", taken.parts[0], false, nowMs);
    }
    expect(tries).toEqual([
      [1, 1],
      [3, 3],
      [7, 1],
      [15, 3],
      [31, 1],
    ]);
  });

  test("gives the rest at once after something has passed, what can go together in one, until all is through", () => {
    const holds = holding(1, 2);
    holds.add("a", part(3, 2), 0);
    const given: number[][] = [];
    for (let taken = holds.take(1000); taken; taken = holds.take(1000)) {
      given.push(rowsOf(taken.parts));
      holds.tried("a", undefined, true, 1000);
    }
    expect(given).toEqual([[1], [2], [3]]);
    expect(holds.state.holds.size).toBe(0);
    const many = holding(...Array.from({ length: 300 }, (_, row) => row));
    many.tried("a", many.take(1000)?.parts[0], true, 1000);
    const sizes: number[] = [];
    for (let taken = many.take(1000); taken; taken = many.take(1000)) {
      sizes.push(taken.parts.length);
      many.tried("a", undefined, true, 1000);
    }
    expect(sizes.reduce((sum, n) => sum + n, 0)).toBe(300);
    expect(Math.max(...sizes)).toBe(100);
  });

  test("a part that alone is at fault holds up none of the others", () => {
    const holds = holding(1, 2, 3, 4);
    const passed: number[] = [];
    for (let nowMs = 0; nowMs < 20_000; nowMs += 100) {
      const taken = holds.take(nowMs);
      if (!taken) continue;
      const good = rowsOf(taken.parts).filter((row) => row !== 1);
      passed.push(...good);
      holds.tried("a", rowsOf(taken.parts).includes(1) ? part(1) : undefined, good.length > 0, nowMs);
    }
    expect(passed.sort()).toEqual([2, 3, 4]);
    expect(holds.state.holds.size).toBe(1);
  });

  test("gives out what was held for long enough, once; what is refused later is not held, until something passes", () => {
    const holds = holding(1, 2);
    expect(expireHeld(holds.state, 59_999)).toEqual([]);
    expect(heldDueMs(holds.state)).toBe(1000);
    const taken = holds.take(59_999);
    expect(heldDueMs(holds.state)).toBe(60_000);
    expect(rowsOf(expireHeld(holds.state, 60_000)[0]?.parts)).toEqual([2]);
    holds.tried("a", taken?.parts[0], false, 60_001);
    expect(rowsOf(expireHeld(holds.state, 60_001)[0]?.parts)).toEqual([1]);
    expect(expireHeld(holds.state, 60_002)).toEqual([]);
    expect(holds.add("a", part(3), 60_003)).toBe(false);
    passHeld(holds.state, "a", 60_004);
    expect(holds.add("a", part(4), 60_005)).toBe(true);
    expect(holds.state.holds.size).toBe(1);
  });

  test("says why by the last refusal: rights come back one by one", () => {
    const holds = holding(1);
    expect(heldDetail(holds.state)).toBe("no right");
    holds.take(1000);
    holds.tried("a", part(1), true, 1000, "no right to another topic");
    expect(heldDetail(holds.state)).toBe("no right to another topic");
  });

  test("says of a source whose time is over that what is refused is not held", () => {
    const holds = holding(1);
    expect([isHoldOver(holds.state, "a", 59_999), isHoldOver(holds.state, "a", 60_000), isHoldOver(holds.state, "b", 60_000)]).toEqual([
      false,
      true,
      false,
    ]);
    expireHeld(holds.state, 60_000);
    expect(isHoldOver(holds.state, "a", 60_001)).toBe(true);
    passHeld(holds.state, "a", 60_002);
    expect(isHoldOver(holds.state, "a", 60_003)).toBe(false);
  });

  test("one source's parts say nothing of another's, and nothing under way is lost", () => {
    const holds = holding(1);
    holds.add("b", part(2), 0);
    expect([holds.take(1000)?.source, holds.take(1000)?.source, holds.take(1000)]).toEqual(["a", "b", undefined]);
    holds.tried("b", undefined, true, 1000);
    giveBackHeld(holds.state, "a", 1000);
    expect(holds.state.holds.size).toBe(1);
    expect(holds.take(2999)).toBeUndefined();
    expect(rowsOf(holds.take(3000)?.parts)).toEqual([1]);
  });

  test("is full at a bound, and not any more once what is held has gone", () => {
    const holds = holding(...Array.from({ length: 20_000 }, (_, row) => row));
    expect(isFull(holds.state)).toBe(true);
    const taken = holds.take(1000);
    holds.tried("a", undefined, true, 1000);
    expect(taken?.parts).toHaveLength(1);
    expect(isFull(holds.state)).toBe(false);
    expireHeld(holds.state, 60_000);
    expect(heldDueMs(holds.state)).toBe(Number.POSITIVE_INFINITY);
  });
});
