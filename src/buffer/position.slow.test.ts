import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Position } from "./buffer.ts";
import { isPending, joinClosest, MAX_OLDER_RANGES, rangesOf, startAtLiveEdge, subtract, union, without } from "./position.ts";
import { acknowledge } from "./testing/acknowledge.ts";

const TOP = 200;
const pendingIds = (position: Position, top = TOP): number[] =>
  Array.from({ length: top }, (_, id) => id).filter((id) => isPending(position, id));
const ids = fc.array(fc.integer({ min: 0, max: TOP - 1 }), { maxLength: 60 });

function expectWellFormed(position: Position): void {
  let end = -1;
  for (const { from, to } of position.older) {
    expect(from).toBeGreaterThan(end);
    expect(to).toBeGreaterThan(from);
    end = to;
  }
  expect(position.live).toBeGreaterThanOrEqual(end);
  expect(position.older.length).toBeLessThanOrEqual(MAX_OLDER_RANGES);
}

describe("position", () => {
  it("moves the live edge over what is acknowledged in order", () => {
    expect(acknowledge(startAtLiveEdge(5), [5, 6, 7])).toEqual({ older: [], live: 8 });
  });

  it("keeps what was overtaken as an older range", () => {
    expect(acknowledge(startAtLiveEdge(5), [7, 9])).toEqual({
      older: [
        { from: 5, to: 7 },
        { from: 8, to: 9 },
      ],
      live: 10,
    });
  });

  it("is the set without the acknowledged ids, as long as the ranges suffice", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: TOP }), fc.array(ids, { maxLength: 5 }), (start, rounds) => {
        const model = new Set(Array.from({ length: TOP - start }, (_, i) => start + i));
        let position = startAtLiveEdge(start);
        for (const round of rounds) {
          for (const id of round) model.delete(id);
          position = subtract(position, rangesOf(round));
        }
        expect(pendingIds(position)).toEqual([...model]);
      }),
    );
  });

  it("never loses a pending id, whatever is acknowledged in which order, and stays within its bound", () => {
    fc.assert(
      fc.property(fc.array(ids, { maxLength: 12 }), (rounds) => {
        const model = new Set(Array.from({ length: TOP }, (_, id) => id));
        let position = startAtLiveEdge(0);
        for (const round of rounds) {
          for (const id of round) model.delete(id);
          position = acknowledge(position, round);
          expectWellFormed(position);
          for (const id of model) expect(isPending(position, id)).toBe(true);
        }
      }),
    );
  });

  it("joins the closest ranges and says what is pending again", () => {
    fc.assert(
      fc.property(fc.array(ids, { maxLength: 4 }), (rounds) => {
        const exact = subtract(startAtLiveEdge(0), rangesOf(rounds.flat()));
        const { position, regained } = joinClosest(exact);
        expectWellFormed(position);
        const gained = pendingIds(position).filter((id) => !isPending(exact, id));
        expect(regained.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i))).toEqual(gained);
      }),
    );
    const odd = Array.from({ length: 40 }, (_, i) => 2 * i + 1);
    expect(joinClosest(subtract(startAtLiveEdge(0), rangesOf(odd))).regained.length).toBe(40 - MAX_OLDER_RANGES);
  });
});

describe("ranges", () => {
  const range = fc
    .tuple(fc.integer({ min: 0, max: TOP - 1 }), fc.integer({ min: 0, max: 20 }))
    .map(([from, length]) => ({ from, to: Math.min(TOP, from + length) }));
  const has = (ranges: readonly { from: number; to: number }[], id: number): boolean => ranges.some((r) => id >= r.from && id < r.to);

  it("union and without are those of sets", () => {
    fc.assert(
      fc.property(fc.array(range, { maxLength: 12 }), fc.array(range, { maxLength: 12 }), (a, b) => {
        const [all, taken] = [union(a), union(b)];
        const left = without(all, taken);
        for (let id = 0; id < TOP; id++) {
          expect(has(all, id)).toBe(has(a, id));
          expect(has(left, id)).toBe(has(a, id) && !has(b, id));
        }
      }),
    );
  });
});
