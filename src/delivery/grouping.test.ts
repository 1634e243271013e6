import fc from "fast-check";
import { expect, test } from "vitest";
import type { StoredBatch } from "../buffer/buffer.ts";
import { createGrouper, type Group, type GroupBounds, groupRows, joinGroups, splitGroup } from "./grouping.ts";

const row = (id: number, time: number, layout = 1, bytes = 10): StoredBatch => ({
  id,
  layout,
  time,
  count: 1,
  explorationCount: 0,
  payload: new Uint8Array(bytes),
});
const BOUNDS: GroupBounds = { intervalMs: 1000, maxBytes: 100, maxReadouts: 5 };
const ids = (groups: readonly { readonly rows: readonly StoredBatch[] }[]) => groups.map((group) => group.rows.map(({ id }) => id));

test("readouts of one second make one group, which is due with others at the fifth of a second after it is over", () => {
  const grouper = createGrouper(BOUNDS);
  expect(ids(grouper.add(row(1, 10_200), "a", 500))).toEqual([]);
  expect(ids(grouper.add(row(2, 10_900), "a", 1200))).toEqual([]);
  expect(grouper.nextDueMs()).toBe(1400);
  expect(ids(grouper.add(row(3, 10_250), "b", 600))).toEqual([]);
  expect(ids(grouper.due(1399))).toEqual([]);
  expect(ids(grouper.due(1400))).toEqual([[1, 2], [3]]);
  expect(grouper.nextDueMs()).toBeUndefined();
});

test("the next second, another layout, the bounds of bytes and readouts complete a group", () => {
  const grouper = createGrouper(BOUNDS);
  grouper.add(row(1, 10_200), "a", 0);
  expect(ids(grouper.add(row(2, 11_000), "a", 0))).toEqual([[1]]);
  expect(ids(grouper.add(row(3, 11_001, 2), "a", 0))).toEqual([[2]]);
  expect(ids(grouper.add(row(4, 11_002, 2, 95), "a", 0))).toEqual([[3]]);
  expect(ids(grouper.add(row(5, 12_000, 2, 1), "a", 0))).toEqual([[4]]);
  for (const id of [6, 7, 8]) expect(ids(grouper.add(row(id, 12_000, 2, 1), "a", 0))).toEqual([]);
  expect(ids(grouper.add(row(9, 12_000, 2, 1), "a", 0))).toEqual([[5, 6, 7, 8, 9]]);
  expect(ids(grouper.flush())).toEqual([]);
});

const rows = fc
  .array(
    fc.record({
      source: fc.integer({ min: 1, max: 3 }),
      stepMs: fc.integer({ min: 0, max: 700 }),
      bytes: fc.integer({ min: 0, max: 150 }),
    }),
    {
      maxLength: 60,
    },
  )
  .map((list) => {
    let time = 1_000_000;
    return list.map(({ source, stepMs, bytes }, i) => {
      time += stepMs;
      return row(i + 1, time, source, bytes);
    });
  });

test("every row is in one group, in order, within the bounds; and cut anywhere but inside a window the groups are the same", () => {
  fc.assert(
    fc.property(rows, fc.nat(60), (list, cut) => {
      const key = ({ layout }: StoredBatch) => `${layout}`;
      const groups = groupRows(list, key, BOUNDS);
      expect(
        ids(groups)
          .flat()
          .sort((a, b) => a - b),
      ).toEqual(list.map(({ id }) => id));
      for (const group of groups) {
        expect(group.rows.every((one) => one.layout === group.layout)).toBe(true);
        expect(new Set(group.rows.map((one) => Math.floor(one.time / 1000))).size).toBe(1);
        expect(group.rows.length).toBeLessThanOrEqual(5);
        expect(group.rows.length === 1 || group.bytes <= 100).toBe(true);
        expect(group.bytes).toBe(group.rows.reduce((sum, one) => sum + one.payload.byteLength, 0));
      }
      for (const source of [1, 2, 3]) {
        const order = ids(groups.filter((group) => group.layout === source)).flat();
        expect(order).toEqual([...order].sort((a, b) => a - b));
      }
      const at = Math.floor((list[cut]?.time ?? 0) / 1000);
      const parts = [list.filter((one) => Math.floor(one.time / 1000) < at), list.filter((one) => Math.floor(one.time / 1000) >= at)];
      expect(new Set(ids(parts.flatMap((part) => groupRows(part, key, BOUNDS))).map(String))).toEqual(new Set(ids(groups).map(String)));
    }),
  );
});

test("groups leave at the first call after their window has ended, and no window ends before the time that is named", () => {
  fc.assert(
    fc.property(rows, fc.array(fc.nat(400), { minLength: 1, maxLength: 60 }), (list, steps) => {
      const grouper = createGrouper(BOUNDS);
      const dueOf = new Map<number, number>();
      const forget = (groups: readonly Group[]): void => {
        for (const id of ids(groups).flat()) dueOf.delete(id);
      };
      let nowMs = 0;
      for (const [i, one] of list.entries()) {
        const key = `${one.layout}`;
        const alone = createGrouper(BOUNDS);
        alone.add(one, key, nowMs);
        const open = list.slice(0, i).findLast(({ id, layout }) => layout === one.layout && dueOf.has(id));
        const before = open && dueOf.get(open.id);
        dueOf.set(one.id, alone.nextDueMs() ?? 0);
        forget(grouper.add(one, key, nowMs));
        // A row whose group was open already is due with it.
        if (open && before !== undefined && dueOf.has(open.id)) dueOf.set(one.id, before);
        nowMs += steps[i % steps.length] ?? 0;
        if (i % 3 > 0) continue;
        expect(grouper.nextDueMs() ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(Math.min(...dueOf.values()));
        const due = grouper.due(nowMs);
        expect(new Set(ids(due).flat())).toEqual(new Set([...dueOf].flatMap(([id, dueMs]) => (dueMs <= nowMs ? [id] : []))));
        forget(due);
        expect(grouper.nextDueMs() === undefined).toBe(dueOf.size === 0);
      }
    }),
  );
});

test("a group is cut to what may be written at once, one row at least, and nothing of it is lost", () => {
  const writtenBytesOf = ({ id }: StoredBatch): number => id * 10;
  const group: Group = { layout: 1, rows: [1, 2, 3, 4].map((id) => row(id, 0, 1)), bytes: 4 * 15, writtenBytes: 100 };
  const cut = (maxWrittenBytes: number) => {
    const { first, rest } = splitGroup(group, maxWrittenBytes, { ...BOUNDS, rowBytes: 5, writtenBytesOf });
    return [first, rest].map((part) => part && [part.rows.map(({ id }) => id), part.bytes, part.writtenBytes]);
  };
  expect(cut(100)).toEqual([[[1, 2, 3, 4], 60, 100], undefined]);
  expect(cut(99)).toEqual([
    [[1, 2, 3], 45, 60],
    [[4], 15, 40],
  ]);
  expect(cut(1)).toEqual([
    [[1], 15, 10],
    [[2, 3, 4], 45, 90],
  ]);
});

test("groups of one source are joined as far as they fit one; none overtakes another of its source", () => {
  const group = (layout: number, ...rows: readonly number[]): Group => ({
    layout,
    rows: rows.map((id) => row(id, 0, layout)),
    bytes: rows.length * 10,
    writtenBytes: rows.length * 40,
  });
  const keyOf = ({ layout }: StoredBatch): string => (layout === 2 ? "b" : "a");
  const join = (bounds: Partial<GroupBounds>, ...groups: readonly Group[]) => {
    const joined = joinGroups(groups, { ...BOUNDS, keyOf, ...bounds });
    expect(joined.map(({ bytes, writtenBytes }) => [bytes, writtenBytes])).toEqual(
      joined.map(({ rows: { length } }) => [length * 10, length * 40]),
    );
    return ids(joined);
  };
  expect(join({}, group(1, 1), group(2, 2), group(1, 3, 4), group(2, 5), group(1, 6))).toEqual([
    [1, 3, 4, 6],
    [2, 5],
  ]);
  // Layout 3 is of the same source.
  expect(join({}, group(1, 1), group(3, 2), group(1, 3))).toEqual([[1], [2], [3]]);
  expect(join({ maxBytes: 30 }, group(1, 1), group(1, 2, 3), group(1, 4))).toEqual([[1, 2, 3], [4]]);
  expect(join({ maxReadouts: 2 }, group(1, 1), group(1, 2, 3), group(1, 4), group(1, 5))).toEqual([[1], [2, 3], [4, 5]]);
  expect(join({ maxWrittenBytes: 80 }, group(1, 1), group(1, 2), group(1, 3))).toEqual([[1, 2], [3]]);
  expect(join({})).toEqual([]);
});
