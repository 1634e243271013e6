import { NodeId, ReadValueId } from "node-opcua-client";
import { expect, it } from "vitest";
import type { RawValue } from "./binary.ts";
import { type Item, Items, OFFER_AGAIN_MS } from "./items.ts";
import { SubscriptionState } from "./subscription-state.ts";
import { WaitingValues } from "./waiting.ts";

const BAD_TOO_MANY_MONITORED_ITEMS = 0x80db_0000;
const OVERFLOW = 0x0480;
const raw = (status = 0): RawValue => ({ status, type: 11, isArray: false, dimensions: null, value: 1, sourceTime: undefined });

function setUp() {
  const clock = { ms: 0 };
  const now = () => clock.ms;
  const waiting = new WaitingValues(now);
  const items = new Items(waiting, 10_000, now);
  const said: string[] = [];
  const settings = { publishing_interval: 500, sampling_interval: 500, queue_size: 10 };
  const state = new SubscriptionState(settings, (words) => void said.push(words), now);
  const want = (i: number): Item => {
    const node = new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, i, 2), attributeId: 13 });
    const item = items.want(node, `ns=2;i=${i}`, waiting.slot("press", i, `ns=2;i=${i}`));
    items.creating(item);
    return item;
  };
  const codes = () => state.warnings(items).map(({ code }) => code);
  return { clock, items, state, want, codes, said };
}

it("has nothing to say where all is well", () => {
  const { items, state, want, codes } = setUp();
  state.opened(500);
  state.readEvery(1000);
  items.created(want(1), 1, 10, 500);
  expect(codes()).toEqual([]);
  expect(state.warnings(items)).toBe(state.warnings(items));
});

it("says how many are refused, and why, of those that can be read", () => {
  const { items, state, want, codes } = setUp();
  items.created(want(1), 1, 10, 500);
  for (const i of [2, 3, 4]) items.refuse(want(i), BAD_TOO_MANY_MONITORED_ITEMS);
  expect(codes()).toEqual([]);
  for (const item of items.all()) items.readPlainly(item, raw());
  expect(codes()).toEqual(["subscription_in_part"]);
  expect(state.warnings(items)[0]?.text).toMatch(/^1 of 4 variables come by subscription, 3 are read plainly: .*BadTooManyMonitoredItems/);
});

it("says what the server grants less of than it was asked for", () => {
  const { items, state, want, codes } = setUp();
  state.opened(5000);
  state.readEvery(400);
  items.created(want(1), 1, 1, 2000);
  expect(codes()).toEqual(["subscription_refused", "sampling_too_slow", "subscription_queue_short"]);
  expect(state.warnings(items)[1]?.text).toContain("looks at variables every 2 s, and they are read every 400 ms");
});

it("names queues that overflowed for ten minutes, and differences until all of it is well", () => {
  const { clock, items, state, want, codes, said } = setUp();
  const item = want(1);
  items.created(item, 1, 10, 500);
  items.take(item.handle, raw(OVERFLOW), 10);
  state.differs("ns=2;i=1");
  expect(codes()).toEqual(["subscription_overflow", "subscription_differs"]);
  state.audited(false);
  expect(codes()).toHaveLength(2);
  state.audited(true);
  expect(codes()).toEqual(["subscription_overflow"]);
  clock.ms = 600_000;
  items.sweep();
  expect(codes()).toEqual([]);
  expect(said).toHaveLength(3);
});

it("rests after the third loss within a minute, and not after three in three minutes", () => {
  const { clock, state, codes } = setUp();
  for (let i = 0; i < 3; i++) {
    state.lost("BadNoSubscription");
    clock.ms += 60_000;
  }
  expect([state.isResting, codes()]).toEqual([false, []]);
  for (let i = 0; i < 3; i++) state.lost("BadNoSubscription");
  expect([state.isResting, codes()]).toEqual([true, ["subscription_refused"]]);
  clock.ms += OFFER_AGAIN_MS;
  expect(state.isResting).toBe(false);
  state.opened(500);
  expect(codes()).toEqual([]);
});
