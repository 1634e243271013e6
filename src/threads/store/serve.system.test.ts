import { existsSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import type { Ledger, SinkLedger, StoredBatch } from "../../buffer/buffer.ts";
import { decodeReadout, layoutKey } from "../../buffer/codec.ts";
import type { DeliveryToStore, FromStore, StoreToDelivery, StoreWorkerData, ToStore } from "../../buffer/messages.ts";
import { openReader } from "../../buffer/reader.ts";
import { temporaryFolder } from "../../buffer/testing/folder.ts";
import { plainLayout, plainReadout } from "../../buffer/testing/readouts.ts";
import type { Layout } from "../../model/layout.ts";
import { StoreClient, type StoreClientOptions } from "./host.ts";
import { serveStore } from "./serve.ts";

const ENTRY = new URL("./worker.ts", import.meta.url);
/** A margin for machines under load; nothing here takes a second. */
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });

const layout = plainLayout(10);
const A = { id: "a", takesExploration: false };

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

function newFile(): string {
  const folder = temporaryFolder();
  undo.push(() => folder[Symbol.dispose]());
  return join(folder.path, "buffer.db");
}

const optionsOf = (file: string, more: Partial<StoreWorkerData> = {}): StoreWorkerData => ({
  file,
  run: "r1",
  maxBytes: 2 ** 30,
  maxAgeMs: 1e12,
  commitDelayMs: 20,
  ledgerIntervalMs: 50,
  ...more,
});

/** The store on this thread, and what it says. */
function startStore(options: StoreWorkerData, client?: StoreClient) {
  const { port1, port2 } = new MessageChannel();
  const said: FromStore[] = [];
  let closed = false;
  port1.on("message", (message: FromStore) => {
    said.push(message);
    client?.onMessage(message);
  });
  port1.on("close", () => {
    closed = true;
  });
  undo.push(() => {
    post({ type: "stop" });
    return poll(() => closed).toBe(true);
  });
  const post = (message: ToStore, transfer: MessagePort[] = []): void => port1.postMessage(message, transfer);
  client?.attach(post);
  serveStore(port2, options);
  const ledger = (): Ledger | undefined => said.findLast((message) => message.type === "ledger")?.ledger;
  const alarms = (): string[] => said.flatMap((message) => (message.type === "alarm" ? [message.alarm.text] : []));
  return { said, post, alarms, ledger, isClosed: () => closed };
}

/** The file takes no rows until the end of it, as on a full disk. */
function refuseRows(file: string) {
  const db = new Database(file);
  db.exec("CREATE TRIGGER refuse BEFORE INSERT ON batch BEGIN SELECT RAISE(ABORT, 'no room'); END");
  return {
    end() {
      db.exec("DROP TRIGGER refuse");
      db.close();
    },
  };
}

/** Connects a client to whatever store is started next. */
function newClient(more: Partial<StoreClientOptions> = {}) {
  const ledgers: (readonly SinkLedger[])[] = [];
  const client = new StoreClient({ run: "r1", onLedger: ({ sinks }) => ledgers.push(sinks), onAlarm: () => {}, ...more });
  return { client, ledgers };
}

function startWorker(file: string, client: StoreClient): Worker {
  const worker = new Worker(ENTRY, { workerData: optionsOf(file) });
  worker.on("message", (message: FromStore) => client.onMessage(message));
  client.attach((message) => worker.postMessage(message));
  undo.push(() => worker.terminate());
  return worker;
}

function startDelivery({ answers = true } = {}) {
  const { port1, port2 } = new MessageChannel();
  const batches: StoredBatch[] = [];
  const unstored: StoredBatch[] = [];
  const kinds: string[] = [];
  const said: StoreToDelivery[] = [];
  const send = (message: DeliveryToStore): void => port1.postMessage(message);
  const skippedTo = (): number | undefined => said.findLast((message) => message.type === "skipped")?.nextId;
  const losses = (): readonly string[] => said.findLast((message) => message.type === "losses")?.sinks ?? [];
  const layouts = (): readonly Layout[] => said.flatMap((message) => (message.type === "layout" ? [message.layout] : []));
  port1.on("message", (message: StoreToDelivery) => {
    kinds.push(message.type);
    said.push(message);
    if (message.type !== "committed" && message.type !== "unstored") return;
    (message.type === "committed" ? batches : unstored).push(...message.batches);
    if (answers) send({ type: "received" });
  });
  undo.push(() => port1.close());
  return { port: port2, batches, unstored, kinds, skippedTo, losses, layouts, send };
}

const rowsOf = (file: string): readonly StoredBatch[] => {
  const reader = openReader(file);
  const rows = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  reader.close();
  return rows;
};
const firstValues = (rows: readonly StoredBatch[]): unknown[] =>
  rows.map((row) => {
    const [reading] = decodeReadout(layout, row.payload).readings;
    return reading?.quality === "good" ? reading.value : undefined;
  });

describe("store", () => {
  it("keeps the changes alone and counts what they leave out, and hands whole readouts to sinks that serve current values", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file), client);
    const [every, latest] = [startDelivery(), startDelivery()];
    store.post({ type: "delivery", port: every.port, of: "every" }, [every.port]);
    store.post({ type: "delivery", port: latest.port, of: "latest" }, [latest.port]);
    client.setSinks([A]);
    const unchanged = Uint8Array.from([0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    client.append(layout, { ...plainReadout(10, 1), unchanged });
    client.setServing(true);
    client.append(layout, { ...plainReadout(10, 2), unchanged });
    await client.appendInSlices(layout, { ...plainReadout(10, 3), unchanged });
    await poll(() => [every.batches.length, latest.batches.length]).toEqual([3, 3]);
    const seen = (rows: readonly StoredBatch[]) =>
      rows.map(({ payload, count }) => [decodeReadout(layout, payload).readings.filter((one) => one !== undefined).length, count]);
    expect(seen(every.batches)).toEqual([1, 1, 1].map((n) => [n, n]));
    expect(every.batches[0]).not.toHaveProperty("shown");
    expect(seen(latest.batches)).toEqual([1, 10, 10].map((n) => [n, n]));
    expect(seen(rowsOf(file))).toEqual([1, 1, 1].map((n) => [n, n]));
    await poll(() => store.ledger()).toMatchObject({ suppressed: 27, rejected: {}, sinks: [{ accepted: 3, pending: 3 }] });
    store.post({ type: "stop" });
    await poll(store.isClosed).toBe(true);
    const next = startStore(optionsOf(file), client);
    await poll(() => next.ledger()).toMatchObject({ suppressed: 27 });
  });

  it("groups appends into commits, answers, and hands on what is committed with its layout", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file));
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    client.attach(store.post);
    client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
    client.setSinks([A]);
    for (let n = 0; n < 5; n++) client.append(layout, plainReadout(10, n));
    await poll(() => delivery.batches.length).toBe(5);
    expect(delivery.kinds).toEqual(["ready", "sinks", "layout", "committed"]);
    expect(firstValues(delivery.batches)).toEqual([0, 1, 2, 3, 4]);
    expect(store.said.filter(({ type }) => type === "committed")).toEqual([{ type: "committed", upTo: 5 }]);
    const ids = delivery.batches.map(({ id }) => id);
    delivery.send({ type: "acknowledge", acknowledgements: [{ sink: "a", ids: ids.slice(0, 4), delivered: 40, dropped: {} }] });
    await expect
      .poll(() => store.said.findLast((message) => message.type === "ledger")?.ledger.sinks)
      .toEqual([{ sink: "a", accepted: 50, delivered: 40, unconfirmed: 0, filtered: 0, pending: 10, dropped: {}, deliveredUnstored: 0 }]);
    expect(rowsOf(file).map(({ id }) => id)).toEqual(ids.slice(4));
  });

  it("puts a large layout together that crosses in parts, and forgets parts of a life before", async () => {
    const large = plainLayout(1201);
    const { client } = newClient();
    const store = startStore(optionsOf(newFile()));
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    store.post({ type: "layout_part", key: layoutKey(large), variables: large.variables.slice(0, 500) });
    client.attach(store.post);
    client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
    client.setSinks([A]);
    client.append(large, plainReadout(1201, 7));
    await poll(() => delivery.batches.length).toBe(1);
    expect(delivery.layouts()).toEqual([large]);
  });

  it("keeps to other bounds from the moment they are posted, in the file of now and in the next one", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file), client);
    client.setSinks([A]);
    client.append(layout, { ...plainReadout(10, 1), time: Date.now() - 60_000 });
    await poll(() => store.ledger()?.sinks[0]?.pending).toBe(10);
    store.post({ type: "bounds", bounds: { maxBytes: 2 ** 30, maxAgeMs: 1000, keepRemovedMs: 0 } });
    await poll(() => store.ledger()?.sinks[0]).toMatchObject({ pending: 0, dropped: { too_old: 10 } });
    for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name, { force: true });
    await poll(() => store.alarms().length).toBe(1);
    for (const n of [2, 3]) client.append(layout, { ...plainReadout(10, n), time: Date.now() - 60_000 });
    await poll(() => store.ledger()?.sinks[0]?.dropped).toMatchObject({ too_old: 20 });
  });

  it("hands the same to a second delivery; one of current values that falls behind gets the newest, and holds up no other", async () => {
    const { client } = newClient();
    const store = startStore(optionsOf(newFile(), { maxUnderWayBytes: 1 }));
    const [keeping, serving] = [startDelivery(), startDelivery({ answers: false })];
    store.post({ type: "delivery", port: keeping.port, of: "every" }, [keeping.port]);
    store.post({ type: "delivery", port: serving.port, of: "latest" }, [serving.port]);
    client.attach(store.post);
    client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
    client.setSinks([A]);
    client.append(layout, plainReadout(10, 0));
    await poll(() => serving.batches.length).toBe(1);
    expect(firstValues(serving.batches)).toEqual([0]);
    for (let n = 1; n < 4; n++) {
      client.append(layout, plainReadout(10, n));
      await poll(() => keeping.batches.length).toBe(n + 1);
    }
    expect(firstValues(keeping.batches)).toEqual([0, 1, 2, 3]);
    expect(serving.batches).toHaveLength(1);
    serving.send({ type: "received" });
    await poll(() => firstValues(serving.batches)).toEqual([0, 3]);
  });

  it("commits at once when much is waiting", async () => {
    const store = startStore(optionsOf(newFile(), { commitDelayMs: 1e6, commitBytes: 100, ledgerIntervalMs: 1e6 }));
    const { client } = newClient();
    client.attach(store.post);
    client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
    client.append(plainLayout(100), plainReadout(100, 0));
    await poll(() => store.said.map(({ type }) => type)).toContain("committed");
  });

  it("commits what it has when asked to stop, and tells the last ledger", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { commitDelayMs: 1e6, ledgerIntervalMs: 1e6 }));
    client.attach(store.post);
    client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
    client.setSinks([A]);
    client.append(layout, plainReadout(10, 7));
    client.setSinks([A]);
    store.post({ type: "stop" });
    await poll(store.isClosed).toBe(true);
    expect(store.said.slice(-2)).toEqual([
      {
        type: "ledger",
        ledger: expect.objectContaining({
          sinks: [{ sink: "a", accepted: 10, delivered: 0, unconfirmed: 0, filtered: 0, pending: 10, dropped: {}, deliveredUnstored: 0 }],
        }),
        bytes: expect.any(Number),
        fill: expect.objectContaining({ usedBytes: expect.any(Number) }),
      },
      { type: "stopped" },
    ]);
    expect(firstValues(rowsOf(file))).toEqual([7]);
  });

  it("goes on where it was: positions, ledger and batches of the life before", async () => {
    const file = newFile();
    for (const [life, expected] of [
      [1, 10],
      [2, 20],
    ] as const) {
      const { client, ledgers } = newClient();
      const store = startStore(optionsOf(file, { run: `r${life}` }));
      client.attach(store.post);
      client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
      client.setSinks([A]);
      client.append(layout, plainReadout(10, life));
      await poll(() => store.said.some(({ type }) => type === "committed")).toBe(true);
      store.post({ type: "stop" });
      await poll(store.isClosed).toBe(true);
      for (const message of store.said) if (message.type === "ledger") client.onMessage(message);
      expect(ledgers.at(-1)).toEqual([
        { sink: "a", accepted: expected, delivered: 0, unconfirmed: 0, filtered: 0, pending: expected, dropped: {}, deliveredUnstored: 0 },
      ]);
    }
    expect(firstValues(rowsOf(file))).toEqual([1, 2]);
  });

  it("keeps values while the file takes none, says so once, and commits them afterwards", async () => {
    const file = newFile();
    const store = startStore(optionsOf(file));
    const { client } = newClient();
    client.attach(store.post);
    client.onMessage({ type: "ready", life: 1, epoch: "", lastSeq: 0 });
    client.setSinks([A]);
    await poll(() => store.said.filter((message) => message.type === "ledger").at(-1)?.ledger.sinks.length).toBe(1);
    const refusal = refuseRows(file);
    client.append(layout, plainReadout(10, 1));
    await poll(store.alarms).toEqual([expect.stringMatching(/takes no values: no room/)]);
    client.append(layout, plainReadout(10, 2));
    refusal.end();
    await poll(() => store.said.find((message) => message.type === "committed")?.upTo).toBe(2);
    expect(firstValues(rowsOf(file))).toEqual([1, 2]);
    await poll(() => store.alarms().slice(1)).toEqual([expect.stringMatching(/takes values again, after \d+ s/)]);
  });

  it("puts a new file in the place of one that turns out damaged at run, and takes what was unanswered", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { retryMs: 20 }), client);
    client.setSinks([A]);
    await poll(() => store.ledger()?.sinks.length).toBe(1);
    const before = store.ledger()?.epoch;
    const other = new Database(file);
    other.unsafeMode();
    other.pragma("writable_schema = ON");
    other.exec("UPDATE sqlite_schema SET rootpage = 9999 WHERE name = 'batch'; PRAGMA schema_version = 1000");
    other.close();
    client.append(layout, plainReadout(10, 1));
    await poll(() => store.said.find((message) => message.type === "committed")?.upTo).toBe(1);
    expect(store.alarms()).toEqual([expect.stringMatching(/is damaged \(.*malformed.*\): it is kept as .+\.damaged-/)]);
    expect(firstValues(rowsOf(file))).toEqual([1]);
    await poll(() => store.ledger()).toMatchObject({ lost: null, sinks: [{ sink: "a", accepted: 10 }] });
    expect(store.ledger()?.epoch).toBe(before);
  });

  it("begins a new file where it was removed while in use", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { retryMs: 20 }), client);
    client.setSinks([A]);
    client.append(layout, plainReadout(10, 1));
    await poll(() => store.said.some(({ type }) => type === "committed")).toBe(true);
    rmSync(file);
    await poll(store.alarms).toEqual([expect.stringMatching(/removed or replaced while it was in use\): it is gone/)]);
    client.append(layout, plainReadout(10, 2));
    await poll(() => existsSync(file) && firstValues(rowsOf(file))).toEqual([2]);
    const reader = openReader(file);
    expect(reader.losses("a")).toEqual([expect.objectContaining({ reason: "lost", number: 1, values: null })]);
    reader.close();
  });

  it("waits where no file can be, hands on what waited for long, and stores again once it can", async () => {
    const file = newFile();
    const blocker = dirname(file);
    rmSync(blocker, { recursive: true });
    writeFileSync(blocker, "");
    const { client } = newClient();
    const store = startStore(optionsOf(file, { retryMs: 20, unstoredAfterMs: 100 }), client);
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    client.setSinks([A]);
    client.append(layout, plainReadout(10, 1));
    await poll(() => delivery.unstored.length).toBe(1);
    expect(delivery.unstored[0]).toMatchObject({ id: -1, layout: -1, count: 10 });
    expect(delivery.kinds).toContain("layout");
    delivery.send({ type: "delivered_unstored", sink: "a", values: 10 });
    await poll(() => client.unanswered().batches).toBe(0);
    expect(store.alarms()).toEqual([expect.stringMatching(/takes no values: (ENOTDIR|EEXIST)/)]);
    rmSync(blocker);
    await poll(store.ledger).toBeDefined();
    client.append(layout, plainReadout(10, 2));
    await poll(() => store.ledger()).toMatchObject({
      rejected: { not_stored: 10 },
      sinks: [{ sink: "a", accepted: 10, pending: 10 }],
    });
    expect(firstValues(rowsOf(file))).toEqual([2]);
  });

  it("rejects and hands on what the file does not take, and counts it over restarts", async () => {
    const file = newFile();
    const { client } = newClient();
    const options = optionsOf(file, { retryMs: 20, unstoredAfterMs: 60 });
    const store = startStore(options, client);
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    client.setSinks([A]);
    await poll(() => store.ledger()?.sinks.length).toBe(1);
    const refusal = refuseRows(file);
    for (let n = 1; n <= 3; n++) {
      client.append(layout, plainReadout(10, n));
      await poll(() => delivery.unstored.length).toBe(n);
    }
    delivery.send({ type: "delivered_unstored", sink: "a", values: 20 });
    refusal.end();
    await poll(() => store.ledger()?.rejected).toEqual({ not_stored: 30 });
    client.append(layout, plainReadout(10, 4));
    await poll(() => store.ledger()).toMatchObject({
      rejected: { not_stored: 30 },
      sinks: [{ sink: "a", accepted: 10, delivered: 0, unconfirmed: 0, filtered: 0, pending: 10, deliveredUnstored: 20 }],
    });
    expect(delivery.batches.map(({ id }) => id)).toHaveLength(1);
    store.post({ type: "stop" });
    await poll(store.isClosed).toBe(true);
    const next = startStore({ ...options, run: "r2" }, newClient().client);
    await poll(() => next.ledger()).toMatchObject({ rejected: { not_stored: 30 }, sinks: [{ deliveredUnstored: 20, pending: 10 }] });
  });

  it("keeps values in memory while the disk is full and the broker away, shows them to sinks of current values, and stores them then", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { retryMs: 20, unstoredAfterMs: 40 }), client);
    const [keeping, serving] = [startDelivery(), startDelivery()];
    store.post({ type: "delivery", port: keeping.port, of: "every" }, [keeping.port]);
    store.post({ type: "delivery", port: serving.port, of: "latest" }, [serving.port]);
    keeping.send({ type: "sinks_open", open: 0, closed: 1 });
    client.setSinks([A]);
    await poll(() => store.ledger()?.sinks.length).toBe(1);
    const refusal = refuseRows(file);
    for (let n = 1; n <= 3; n++) {
      client.append(layout, plainReadout(10, n));
      await poll(() => serving.unstored.length).toBe(n);
    }
    expect(client.unanswered().batches).toBe(3);
    expect(store.ledger()?.rejected).toEqual({});
    refusal.end();
    await poll(() => store.ledger()?.sinks[0]).toMatchObject({ accepted: 30, pending: 30 });
    client.append(layout, plainReadout(10, 4));
    await poll(() => serving.batches.length).toBe(1);
    expect(firstValues(keeping.batches)).toEqual([1, 2, 3, 4]);
    expect(firstValues(serving.batches)).toEqual([4]);
    expect(store.ledger()?.rejected).toEqual({});
  });

  it("hands out unstored what waits once the broker is back, and where others take values only what has no room", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { retryMs: 20, unstoredAfterMs: 40, maxWaitingBytes: 150 }), client);
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    delivery.send({ type: "sinks_open", open: 1, closed: 1 });
    client.setSinks([A]);
    await poll(() => store.ledger()?.sinks.length).toBe(1);
    const refusal = refuseRows(file);
    for (let n = 1; n <= 5; n++) client.append(layout, plainReadout(10, n));
    await poll(() => delivery.unstored.length).toBe(5);
    // Counted while the disk is still full.
    await poll(() => store.ledger()?.rejected).toEqual({ not_stored: 50 });
    client.append(layout, plainReadout(10, 6));
    await poll(() => client.unanswered().batches).toBe(1);
    delivery.send({ type: "sinks_open", open: 2, closed: 0 });
    await poll(() => store.ledger()?.rejected).toEqual({ not_stored: 60 });
    expect(firstValues(delivery.unstored)).toEqual([1, 2, 3, 4, 5, 6]);
    refusal.end();
  });

  it("says what is lost where it ends while the disk is full, and counts it at the next start, once", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { retryMs: 20, unstoredAfterMs: 40 }), client);
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    client.setSinks([A]);
    await poll(() => store.ledger()?.sinks.length).toBe(1);
    const refusal = refuseRows(file);
    client.append(layout, plainReadout(10, 1));
    await poll(() => store.ledger()?.rejected).toEqual({ not_stored: 10 });
    delivery.send({ type: "sinks_open", open: 0, closed: 1 });
    await poll(() => delivery.unstored.length).toBe(1);
    // Counted in the file before more is read: what is not is lost with the others.
    const reader = openReader(file);
    await poll(() => reader.losses(A.id).map(({ values }) => values)).toEqual([10]);
    for (let n = 2; n <= 3; n++) client.append(layout, plainReadout(10, n));
    await client.close(100);
    store.post({ type: "stop" });
    await poll(store.isClosed).toBe(true);
    expect(store.alarms().at(-1)).toMatch(/takes no values, and the collector ends: 20 values of 2 readouts .* are lost/);
    refusal.end();
    const next = startStore(optionsOf(file, { run: "r2" }), newClient().client);
    await poll(() => next.ledger()?.rejected).toEqual({ not_stored: 30 });
    expect(next.alarms()).toEqual([expect.stringMatching(/ended while the buffer .* took no values: 20 values/)]);
    const span = { from: plainReadout(10, 1).time, to: plainReadout(10, 3).time };
    expect(reader.losses(A.id)).toEqual([{ reason: "not_stored", number: 1, values: 30, ...span }]);
    reader.close();
    next.post({ type: "stop" });
    await poll(next.isClosed).toBe(true);
    const last = startStore(optionsOf(file, { run: "r3" }), newClient().client);
    await poll(() => last.ledger()?.rejected).toEqual({ not_stored: 30 });
    expect(last.alarms()).toEqual([]);
  });

  it("counts what found no room to wait in, once over restarts of the store", async () => {
    const file = newFile();
    const { client } = newClient({ maxUnansweredBytes: 1000 });
    for (let n = 0; n < 10; n++) client.append(layout, plainReadout(10, n));
    const lost = client.rejected().values;
    expect(lost).toBeGreaterThan(0);
    for (let life = 0; life < 2; life++) {
      const store = startStore(optionsOf(file), client);
      await poll(() => store.ledger()?.rejected).toEqual({ overflow: lost });
      store.post({ type: "stop" });
      await poll(store.isClosed).toBe(true);
    }
  });

  it("posts no more to the delivery than it takes, and says what it has left to the file", async () => {
    const { client } = newClient();
    const store = startStore(optionsOf(newFile(), { maxUnderWayBytes: 1, commitDelayMs: 1 }), client);
    const delivery = startDelivery({ answers: false });
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    client.setSinks([A]);
    for (let n = 1; n <= 5; n++) {
      client.append(layout, plainReadout(10, n));
      await poll(() => client.unanswered().batches).toBe(0);
    }
    await poll(() => delivery.batches.length).toBe(1);
    delivery.send({ type: "received" });
    await poll(() => delivery.skippedTo()).toBe(6);
    client.append(layout, plainReadout(10, 6));
    await poll(() => delivery.batches.map(({ id }) => id)).toEqual([1, 6]);
  });

  it("says which sinks have losses to tell", async () => {
    const file = newFile();
    const { client } = newClient();
    const store = startStore(optionsOf(file, { maxAgeMs: 1 }), client);
    const delivery = startDelivery();
    store.post({ type: "delivery", port: delivery.port, of: "every" }, [delivery.port]);
    client.setSinks([A]);
    client.append(layout, plainReadout(10, 1, Date.now() - 1000));
    await poll(delivery.losses).toEqual(["a"]);
    const reader = openReader(file);
    const [loss] = reader.losses("a");
    expect(loss).toMatchObject({ reason: "too_old", number: 1, values: 10 });
    delivery.send({ type: "losses_published", losses: [{ sink: "a", reason: "too_old", number: 1, values: 10 }] });
    await poll(() => reader.losses("a")).toEqual([]);
    reader.close();
  });
});

it("tells the account of new sinks at once, and not only with the next look", async () => {
  const store = startStore(optionsOf(newFile(), { ledgerIntervalMs: 3_600_000 }));
  await poll(() => store.said.some(({ type }) => type === "ready")).toBe(true);
  store.post({ type: "sinks", sinks: [A] });
  await poll(() => store.ledger()?.sinks).toMatchObject([{ sink: "a", accepted: 0, pending: 0 }]);
});

describe("store worker", () => {
  it("loses nothing unanswered and stores nothing twice when it is killed again and again", async () => {
    const file = newFile();
    const { client } = newClient();
    client.setSinks([A]);
    let next = 0;
    const appending = setInterval(() => {
      for (let i = 0; i < 5; i++) expect(client.append(layout, plainReadout(10, next++))).toBe(true);
    }, 2);
    undo.push(() => clearInterval(appending));
    for (let round = 0; round < 4; round++) {
      const worker = startWorker(file, client);
      const before = client.unanswered().batches;
      await poll(() => client.unanswered().batches < before || next - client.unanswered().batches > before).toBe(true);
      // While batches are on their way, committed and not yet answered, or waiting: whichever it is.
      await worker.terminate();
    }
    clearInterval(appending);
    const worker = startWorker(file, client);
    expect(await client.close(10_000)).toBe(true);
    worker.postMessage({ type: "stop" } satisfies ToStore);
    await new Promise((resolve) => worker.once("exit", resolve));
    expect(next).toBeGreaterThan(20);
    expect(firstValues(rowsOf(file))).toEqual(Array.from({ length: next }, (_, i) => i % 65_536));
  }, 40_000);
});
