import { NodeId, ReadValueId } from "node-opcua-client";
import { expect, it } from "vitest";
import type { RawValue } from "./binary.ts";
import { type Item, Items } from "./items.ts";
import { type Slot, WaitingValues } from "./waiting.ts";

const DOUBLE = 11;
const raw = (value: number, status = 0, sourceTime = 1000 + value): RawValue => ({
  status,
  type: DOUBLE,
  isArray: false,
  dimensions: null,
  value,
  sourceTime,
});
const BAD_NODE_ID_UNKNOWN = 0x8034_0000;
const node = new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, 7, 2), attributeId: 13 });

function setUp() {
  const clock = { ms: 0 };
  const waiting = new WaitingValues(() => clock.ms);
  const items = new Items(waiting, 10_000, () => clock.ms);
  const slot = waiting.slot("press", 0, "ns=2;i=7");
  const watch = (): Item => {
    const item = items.want(node, "ns=2;i=7", slot);
    items.creating(item);
    items.created(item, 40 + item.handle, 10, 0);
    return item;
  };
  return { clock, waiting, items, slot, watch };
}
const saidBy = (slot: Slot): readonly unknown[] => slot.waiting.map(({ what }) => ("hole" in what ? what.hole : what.value));

it("names what is missing between two watches, unless value and time are those of before", () => {
  const { items, slot, watch } = setUp();
  items.take(watch().handle, raw(1), 10);
  items.lose("the server had ended the subscription");
  items.take(watch().handle, raw(1), 10);
  items.lose("the server had ended the subscription");
  items.take(watch().handle, raw(2), 10);
  expect(saidBy(slot)).toEqual([1, 1, expect.stringContaining("the server had ended the subscription: values between"), 2]);
});

it("takes no late value of the item of before", () => {
  const { items, slot, watch } = setUp();
  const { handle } = watch();
  items.lose("gone");
  const item = watch();
  items.take(handle, raw(1), 10);
  expect([item.last, saidBy(slot)]).toEqual([undefined, []]);
});

it("offers a node that comes back soon, and one that does not last less and less often", () => {
  const { clock, items, watch } = setUp();
  const waits: number[] = [];
  for (let i = 0; i < 14; i++) {
    const item = watch();
    items.take(item.handle, raw(0, BAD_NODE_ID_UNKNOWN), 10);
    expect([item.state, items.isDue(item)]).toEqual(["plain", false]);
    const goneMs = clock.ms;
    items.readPlainly(item, raw(0, BAD_NODE_ID_UNKNOWN));
    items.readPlainly(item, raw(5));
    while (!items.isDue(item)) clock.ms += 500;
    waits.push(clock.ms - goneMs);
  }
  expect(waits.slice(0, 4)).toEqual([1000, 2000, 4000, 8000]);
  expect(waits.at(-1)).toBe(600_000);
});

it("gives up what no reader has read for a minute and for three of its intervals", () => {
  const { clock, items, slot, watch } = setUp();
  const item = watch();
  items.take(item.handle, raw(1), 10);
  slot.keepMs = 3 * 60_000;
  clock.ms = 120_000;
  items.sweep();
  expect([items.size, items.takeDeletable()]).toEqual([1, []]);
  clock.ms = 180_000;
  items.sweep();
  expect([items.size, items.takeDeletable(), items.takeDeletable()]).toEqual([0, [item.serverId ?? 41], []]);
});

it("reads plainly what brings no first value", () => {
  const { clock, items, watch } = setUp();
  const item = watch();
  clock.ms = 10_000;
  items.sweep();
  expect([item.state, item.refused, items.takeDeletable()]).toEqual(["plain", "no first value", [41]]);
});

it("is watched again where another reader wants smaller changes", () => {
  const { items, waiting, slot, watch } = setUp();
  slot.deadband = 5;
  const item = watch();
  expect(item.deadband).toBe(5);
  const other = waiting.slot("mixer", 0, "ns=2;i=7");
  other.deadband = 1;
  items.want(node, "ns=2;i=7", other);
  expect(item.state).toBe("new");
  items.creating(item);
  expect(item.deadband).toBe(1);
});

it("says that values of the node of before were not read", () => {
  const { items, waiting, slot, watch } = setUp();
  const item = watch();
  for (const value of [1, 2]) items.take(item.handle, raw(value), 10);
  const other = waiting.slot("press", 0, "ns=2;i=8");
  expect([saidBy(slot), saidBy(other)]).toEqual([[], ["2 values of ns=2;i=7, where it was before, were not read"]]);
});

it("bounds the values that wait, and counts those that it drops", () => {
  const waiting = new WaitingValues(() => 0, 2000);
  const items = new Items(waiting, 10_000, () => 0);
  const slot = waiting.slot("press", 0, "ns=2;i=7");
  const item = items.want(node, "ns=2;i=7", slot);
  items.creating(item);
  for (let i = 0; i < 100; i++) items.take(item.handle, raw(i), 50);
  expect([slot.waiting.length, slot.dropped, waiting.bytes <= 2000]).toEqual([10, 90, true]);
  expect(saidBy(slot).at(-1)).toBe(99);
  waiting.release(slot, 10);
  expect(waiting.bytes).toBe(0);
});
