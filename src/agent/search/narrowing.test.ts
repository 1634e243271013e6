import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Point } from "../../../drivers/driver.ts";
import { type Division, type Narrowing, newNarrowing, nextOf, partAnswered, partFailed, spread, spreadPlace } from "./narrowing.ts";

const points = (n: number): Point[] => Array.from({ length: n }, (_, index) => ({ index, address: index, type: { scalar: "uint16" } }));

/** Asks until it is found; `fails` judges a run. Gives the number of asks. */
function search(
  all: readonly Point[],
  fails: (run: readonly Point[]) => boolean,
  division: Division = "halves",
): { readonly narrowing: Narrowing; readonly asks: number; readonly failures: number } {
  const narrowing = newNarrowing(all, division);
  let [asks, failures] = [0, 0];
  for (; !narrowing.found; asks++) {
    const run = nextOf(narrowing);
    expect(run.length).toBeGreaterThan(0);
    if (fails(run)) {
      partFailed(narrowing, run);
      failures++;
    } else partAnswered(narrowing);
  }
  expect(nextOf(narrowing)).toEqual([]);
  return { narrowing, asks, failures };
}

describe("spreadPlace", () => {
  it("looks at each place once in as many tries, and leaves a half without an answer within four", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.nat(10_000), (count, from) => {
        const places = Array.from({ length: count }, (_, i) => spreadPlace(from + i, count));
        expect(new Set(places).size).toBe(count);
        if (count < 4) return;
        const isInHalf = (place: number) => place < count / 2;
        for (let i = 0; i + 4 <= count; i++) expect(new Set(places.slice(i, i + 4).map(isInHalf)).size).toBe(2);
      }),
    );
    expect(spreadPlace(0, 60)).toBe(0);
    expect(spreadPlace(5, 0)).toBe(0);
  });
});

describe("narrowing", () => {
  it("finds one bad point of any number, wherever it is, in one ask a level", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }).chain((n) => fc.tuple(fc.constant(n), fc.nat(n - 1))),
        ([n, bad]) => {
          const all = points(n);
          const { narrowing, asks } = search(all, (run) => run.some(({ index }) => index === bad));
          expect(narrowing.found).toEqual({ culprit: all[bad] });
          expect(asks).toBeLessThanOrEqual(Math.ceil(Math.log2(n)) + 1);
        },
      ),
    );
  });

  it("by pieces, fails three times for one of 125: by piece, by itself, and once more", () => {
    const failures = points(125).map((_, bad) => search(points(125), (run) => run.some(({ index }) => index === bad), "pieces").failures);
    // What is left in the end of a piece is known without an ask.
    expect(Math.max(...failures)).toBe(3);
  });

  it("by pieces, has few asks fail, and nearly all of the run behind it after the first", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }).chain((n) => fc.tuple(fc.constant(n), fc.nat(n - 1))),
        ([n, bad]) => {
          const all = points(n);
          const largest: number[] = [];
          const failing = (run: readonly Point[]): boolean => {
            const isBad = run.some(({ index }) => index === bad);
            if (isBad) largest.push(run.length);
            return isBad;
          };
          const { narrowing, asks, failures } = search(all, failing, "pieces");
          expect(narrowing.found).toEqual({ culprit: all[bad] });
          expect(failures).toBeLessThanOrEqual(5);
          expect(largest[0] ?? 1).toBeLessThanOrEqual(Math.sqrt(n));
          expect(asks).toBeLessThanOrEqual(2 * Math.sqrt(n) + 12);
        },
      ),
    );
  });

  it.each(["halves", "pieces"] as const)("finds a point that is bad, however many are: by %s", (division) => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), fc.infiniteStream(fc.boolean()), (n, coins) => {
        const all = points(n);
        const bad = new Set(all.filter(() => coins.next().value).map(({ index }) => index)).add(n - 1);
        const { narrowing } = search(all, (run) => run.some(({ index }) => bad.has(index)), division);
        expect(narrowing.found).toEqual({ culprit: expect.objectContaining({ index: expect.toSatisfy((i: number) => bad.has(i)) }) });
      }),
    );
  });

  it("finds the halves between which the device lacks something", () => {
    // Refused is what holds 3 and 4 together.
    const all = points(8);
    const { narrowing } = search(all, (run) => run.some((p) => p.index === 3) && run.some((p) => p.index === 4));
    expect(narrowing.found).toEqual({ cutBefore: all[4] });
    expect(narrowing.hasAnswer).toBe(true);
  });

  it.each(["halves", "pieces"] as const)("ends also where the device answers everything by now: by %s", (division) => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 300 }), (n) => {
        expect(search(points(n), () => false, division).narrowing.found).toHaveProperty("cutBefore");
      }),
    );
  });
});

describe("spread", () => {
  it("names the ends and what lies evenly between, each once", () => {
    expect(spread(points(3), 5)).toHaveLength(3);
    expect(spread(points(125), 5).map(({ index }) => index)).toEqual([0, 31, 62, 93, 124]);
  });
});
