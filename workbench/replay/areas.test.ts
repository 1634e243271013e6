import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Areas } from "./areas.ts";

const LAST = 80;
const ranges = fc
  .record({ from: fc.nat(LAST), count: fc.integer({ min: 1, max: 40 }) })
  .filter(({ from, count }) => from + count <= LAST)
  .map((range) => ({ area: "a", ...range }));

/** A recording: requests of ranges that overlap, each answered several times, in any order. */
const recordings = fc
  .record({
    requests: fc.array(ranges, { minLength: 1, maxLength: 5 }),
    answers: fc.array(fc.record({ of: fc.nat(4), bytes: fc.uint8Array({ minLength: 6, maxLength: 6 }), isSame: fc.boolean() }), {
      minLength: 1,
      maxLength: 12,
    }),
  })
  .map(({ requests, answers }) => ({ requests, answers: answers.map((one) => ({ ...one, of: one.of % requests.length })) }));
type Recording = typeof recordings extends fc.Arbitrary<infer T> ? T : never;

interface Observed {
  readonly moment: number;
  readonly from: number;
  readonly to: number;
  readonly bitAt: (index: number) => number;
}

/** The areas as the recording fills them, and a list of what was seen. */
function filled({ requests, answers }: Recording): { readonly areas: Areas; readonly observed: readonly Observed[] } {
  const runs: { readonly bytes: Buffer; readonly moments: number[] }[][] = requests.map(() => []);
  const observed: Observed[] = [];
  for (const [i, { of, bytes, isSame }] of answers.entries()) {
    const [run, request] = [runs[of] ?? [], requests[of] ?? { from: 0, count: 0 }];
    const last = run.at(-1);
    const kept = isSame && last ? last : { bytes: Buffer.from(bytes), moments: [] };
    if (kept !== last) run.push(kept);
    kept.moments.push(i + 1);
    const bitAt = (index: number): number => ((kept.bytes[(index - request.from) >> 3] ?? 0) >> ((index - request.from) & 7)) & 1;
    observed.push({ moment: i + 1, from: request.from, to: request.from + request.count, bitAt });
  }
  const areas = new Areas();
  for (const [i, request] of requests.entries())
    for (const { bytes, moments } of runs[i] ?? []) areas.add(i, { ...request, bytes }, moments);
  return { areas, observed };
}

/** The reading of a bit at a moment: the last one up to it, else the first. Undefined: it was never read. */
function bitAt(observed: readonly Observed[], index: number, moment: number): Observed | undefined {
  const those = observed.filter(({ from, to }) => index >= from && index < to);
  return those.filter((one) => one.moment <= moment).at(-1) ?? those[0];
}

describe("the memory that a recording tells of", () => {
  it("has any range inside what was captured as it was at that moment, and refuses what touches a hole", () => {
    fc.assert(
      fc.property(recordings, ranges, fc.nat(14), (recording, range, moment) => {
        const { areas, observed } = filled(recording);
        const expected = Array.from({ length: range.count }, (_, i) => bitAt(observed, range.from + i, moment)?.bitAt(range.from + i));
        const found = areas.at(range, moment);
        if (expected.includes(undefined)) expect(found).toBeUndefined();
        else expect(Array.from({ length: range.count }, (_, i) => ((found?.[i >> 3] ?? 0) >> (i & 7)) & 1)).toEqual(expected);
        expect(areas.at({ ...range, area: "b" }, moment)).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  it("moves to the next moment at which a bit of the range has another reading behind it", () => {
    fc.assert(
      fc.property(recordings, ranges, fc.nat(14), (recording, range, moment) => {
        const { areas, observed } = filled(recording);
        const readings = (at: number): readonly (Observed | undefined)[] =>
          Array.from({ length: range.count }, (_, i) => bitAt(observed, range.from + i, at));
        const isOther = (at: number): boolean => readings(at).some((one, i) => one !== readings(moment)[i]);
        const next = observed.map((one) => one.moment).find((at) => at > moment && isOther(at));
        expect(areas.nextAfter([range], moment)).toBe(next);
      }),
      { numRuns: 500 },
    );
  });

  it("keeps a range that one request names twice, and counts what it has no room for", () => {
    const areas = new Areas(3);
    const bits = { area: "a", from: 8, count: 8, bytes: Buffer.of(7) };
    areas.add(1, bits, [1]);
    areas.add(1, bits, [1]);
    expect(areas.at(bits, 1)).toEqual(Buffer.of(7));
    expect([areas.ranges, areas.leftOut]).toEqual([1, 0]);
    for (const from of [16, 24, 32]) areas.add(2, { ...bits, from }, [2]);
    expect([areas.ranges, areas.leftOut]).toEqual([2, 2]);
    expect(areas.at({ ...bits, from: 24 }, 2)).toBeUndefined();
    expect(areas.at({ area: "a", from: 0, count: 2 ** 40 }, 1)).toBeUndefined();
  });
});
