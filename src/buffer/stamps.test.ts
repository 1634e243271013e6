import fc from "fast-check";
import { expect, test } from "vitest";
import { OPEN_END, type StampRange, withoutUsed, withStamp } from "./stamps.ts";

const [BOOT, OTHER] = ["one", "two"];
const wrong = (bootTimeMs: number) => ({ clockSynced: false, bootTimeMs });

test("fault: all that a wrong clock stamped was sent, then another clock stamps: two ranges would begin at one id, and nothing is stored again", () => {
  const sent = withoutUsed(withStamp([], 1, wrong(0), BOOT), [{ from: 1, to: 5 }]);
  const ranges = withStamp(sent, 5, wrong(60_000), BOOT);
  expect(ranges).toEqual([{ from: 5, to: OPEN_END, boot: BOOT, bootTimeMs: 60_000, correctionMs: null }]);
  expect(withStamp(sent, 5, { clockSynced: true, bootTimeMs: 60_000 }, BOOT)).toEqual([]);
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
