import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startBroker, type TestBroker } from "../../test/support/broker.ts";
import { sourceReport } from "../../test/support/source-report.ts";
import type { SinkLedger } from "../buffer/buffer.ts";
import { encodeReadout, layoutKey } from "../buffer/codec.ts";
import type { FromStore, StoreWorkerData } from "../buffer/messages.ts";
import { plainLayout, plainReadout } from "../buffer/testing/readouts.ts";
import type { SinkReport } from "../model/report.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { serveStore } from "../threads/store/serve.ts";
import { runDelivery } from "./engine.ts";
import type { FromDelivery, ToDelivery } from "./messages.ts";
import { mqttSpec, type TestWorker, workerOf } from "./testing/rig.ts";

const VARIABLES = 4;
const START_MS = 1_800_000_000_000;

let folder: string;
let cleanups: (() => Promise<void>)[];
let readouts: number;
let seq: number;
let store: TestWorker<FromStore>;
let delivery: TestWorker<FromDelivery>;

const file = () => path.join(folder, "buffer.sqlite");
const ledger = (sink = "sink-1"): SinkLedger | undefined =>
  store.told
    .filter((m) => m.type === "ledger")
    .at(-1)
    ?.ledger.sinks.find((one) => one.sink === sink);
const reportOf = (sink = "sink-1"): SinkReport | undefined =>
  delivery.told
    .filter((m) => m.type === "report")
    .at(-1)
    ?.sinks.find((one) => one.uuid === sink);
const ask = (message: ToDelivery, transfer: readonly MessagePort[] = []) => delivery.port.postMessage(message, transfer);

async function startStore(more: Partial<StoreWorkerData> = {}): Promise<void> {
  seq = 0;
  store = workerOf((port) =>
    serveStore(port, {
      file: file(),
      run: `${Math.random()}`,
      maxBytes: 2 ** 30,
      maxAgeMs: 1e12,
      commitDelayMs: 10,
      ledgerIntervalMs: 20,
      ...more,
    }),
  );
  await expect.poll(() => store.told.some((m) => m.type === "ready")).toBe(true);
}

function startDelivery(options: Parameters<typeof runDelivery>[1] = {}): void {
  delivery = workerOf((port) => runDelivery(port, options));
}

function link(): void {
  const { port1, port2 } = new MessageChannel();
  store.port.postMessage({ type: "delivery", port: port1, of: "every" }, [port1]);
  ask({ type: "store", port: port2, file: file() }, [port2]);
}

const setSinks = (...ids: readonly string[]) =>
  store.port.postMessage({ type: "sinks", sinks: ids.map((id) => ({ id, takesExploration: false })) });

/** Readouts of one second each: their first value is their number. */
function append(count: number, source = "press-1"): void {
  const layout = plainLayout(VARIABLES, { scalar: "uint32" }, source);
  store.port.postMessage({ type: "layout", key: layoutKey(layout), layout });
  const batches = Array.from({ length: count }, () => {
    const number = readouts++;
    const encoded = encodeReadout(layout, plainReadout(VARIABLES, number, START_MS + number * 1000));
    seq++;
    return {
      seq,
      layoutKey: layoutKey(layout),
      time: START_MS + number * 1000,
      count: encoded.count,
      explorationCount: encoded.explorationCount,
      payload: encoded.payload,
    };
  });
  store.port.postMessage({ type: "append", batches });
}

interface Arrived {
  readonly id: string;
  readonly backlog?: boolean;
  readonly readouts: readonly { readonly ts: string; readonly values: { readonly v0: number } }[];
}
const messagesOf = (broker: TestBroker): Arrived[] =>
  broker.received.filter((m) => m.topic === "plant/values").map((m) => JSON.parse(m.payload));
const numbersOf = (broker: TestBroker): number[] => messagesOf(broker).flatMap((m) => m.readouts.map((r) => r.values.v0));
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);
const sorted = (numbers: readonly number[]) => [...new Set(numbers)].sort((a, b) => a - b);

const broker = async (options: Parameters<typeof startBroker>[0] = {}): Promise<TestBroker> => {
  const started = await startBroker(options);
  cleanups.push(() => started.stop());
  return started;
};

async function shutDown(): Promise<void> {
  ask({ type: "shutdown" });
  await expect.poll(delivery.isClosed, { timeout: 5000 }).toBe(true);
}

async function stopStore(): Promise<void> {
  store.port.postMessage({ type: "stop" });
  await expect.poll(store.isClosed).toBe(true);
}

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "delivery-"));
  cleanups = [];
  readouts = 0;
  await startStore();
  startDelivery();
});

afterEach(async () => {
  if (!delivery.isClosed()) await shutDown();
  if (!store.isClosed()) await stopStore();
  for (const cleanup of cleanups.reverse()) await cleanup();
  await rm(folder, { recursive: true, force: true });
});

const expectBooked = (values: number) =>
  expect
    .poll(() => ledger(), { timeout: 8000 })
    .toMatchObject({ accepted: values * VARIABLES, delivered: values * VARIABLES, pending: 0, dropped: {} });

describe("a sink that is removed", () => {
  test("gets nothing more at once, tells what was under way, and gets the rest once when it returns", async () => {
    await stopStore();
    await startStore({ keepRemovedMs: 1e9 });
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    await expect.poll(() => reportOf()?.state, { timeout: 5000 }).toBe("OK");
    append(3);
    await expectBooked(3);

    far.hold(true);
    append(2);
    await expect.poll(() => far.held(), { timeout: 5000 }).toBeGreaterThan(0);
    setSinks();
    ask({ type: "stop", uuid: "sink-1", removed: true });
    far.hold(false);
    await expect.poll(() => reportOf(), { timeout: 8000 }).toBeUndefined();
    // Read while it is removed.
    append(2);
    await expect.poll(() => ledger()?.accepted, { timeout: 5000 }).toBe(5 * VARIABLES);
    setSinks("sink-1");
    append(1);
    ask({ type: "start", sink: mqttSpec(far.port) });
    await expectBooked(6);
    expect(numbersOf(far).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 7]);
  });

  test("is not written what waits for its interval", async () => {
    await stopStore();
    await startStore({ keepRemovedMs: 1e9 });
    const far = await broker();
    const slow = mqttSpec(far.port, {}, { publish_interval: 600_000 });
    setSinks("sink-1");
    ask({ type: "start", sink: slow });
    link();
    await expect.poll(() => reportOf()?.state, { timeout: 5000 }).toBe("OK");
    append(5);
    await expect.poll(() => ledger()?.pending, { timeout: 5000 }).toBe(5 * VARIABLES);
    setSinks();
    ask({ type: "stop", uuid: "sink-1", removed: true });
    await expect.poll(() => reportOf(), { timeout: 8000 }).toBeUndefined();
    expect(messagesOf(far)).toEqual([]);
    expect(ledger()).toMatchObject({ pending: 5 * VARIABLES, delivered: 0, dropped: {} });
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port) });
    await expectBooked(5);
    expect(sorted(numbersOf(far))).toEqual(upTo(5));
  });
});

describe("one sink", () => {
  test("values arrive in order, once, and are acknowledged", async () => {
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    await expect.poll(() => reportOf()?.state).toBe("OK");
    append(5);
    append(5);
    await expectBooked(10);
    expect(numbersOf(far)).toEqual(upTo(10));
    expect(messagesOf(far).every((m) => m.backlog === undefined)).toBe(true);
    expect(reportOf()).toMatchObject({
      uuid: "sink-1",
      name: "broker",
      type: "mqtt",
      endpoint: `127.0.0.1:${far.port}`,
      error: null,
      next_retry_at: null,
    });
    expect(textsOf(reportOf()?.warnings).join()).toMatch(/MQTT 3\.1\.1/);
  });

  test("readouts of one source within publish_interval make one message", async () => {
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port, {}, { publish_interval: 5000 }) });
    link();
    await expect.poll(() => reportOf()?.state).toBe("OK");
    append(15);
    append(15, "press-2");
    append(1);
    append(1, "press-2");
    await expect.poll(() => messagesOf(far).map((m) => m.readouts.length)).toEqual([5, 5, 5, 5, 5, 5]);
    await shutDown();
    await expect.poll(() => sorted(numbersOf(far))).toEqual(upTo(32));
    await expectBooked(32);
  });

  test("a broker that is down at the start gets everything when it comes", async () => {
    const down = await startBroker();
    await down.stop();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(down.port) });
    link();
    append(20);
    await expect.poll(() => reportOf()).toMatchObject({ state: "ERROR", error: { reason: { type: "CONNECTION_REFUSED" } } });
    expect(reportOf()?.next_retry_at).toMatch(/Z$/);
    await expect.poll(() => ledger()).toMatchObject({ accepted: 80, pending: 80 });
    const far = await broker({ port: down.port });
    await expectBooked(20);
    expect(numbersOf(far)).toEqual(upTo(20));
    expect(messagesOf(far).every((m) => m.backlog === true)).toBe(true);
    const logged = delivery.told.filter((m) => m.type === "log" && m.level !== "debug");
    expect(logged.map((m) => m.type === "log" && m.message)).toEqual([
      "the sink cannot be reached; values wait in the buffer",
      "the sink is connected",
    ]);
    expect(logged[0]).toMatchObject({ fields: { sink: "broker", reason: { type: "CONNECTION_REFUSED" }, nextStep: expect.any(String) } });
  });

  test("a broker that restarts and cuts connections loses nothing", async () => {
    const first = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(first.port) });
    link();
    await expect.poll(() => reportOf()?.state).toBe("OK");
    append(10);
    await expect.poll(() => numbersOf(first).length).toBeGreaterThan(3);
    first.drop();
    append(10);
    await expect.poll(() => first.connections(), { timeout: 5000 }).toBeGreaterThan(2);
    first.hold(true);
    append(10);
    await expect.poll(() => first.held()).toBeGreaterThan(0);
    await first.stop();
    append(10);
    await expect.poll(() => reportOf()?.state).toBe("ERROR");
    const second = await broker({ port: first.port });
    append(10);
    await expectBooked(50);
    expect(sorted([...numbersOf(first), ...numbersOf(second)])).toEqual(upTo(50));
  });

  test("more than the memory may hold waits in the file", async () => {
    await shutDown();
    startDelivery({ maxLiveBytes: 20_000, maxReadBytes: 5000 });
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    await expect.poll(() => reportOf()?.state).toBe("OK");
    far.hold(true);
    for (let i = 0; i < 10; i++) append(50);
    await expect.poll(() => ledger()?.accepted).toBe(500 * VARIABLES);
    // The broker takes the next packet only when all messages of the one before it are answered.
    await expect.poll(() => far.held()).toBeGreaterThan(0);
    far.hold(false);
    await expectBooked(500);
    expect(sorted(numbersOf(far))).toEqual(upTo(500));
    expect(numbersOf(far)).toHaveLength(500);
    expect(messagesOf(far).some((m) => m.backlog)).toBe(true);
  });
});

describe("starting again", () => {
  test("a new delivery goes on where the last one was, and the same rows have the same ids", async () => {
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    await expect.poll(() => reportOf()?.state).toBe("OK");
    append(10);
    await expectBooked(10);
    far.hold(true);
    append(4);
    await expect.poll(() => far.held()).toBeGreaterThan(0);
    far.drop();
    await shutDown();
    expect(numbersOf(far)).toEqual(upTo(10));
    far.hold(false);
    startDelivery();
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    append(1);
    await expectBooked(15);
    expect(sorted(numbersOf(far))).toEqual(upTo(15));
    const byRow = new Map<number, Set<string>>();
    for (const { id, readouts: some } of messagesOf(far))
      for (const { values } of some) byRow.set(values.v0, (byRow.get(values.v0) ?? new Set()).add(id));
    expect([...byRow.values()].every((ids) => ids.size === 1)).toBe(true);
  });

  test("a new store on the same file goes on, also with what was read meanwhile", async () => {
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    await expect.poll(() => reportOf()?.state).toBe("OK");
    append(5);
    await expectBooked(5);
    await stopStore();
    await startStore();
    append(5);
    await expect.poll(() => ledger()?.accepted).toBe(10 * VARIABLES);
    link();
    setSinks("sink-1");
    append(5);
    await expectBooked(15);
    expect(sorted(numbersOf(far))).toEqual(upTo(15));
  });

  test("a sink that the store learns of later begins there", async () => {
    const far = await broker();
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    append(5);
    await expect.poll(() => store.told.filter((m) => m.type === "committed").at(-1)).toEqual({ type: "committed", upTo: 5 });
    setSinks("sink-1");
    append(5);
    await expectBooked(5);
    expect(numbersOf(far)).toEqual([5, 6, 7, 8, 9]);
  });
});

describe("several sinks", () => {
  test("one that is dead hurts no other", async () => {
    const dead = await startBroker();
    await dead.stop();
    const far = await broker();
    setSinks("sink-1", "sink-2");
    ask({ type: "start", sink: mqttSpec(far.port) });
    ask({ type: "start", sink: mqttSpec(dead.port, { uuid: "sink-2", name: "dead" }) });
    link();
    await expect.poll(() => [reportOf()?.state, reportOf("sink-2")?.state]).toEqual(["OK", "ERROR"]);
    append(10);
    await expectBooked(10);
    expect(numbersOf(far)).toEqual(upTo(10));
    expect(ledger("sink-2")).toMatchObject({ accepted: 40, delivered: 0, pending: 40 });
  });

  test("one that cannot run as configured says which field, and the others go on", async () => {
    const far = await broker();
    setSinks("sink-1");
    ask({ type: "start", sink: mqttSpec(far.port, { uuid: "a", settings: { in_flight: 65 } }) });
    ask({ type: "start", sink: mqttSpec(far.port, { uuid: "b", type: "kafka" }) });
    ask({ type: "start", sink: mqttSpec(far.port, { uuid: "c" }, { publish_interval: 0 }) });
    ask({ type: "start", sink: mqttSpec(far.port, { uuid: "d", missingSecret: "sinks.broker.password_file: no such file" }) });
    ask({ type: "start", sink: mqttSpec(far.port, { uuid: "e" }, { host: 5 }) });
    ask({ type: "start", sink: mqttSpec(far.port) });
    link();
    append(3);
    await expectBooked(3);
    const told = (uuid: string) => [reportOf(uuid)?.state, reportOf(uuid)?.error?.condition, reportOf(uuid)?.error?.detail];
    expect(told("a")).toEqual(["ERROR", "configuration_invalid", expect.stringContaining("sinks.broker.in_flight: ")]);
    expect(told("b")).toEqual(["ERROR", "type_not_supported", expect.stringContaining('"kafka"')]);
    expect(told("c")).toEqual(["ERROR", "interval_invalid", expect.stringContaining("publish_interval is 0")]);
    expect(told("d")).toEqual(["ERROR", "secret_missing", "sinks.broker.password_file: no such file"]);
    expect(told("e")).toEqual(["ERROR", "configuration_invalid", expect.stringContaining("details.host: ")]);
  });

  test("a changed one starts again, a removed one is gone and has cleared its retained topics", async () => {
    const first = await broker();
    const second = await broker();
    const source = sourceReport("press-1", { layout: plainLayout(VARIABLES) });
    setSinks("sink-1");
    ask({ type: "sources", sources: [source] });
    ask({ type: "start", sink: mqttSpec(first.port) });
    link();
    const { layout: _, ...withoutLayout } = source;
    ask({ type: "sources", sources: [{ ...withoutLayout, since: "2026-11-20T09:00:01Z" }] });
    const topics = ["plant/values/meta/press-1", "plant/values/status", "plant/values/status/press-1"];
    await expect.poll(() => [...first.retained.keys()].sort()).toEqual(topics);
    expect(first.retained.get("plant/values/status")).toBe('{"state":"online"}');
    ask({ type: "stop", uuid: "sink-1", removed: false });
    ask({ type: "start", sink: mqttSpec(second.port) });
    append(2);
    await expectBooked(2);
    expect(first.retained.get("plant/values/status")).toBe('{"state":"offline"}');
    await expect.poll(() => [...second.retained.keys()].sort()).toEqual(topics);
    ask({ type: "stop", uuid: "sink-1", removed: true });
    await expect.poll(() => [...second.retained.keys()]).toEqual([]);
    await expect.poll(() => reportOf()).toBeUndefined();
  });
});

test("what cannot be read is counted as damaged and holds up nothing", async () => {
  const far = await broker();
  setSinks("sink-1");
  ask({ type: "start", sink: mqttSpec(far.port) });
  link();
  await expect.poll(() => reportOf()?.state).toBe("OK");
  append(1);
  const layout = plainLayout(VARIABLES, { scalar: "uint32" });
  seq++;
  store.port.postMessage({
    type: "append",
    batches: [{ seq, layoutKey: layoutKey(layout), time: START_MS, count: 4, explorationCount: 0, payload: new Uint8Array([9, 9]) }],
  });
  append(1);
  await expect.poll(() => ledger()).toMatchObject({ accepted: 12, delivered: 8, pending: 0, dropped: { damaged: 4 } });
  expect(sorted(numbersOf(far))).toEqual([0, 1]);
});

test("shutting down does not wait for a broker that does not answer", async () => {
  const far = await broker();
  setSinks("sink-1");
  ask({ type: "start", sink: mqttSpec(far.port) });
  link();
  await expect.poll(() => reportOf()?.state).toBe("OK");
  far.hold(true);
  append(3);
  await expect.poll(() => far.held()).toBeGreaterThan(0);
  await shutDown();
  expect(delivery.told.at(-1)).toEqual({ type: "stopped" });
  expect(reportOf()?.state).toBe("STOPPED");
});
