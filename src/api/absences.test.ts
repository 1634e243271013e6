import * as fc from "fast-check";
import { expect, test } from "vitest";
import { LargeMap } from "../base/large-map.ts";
import { atOnce } from "../base/timer.ts";
import { type AbsenceInput, judgeAbsences, type Missed } from "./absences.ts";

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `m-${n}`);
const none: Missed = new LargeMap();
const judge = (input: AbsenceInput) => atOnce(judgeAbsences(input));

test("without a proof an entry has to be missing twice, and many at once three times", () => {
  const step = (known: number, missing: readonly string[], before: Missed) => judge({ known, missing, isProven: false, before });
  const waitsAfter = (known: number, count: number): number[] => {
    const waits: number[] = [];
    let before = none;
    for (let pull = 0; pull < 4; pull++) {
      before = step(known, names(count), before).waiting;
      waits.push(before.size);
    }
    return waits;
  };
  expect(waitsAfter(100, 1)).toEqual([1, 0, 1, 0]);
  expect(waitsAfter(100, 20)).toEqual([20, 0, 20, 0]);
  expect(waitsAfter(100, 21)).toEqual([21, 21, 0, 21]);
  expect(waitsAfter(3, 3)).toEqual([3, 0, 3, 0]);
  expect(waitsAfter(10, 5)).toEqual([5, 5, 0, 5]);
  const other = step(100, ["m-2"], step(100, ["m-1"], none).waiting).waiting;
  expect([other.size, other.get("m-1"), other.get("m-2")]).toEqual([1, undefined, 1]);
  expect(judge({ known: 100, missing: names(100), isProven: true, before: none }).waiting.size).toBe(0);
});

/** One pull: which entries the API has given up, which ones its list leaves out wrongly, and whether its filter works. */
const pull = fc.record({
  deletes: fc.subarray(names(12)),
  leavesOut: fc.subarray(names(12)),
  isProven: fc.boolean(),
});

test("model: what the API still has goes only after as many pulls as are asked for, and what it deleted goes in the end", () => {
  fc.assert(
    fc.property(fc.array(pull, { maxLength: 12 }), (pulls) => {
      const there = new Set(names(12));
      const runs = new Set(names(12));
      const missedInRow = new Map<string, number>();
      let before = none;
      const play = ({ deletes, leavesOut, isProven }: typeof pull extends fc.Arbitrary<infer P> ? P : never): void => {
        for (const name of deletes) there.delete(name);
        const unlisted = [...runs].filter((name) => !there.has(name) || leavesOut.includes(name));
        // A filter that works gives what is there.
        const missing = isProven ? unlisted.filter((name) => !there.has(name)) : unlisted;
        for (const name of names(12)) missedInRow.set(name, missing.includes(name) ? (missedInRow.get(name) ?? 0) + 1 : 0);
        const known = runs.size;
        before = judge({ known, missing, isProven, before }).waiting;
        const gone = missing.filter((name) => before.get(name) === undefined);
        for (const name of gone) runs.delete(name);
        if (isProven) {
          expect(gone).toEqual(missing);
          expect(gone.filter((name) => there.has(name))).toEqual([]);
          return;
        }
        for (const name of gone) expect(missedInRow.get(name)).toBeGreaterThanOrEqual(2);
        if (gone.length >= 5 && gone.length > known / 5) for (const name of gone) expect(missedInRow.get(name)).toBeGreaterThanOrEqual(3);
      };
      for (const one of pulls) play(one);
      for (let n = 0; n < 3; n++) play({ deletes: [], leavesOut: [], isProven: false });
      expect([...runs].filter((name) => !there.has(name))).toEqual([]);
    }),
  );
});
