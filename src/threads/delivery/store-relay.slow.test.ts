import { MessageChannel } from "node:worker_threads";
import { expect, it, onTestFinished } from "vitest";
import type { StoredBatch } from "../../buffer/buffer.ts";
import type { StoreToDelivery } from "../../buffer/messages.ts";
import { plainLayout } from "../../buffer/testing/readouts.ts";
import type { ToDelivery } from "../../delivery/messages.ts";
import type { Port } from "../../lib/thread/port.ts";
import type { Layout } from "../../model/layout.ts";
import { Outbox } from "../store/outbox.ts";
import { StoreRelay, type ToServing, unrelayed } from "./store-relay.ts";

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

/** Comments as long as a person writes them, so that the layout takes several pieces. */
const large = (name: string): Layout => {
  const { variables } = plainLayout(8000);
  return {
    source: { uuid: name, name },
    variables: variables.map((one) => ({ ...one, comment: `${name} ${"of the press line ".repeat(3)}` })),
  };
};

const batch = (id: number, layout: number): StoredBatch => ({
  id,
  layout,
  time: id,
  count: 1,
  explorationCount: 0,
  payload: new Uint8Array(8),
});

/** A store's outbox, the host's relay, and the delivery's end in another process. */
function relayed(layouts: ReadonlyMap<number, Layout>, onCrossed: (count: number) => void = () => {}) {
  const outbox = new Outbox({ isRelayed: true, onMessage: () => {}, layout: (id) => layouts.get(id) });
  const crossed: ToServing[] = [];
  const said: StoreToDelivery[] = [];
  let take: (message: ToServing) => void = () => {};
  const child: Port = {
    postMessage: () => {},
    close: () => {},
    on: (_event, listener: (message: ToServing) => void) => {
      take = listener;
    },
  };
  unrelayed(child).on("message", (message: ToDelivery) => {
    if (message.type === "store") message.port.on("message", (own: StoreToDelivery) => void said.push(own));
  });
  const relay = new StoreRelay((message) => {
    crossed.push(message);
    take(structuredClone(message));
    onCrossed(crossed.length);
  });
  const connect = (): void => {
    const { port1, port2 } = new MessageChannel();
    outbox.attach(port1, { sinks: undefined, start: undefined, nextId: undefined });
    relay.connect(port2, "buffer.db");
    onTestFinished(() => port1.close());
  };
  connect();
  onTestFinished(() => relay.close());
  const kinds = (): readonly string[] => said.map(({ type }) => type);
  return { outbox, crossed, said, kinds, connect };
}

it("hands a large layout on as bytes in pieces, with all that follows it in order", async () => {
  const layouts = new Map([
    [1, large("one")],
    [2, plainLayout(3)],
  ]);
  const { outbox, crossed, said, kinds } = relayed(layouts);
  outbox.committed([batch(1, 2)], 2);
  outbox.committed([batch(2, 1)], 3);
  outbox.losses(["a"]);
  outbox.committed([batch(3, 2), batch(4, 1)], 5);
  await poll(kinds).toEqual(["ready", "layout", "committed", "layout", "committed", "losses", "committed"]);
  expect(said[1]).toEqual({ type: "layout", id: 2, layout: layouts.get(2) });
  expect(said[3]).toEqual({ type: "layout", id: 1, layout: layouts.get(1) });
  const pieces = crossed.flatMap((one) =>
    one.type === "from_store" && one.message.type === "layout_bytes" ? [one.message.bytes.length] : [],
  );
  expect(pieces.length).toBeGreaterThan(3);
  expect(Math.max(...pieces)).toBeLessThanOrEqual(64 * 1024);
});

it("begins again with another connection, and hands nothing on of the one before", async () => {
  const layouts = new Map([[1, large("one")]]);
  // The link, what the outbox begins with, and the first piece.
  const { outbox, said, kinds, connect } = relayed(layouts, (count) => {
    if (count !== 3) return;
    connect();
    outbox.committed([batch(2, 1)], 3);
  });
  outbox.committed([batch(1, 1)], 2);
  await poll(() => kinds().at(-1)).toBe("committed");
  expect(said.filter(({ type }) => type === "layout")).toEqual([{ type: "layout", id: 1, layout: layouts.get(1) }]);
  expect(said.filter(({ type }) => type === "committed")).toMatchObject([{ batches: [{ id: 2 }] }]);
});

it("passes on what the process has for the store over this connection, and nothing of the one before", async () => {
  const relay = new StoreRelay(() => {});
  onTestFinished(() => relay.close());
  const got: unknown[] = [];
  const connect = (): void => {
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (message) => void got.push(message));
    onTestFinished(() => port1.close());
    relay.connect(port2, "buffer.db");
  };
  connect();
  connect();
  const toStore = (link: number, id: number) => relay.pass({ type: "to_store", link, message: { type: "settled", id } as never });
  toStore(1, 1);
  toStore(2, 2);
  toStore(1, 3);
  toStore(2, 4);
  await poll(() => got).toEqual([
    { type: "settled", id: 2 },
    { type: "settled", id: 4 },
  ]);
});
