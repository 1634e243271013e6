import fc from "fast-check";
import { expect, test } from "vitest";
import { corrected, OPEN_END, type StampRange, withoutUsed, withStamp } from "./stamps.ts";

const [BOOT, OTHER] = ["one", "two"];
const wrong = (bootTimeMs: number) => ({ clockSynced: false, bootTimeMs });

test("fault: all that a wrong clock stamped was sent, then another clock stamps: two ranges would begin at one id, and nothing is stored again", () => {
  const sent = withoutUsed(withStamp([], 1, wrong(0), BOOT), [{ from: 1, to: 5 }]);
  const ranges = withStamp(sent, 5, wrong(60_000), BOOT);
  expect(ranges).toEqual([{ from: 5, to: OPEN_END, boot: BOOT, bootTimeMs: 60_000, correctionMs: null }]);
  expect(withStamp(sent, 5, { clockSynced: true, bootTimeMs: 60_000 }, BOOT)).toEqual([]);
});

test("a source that waits among others that are sent keeps its corrections, however long a wrong clock stamps more of all of them", () => {
  const READOUTS = 600;
  // Of three sources in turns the first one waits: each of its batches is a range of its own.
  const sentOf = (first: number) => Array.from({ length: READOUTS / 3 }, (_, i) => ({ from: first + 3 * i + 1, to: first + 3 * i + 3 }));
  const waiting = (first: number) => Array.from({ length: READOUTS / 3 }, (_, i) => first + 3 * i);
  let ranges = withoutUsed(withStamp([], 1, wrong(60_000), BOOT), sentOf(1));
  ranges = corrected(withStamp(ranges, 1 + READOUTS, { clockSynced: true, bootTimeMs: 0 }, BOOT), BOOT, 0);
  const correctionOf = (id: number) => ranges.find(({ from, to }) => from <= id && id < to)?.correctionMs;
  expect(waiting(1).every((id) => correctionOf(id) === -60_000)).toBe(true);
  for (let round = 1; round <= 10; round++) {
    const first = 1 + round * READOUTS;
    ranges = withoutUsed(withStamp(ranges, first, wrong(10_000_000 + round * 60_000), OTHER), sentOf(first));
    expect(ranges.length).toBeLessThanOrEqual(1024);
    expect(waiting(1).every((id) => correctionOf(id) === -60_000)).toBe(true);
    expect(ranges.at(-1)?.to).toBe(OPEN_END);
  }
});

const step = fc.record({
  isSynced: fc.boolean(),
  clock: fc.constantFrom(0, 5000, 60_000),
  boot: fc.constantFrom(BOOT, OTHER),
  /** How many of the newest have been sent before the next one. */
  used: fc.option(fc.nat(3)),
});

test("whatever stamps and is sent: ranges rise, none is empty, none begins where another does, and each batch has the clock that stamped it", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let ranges: readonly StampRange[] = [];
      const meant = new Map<number, number | undefined>();
      let id = 1;
      for (const { isSynced, clock, boot, used } of steps) {
        ranges = withStamp(ranges, id, { clockSynced: isSynced, bootTimeMs: clock }, boot ?? BOOT);
        meant.set(id, isSynced ? undefined : clock);
        id++;
        if (used === null) continue;
        ranges = withoutUsed(ranges, [{ from: id - used, to: id }]);
        for (let sent = id - used; sent < id; sent++) meant.set(sent, undefined);
      }
      let end = 0;
      for (const { from, to } of ranges) {
        expect(from).toBeGreaterThanOrEqual(end);
        expect(to).toBeGreaterThan(from);
        end = to;
      }
      for (const [batch, clock] of meant) expect(ranges.find(({ from, to }) => from <= batch && batch < to)?.bootTimeMs).toBe(clock);
    }),
  );
});
