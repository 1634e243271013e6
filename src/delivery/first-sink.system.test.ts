import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { MessageChannel } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import type { SinkLedger } from "../buffer/buffer.ts";
import { encodeReadout, layoutKey } from "../buffer/codec.ts";
import type { FromStore } from "../buffer/messages.ts";
import { openReader } from "../buffer/reader.ts";
import { plainLayout, plainReadout } from "../buffer/testing/readouts.ts";
import { serveStore } from "../threads/store/serve.ts";
import { runDelivery } from "./engine.ts";
import type { FromDelivery } from "./messages.ts";
import { keepingSinks } from "./testing/keeping-sink.ts";
import { mqttSpec, type TestWorker, workerOf } from "./testing/rig.ts";

/**
 * While no sink keeps the whole history, the file reserves ids far ahead. A sink that attaches before it hears of the correction must not take
 * the reserved ids for committed ones.
 */

const START_MS = 1_800_000_000_000;
const VARIABLES = 4;
const layout = plainLayout(VARIABLES);

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A store and a delivery; what the store tells the delivery waits while `hold` is on. */
async function setUp() {
  const folder = await mkdtemp(path.join(tmpdir(), "first-sink-"));
  const file = path.join(folder, "buffer.db");
  const store: TestWorker<FromStore> = workerOf((port) =>
    serveStore(port, { file, run: "run-1", maxBytes: 2 ** 30, maxAgeMs: 1e12, commitDelayMs: 5, ledgerIntervalMs: 20 }),
  );
  const sinks = keepingSinks();
  const delivery: TestWorker<FromDelivery> = workerOf((port) => runDelivery(port, { sinks: sinks.registry }));
  undo.push(async () => {
    delivery.port.postMessage({ type: "shutdown" });
    await expect.poll(delivery.isClosed).toBe(true);
    store.port.postMessage({ type: "stop" });
    await expect.poll(store.isClosed).toBe(true);
    await rm(folder, { recursive: true, force: true });
  });
  await expect.poll(() => store.told.some(({ type }) => type === "ready")).toBe(true);
  const toStore = new MessageChannel();
  const toDelivery = new MessageChannel();
  let isHeld = false;
  const held: unknown[] = [];
  toStore.port2.on("message", (message: unknown) => (isHeld ? held.push(message) : toDelivery.port2.postMessage(message)));
  toDelivery.port2.on("message", (message: unknown) => toStore.port2.postMessage(message));
  undo.push(async () => {
    toStore.port2.close();
    toDelivery.port2.close();
  });
  let seq = 0;
  return {
    written: sinks.written,
    link(): void {
      store.port.postMessage({ type: "delivery", port: toStore.port1, of: "every" }, [toStore.port1]);
      delivery.port.postMessage({ type: "store", port: toDelivery.port1, file }, [toDelivery.port1]);
    },
    hold: () => {
      isHeld = true;
    },
    release: () => {
      isHeld = false;
      for (const message of held.splice(0)) toDelivery.port2.postMessage(message);
    },
    /** Appends readouts, and waits until the store has committed them. */
    async append(count: number): Promise<void> {
      const batches = Array.from({ length: count }, () => {
        const time = START_MS + seq * 1000;
        const { payload, count: values, explorationCount } = encodeReadout(layout, plainReadout(VARIABLES, seq, time));
        return { seq: ++seq, layoutKey: layoutKey(layout), time, count: values, explorationCount, payload };
      });
      store.port.postMessage({ type: "layout", key: layoutKey(layout), layout });
      store.port.postMessage({ type: "append", batches });
      await expect.poll(() => store.told.some((message) => message.type === "committed" && message.upTo === seq)).toBe(true);
    },
    /** The sinks of the store from now on; resolves when the file has them. */
    async setSinks(...ids: readonly string[]): Promise<void> {
      store.port.postMessage({ type: "sinks", sinks: ids.map((id) => ({ id, takesExploration: false })) });
      const reader = openReader(file);
      try {
        await expect.poll(() => ids.every((id) => reader.position(id) !== undefined)).toBe(true);
      } finally {
        reader.close();
      }
    },
    start: (uuid: string) => delivery.port.postMessage({ type: "start", sink: mqttSpec(1, { uuid, name: uuid }) }),
    stop: (uuid: string) => delivery.port.postMessage({ type: "stop", uuid, removed: true }),
    isOpen: (uuid: string): boolean =>
      delivery.told.findLast((message) => message.type === "report")?.sinks.find((sink) => sink.uuid === uuid)?.state === "OK",
    ledger: (uuid: string): SinkLedger | undefined =>
      store.told.findLast((message) => message.type === "ledger")?.ledger.sinks.find(({ sink }) => sink === uuid),
  };
}

/** What was posted has arrived. */
const quiet = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100));

/** Of the readouts from <= number < to. */
const timesOf = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => START_MS + (from + i) * 1000);

test("a first sink added to a running collector is served", async () => {
  const { append, link, hold, release, setSinks, start, isOpen, written, ledger } = await setUp();
  await append(3);
  link();
  await quiet();
  hold();
  await setSinks("a");
  start("a");
  await expect.poll(() => isOpen("a")).toBe(true);
  release();
  await append(5);
  await expect.poll(() => written("a")).toEqual(timesOf(3, 8));
  await expect.poll(() => ledger("a")).toMatchObject({ accepted: 5 * VARIABLES, delivered: 5 * VARIABLES, pending: 0 });
});

test("a sink that takes the place of the only one is served", async () => {
  const { append, link, hold, release, setSinks, start, stop, isOpen, written, ledger } = await setUp();
  link();
  await setSinks("a");
  start("a");
  await append(2);
  await expect.poll(() => written("a")).toEqual(timesOf(0, 2));
  hold();
  stop("a");
  await setSinks();
  await append(3);
  release();
  await quiet();
  hold();
  await setSinks("b");
  start("b");
  await expect.poll(() => isOpen("b")).toBe(true);
  release();
  await append(5);
  await expect.poll(() => written("b")).toEqual(timesOf(5, 10));
  await expect.poll(() => ledger("b")).toMatchObject({ accepted: 5 * VARIABLES, delivered: 5 * VARIABLES, pending: 0 });
});

test("three sinks that are added at once to a running collector are served", async () => {
  const { append, link, hold, release, setSinks, start, isOpen, written } = await setUp();
  await append(3);
  link();
  await quiet();
  hold();
  await setSinks("a", "b", "c");
  start("a");
  await expect.poll(() => isOpen("a")).toBe(true);
  release();
  for (const uuid of ["b", "c"]) start(uuid);
  await append(5);
  for (const uuid of ["a", "b", "c"]) await expect.poll(() => written(uuid)).toEqual(timesOf(3, 8));
});

test("a sink gets each value once where values were committed between its attaching and what the store tells", async () => {
  const { append, link, hold, release, setSinks, start, isOpen, written } = await setUp();
  await append(3);
  link();
  await quiet();
  hold();
  await setSinks("a");
  await append(2);
  start("a");
  await expect.poll(() => isOpen("a")).toBe(true);
  await append(2);
  release();
  await append(2);
  await expect.poll(() => written("a").toSorted((x, y) => x - y)).toEqual(timesOf(3, 9));
});
