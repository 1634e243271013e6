import { NodeId, ReadValueId } from "node-opcua-client";
import { expect, it } from "vitest";
import { Audit } from "./audit.ts";
import type { RawValue } from "./binary.ts";
import { type Item, Items } from "./items.ts";
import { WaitingValues } from "./waiting.ts";

const DOUBLE = 11;
const raw = (value: number): RawValue => ({ status: 0, type: DOUBLE, isArray: false, dimensions: null, value, sourceTime: undefined });

/** `count` items that are watched, each with its number as its last value; `there` has what a plain read gives. */
function setUp(count: number, everyMs: number, deadband = 0) {
  const clock = { ms: 0 };
  const now = () => clock.ms;
  const waiting = new WaitingValues(now);
  const items = new Items(waiting, 1000, now);
  const all: Item[] = [];
  const there: number[] = [];
  for (let i = 0; i < count; i++) {
    const node = new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, i, 2), attributeId: 13 });
    const slot = waiting.slot("press", i, `i=${i}`);
    slot.deadband = deadband;
    const item = items.want(node, `i=${i}`, slot);
    items.creating(item);
    items.created(item, i, 10, 0);
    items.take(item.handle, raw(i), 20);
    all.push(item);
    there.push(i);
  }
  const reads: { readonly ms: number; readonly count: number }[] = [];
  const rounds: boolean[] = [];
  const deps = {
    everyMs,
    maxNodes: 1000,
    graceMs: () => 2000,
    items: () => items.all(),
    read: async (asked: readonly Item[]) => {
      reads.push({ ms: clock.ms, count: asked.length });
      return asked.map((item) => raw(there[all.indexOf(item)] ?? Number.NaN));
    },
    isWell: (item: Item) => items.isWell(item),
    isWrong: (item: Item) => items.isWrong(item),
    onRound: (isWell: boolean) => void rounds.push(isWell),
  };
  const audit = new Audit(deps, now);
  const pass = async (ms: number): Promise<void> => {
    for (const untilMs = clock.ms + ms; clock.ms < untilMs; clock.ms += 500) await audit.next()?.run();
  };
  return { clock, items, all, there, reads, rounds, audit, pass };
}

it("reads each item once within its time, a few at once", async () => {
  const { reads, rounds, pass } = setUp(1000, 300_000);
  await pass(320_000);
  expect(reads.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(1000);
  expect(Math.max(...reads.map(({ count }) => count))).toBeLessThanOrEqual(40);
  expect(reads.length).toBeLessThanOrEqual(32);
  expect(rounds[0]).toBe(true);
});

it("never reads where its time is 0", async () => {
  const { reads, pass } = setUp(5, 0);
  await pass(600_000);
  expect(reads).toEqual([]);
});

it("creates an item again whose value differs and stays so, and reads it plainly from the second time on", async () => {
  const { items, all, there, rounds, pass } = setUp(3, 10_000);
  const [, item] = all;
  if (!item) throw new Error("it has no item");
  there[1] = 7;
  await pass(25_000);
  expect([item.state, item.differs, rounds.includes(false)]).toEqual(["new", 1, true]);
  expect(items.takeDeletable()).toEqual([1]);
  items.creating(item);
  items.created(item, 4, 10, 0);
  items.take(item.handle, raw(7), 20);
  there[1] = 8;
  await pass(25_000);
  expect([item.state, item.refused, items.isDue(item)]).toEqual(["plain", "no changes", false]);
  await pass(600_000);
  expect(items.isDue(item)).toBe(true);
});

it("takes a change that comes after it for an explanation, and a value that is back", async () => {
  const { items, all, there, rounds, clock, audit } = setUp(2, 10_000);
  there.splice(0, 2, 7, 8);
  clock.ms = 10_000;
  await audit.next()?.run();
  await audit.next()?.run();
  clock.ms = 11_000;
  items.take(all[0]?.handle ?? 0, raw(7), 20);
  there[1] = 1;
  clock.ms = 60_000;
  for (let i = 0; i < 5; i++) await audit.next()?.run();
  expect(all.map(({ state }) => state)).toEqual(["watched", "watched"]);
  expect(rounds).not.toContain(false);
});

it("takes two changes after each other for an explanation, though the second is not here yet", async () => {
  const { items, all, there, clock, audit } = setUp(1, 10_000);
  there[0] = 7;
  clock.ms = 10_000;
  await audit.next()?.run();
  clock.ms = 12_500;
  items.take(all[0]?.handle ?? 0, raw(7), 20);
  there[0] = 8;
  await audit.next()?.run();
  expect(all[0]?.state).toBe("watched");
});

it.each([
  [10, "watched"],
  [10.5, "new"],
] as const)("a difference of %d is judged by a deadband of 10: %s", async (difference, state) => {
  const { all, there, pass } = setUp(1, 10_000, 10);
  there[0] = difference;
  await pass(25_000);
  expect(all[0]?.state).toBe(state);
});
