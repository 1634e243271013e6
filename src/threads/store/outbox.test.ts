import { MessageChannel } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import type { StoredBatch } from "../../buffer/buffer.ts";
import type { StoreToRelay } from "../../buffer/messages.ts";
import { plainLayout } from "../../buffer/testing/readouts.ts";
import { Outbox } from "./outbox.ts";

const SOURCES = ["press", "oven", "saw"].map((name) => plainLayout(1, { scalar: "string" }, name));
const uuidOf = (source: number) => SOURCES[source]?.source.uuid ?? "";
const row = (id: number, layout: number, bytes = 1): StoredBatch => ({
  ...{ id, layout, time: id, count: 1, explorationCount: 0 },
  payload: new Uint8Array(bytes),
});

/** A delivery of current values that answers only when it is told to. */
function rig(maxUnderWayBytes: number) {
  const outbox = new Outbox({ isRelayed: true, onMessage: () => {}, layout: (id) => SOURCES[Math.abs(id)], maxUnderWayBytes });
  const { port1, port2 } = new MessageChannel();
  outbox.attach(port1, { sinks: undefined, start: undefined, nextId: undefined });
  onTestFinished(() => outbox.close());
  const came: StoreToRelay[] = [];
  port2.on("message", (message: StoreToRelay) => void came.push(message));
  const ids = () => came.flatMap((one) => (one.type === "committed" || one.type === "unstored" ? [one.batches.map(({ id }) => id)] : []));
  const keptBack = () => came.flatMap((one) => (one.type === "kept_back" ? [...one.bytes] : []));
  return { outbox, ids, keptBack, received: () => port2.postMessage({ type: "received" }) };
}

test("a delivery of current values that falls behind gets the newest of each source once it has room, stored or not", async () => {
  const { outbox, ids, received } = rig(1000);
  outbox.committed([row(1, 0, 1000)], 2);
  outbox.committed([row(2, 0), row(3, 1)], 4);
  outbox.committed([row(4, 0)], 5);
  outbox.unstored([row(-1, -2)]);
  await expect.poll(ids).toEqual([[1]]);
  received();
  await expect.poll(ids).toEqual([[1], [3, 4], [-1]]);
  received();
  received();
  outbox.committed([row(5, 0)], 6);
  await expect.poll(ids).toEqual([[1], [3, 4], [-1], [5]]);
});

test("one batch of any size always fits, and what found no room is named", async () => {
  const { outbox, ids, keptBack, received } = rig(1000);
  outbox.committed([row(1, 0, 9000)], 2);
  outbox.committed([row(2, 0, 900), row(3, 1, 900), row(4, 2, 900)], 5);
  received();
  await expect.poll(ids).toEqual([[1], [3, 4]]);
  expect(keptBack()).toEqual([[uuidOf(0), 900]]);
});
