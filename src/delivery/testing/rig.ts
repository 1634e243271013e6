import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { expect, vi } from "vitest";
import type { Ledger, SinkLedger } from "../../buffer/buffer.ts";
import { encodeReadout, layoutKey } from "../../buffer/codec.ts";
import type { FromStore, StoreWorkerData, ToStore } from "../../buffer/messages.ts";
import { plainLayout, plainReadout } from "../../buffer/testing/readouts.ts";
import type { SinkReport } from "../../model/report.ts";
import { serveStore } from "../../threads/store/serve.ts";
import { type DeliveryOptions, runDelivery } from "../engine.ts";
import type { FromDelivery, SinkSpec, ToDelivery } from "../messages.ts";

/** Store and delivery as they run in their workers, on this thread, with a file of their own. */
export interface Rig {
  readonly file: string;
  readonly told: readonly FromDelivery[];
  post(message: ToStore): void;
  ask(message: ToDelivery): void;
  /** Starts sinks that keep the whole history, and links the workers. */
  start(...sinks: readonly SinkSpec[]): void;
  /** Readouts of `variables` uint32 at `timeOf`, whose first value is their running number from 0 per rig. */
  append(count: number, more?: Appended): void;
  /** Appended so far: the next one has this number. */
  readouts(): number;
  /** The delivery opens the file again. */
  relink(): void;
  ledger(): Ledger | undefined;
  sink(uuid?: string): SinkLedger | undefined;
  report(uuid?: string): SinkReport | undefined;
  stop(): Promise<void>;
}

export interface Appended {
  readonly source?: string;
  readonly variables?: number;
  /** Epoch ms by running number. */
  readonly timeOf?: (number: number) => number;
  /** Instead of numbers: the texts of the readout with this number. */
  readonly textsOf?: (number: number) => readonly string[];
}

export const RIG_START_MS = 1_800_000_000_000;

export const mqttSpec = (port: number, more: Partial<SinkSpec> = {}, details: object = {}): SinkSpec => ({
  uuid: "sink-1",
  name: "broker",
  type: "mqtt",
  details: { type: "mqtt", host: "127.0.0.1", port, topic: "plant/values", publish_interval: 100, ...details },
  settings: {},
  secrets: {},
  publishIntervalUnit: "milliseconds",
  ...more,
});

/** Also in concurrent tests, which expect.poll does not allow. */
const until = (isSo: () => boolean, timeoutMs: number): Promise<void> =>
  vi.waitFor(() => expect(isSo()).toBe(true), { timeout: timeoutMs, interval: 20 });

export async function startRig(storeOptions: Partial<StoreWorkerData> = {}, deliveryOptions: DeliveryOptions = {}): Promise<Rig> {
  const folder = await mkdtemp(path.join(tmpdir(), "delivery-"));
  const file = path.join(folder, "buffer.db");
  const store = workerOf<FromStore>((port) =>
    serveStore(port, { file, run: "run-1", maxBytes: 2 ** 30, maxAgeMs: 1e12, commitDelayMs: 10, ledgerIntervalMs: 20, ...storeOptions }),
  );
  const link = () => {
    const { port1, port2 } = new MessageChannel();
    store.port.postMessage({ type: "delivery", port: port1, of: "every" }, [port1]);
    ask({ type: "store", port: port2, file }, [port2]);
  };
  store.port.on("message", (message: FromStore) => {
    if (message.type !== "ready" || message.life === 1) return;
    store.port.postMessage({ type: "begin", life: message.life });
    link();
  });
  const delivery = workerOf<FromDelivery>((port) => runDelivery(port, deliveryOptions));
  await until(() => store.told.some((m) => m.type === "ready"), 10_000);
  let seq = 0;
  let readouts = 0;
  const ask = (message: ToDelivery, transfer: readonly MessagePort[] = []) => delivery.port.postMessage(message, transfer);
  const ledger = () => store.told.findLast((m) => m.type === "ledger")?.ledger;
  return {
    file,
    told: delivery.told,
    post: (message) => store.port.postMessage(message),
    ask,
    start(...sinks) {
      store.port.postMessage({ type: "sinks", sinks: sinks.map(({ uuid }) => ({ id: uuid, takesExploration: false })) });
      for (const sink of sinks) ask({ type: "start", sink });
      link();
    },
    append(count, { source = "press-1", variables = 4, timeOf = (number: number) => RIG_START_MS + number * 1000, textsOf } = {}) {
      const layout = plainLayout(variables, { scalar: textsOf ? "string" : "uint32" }, source);
      store.port.postMessage({ type: "layout", key: layoutKey(layout), layout });
      const batches = Array.from({ length: count }, () => {
        const number = readouts++;
        const time = timeOf(number);
        const numbers = plainReadout(variables, number, time);
        const texts = textsOf?.(number).map((value) => ({ quality: "good" as const, value }));
        const { payload, count: values, explorationCount } = encodeReadout(layout, texts ? { ...numbers, readings: texts } : numbers);
        return { seq: ++seq, layoutKey: layoutKey(layout), time, count: values, explorationCount, payload };
      });
      store.port.postMessage({ type: "append", batches });
    },
    readouts: () => readouts,
    relink: link,
    ledger,
    sink: (uuid = "sink-1") => ledger()?.sinks.find((one) => one.sink === uuid),
    report: (uuid = "sink-1") => delivery.told.findLast((m) => m.type === "report")?.sinks.find((one) => one.uuid === uuid),
    async stop() {
      ask({ type: "shutdown" });
      await until(delivery.isClosed, 10_000);
      store.port.postMessage({ type: "stop" });
      await until(store.isClosed, 10_000);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What runs in a worker, on this thread. */
export interface TestWorker<In> {
  readonly port: MessagePort;
  readonly told: readonly In[];
  /** The worker has closed its port: it has ended. */
  readonly isClosed: () => boolean;
}

export function workerOf<In>(run: (port: MessagePort) => void): TestWorker<In> {
  const { port1, port2 } = new MessageChannel();
  const told: In[] = [];
  let isClosed = false;
  port1.on("message", (message: In) => told.push(message));
  port1.on("close", () => {
    isClosed = true;
  });
  run(port2);
  return { port: port1, told, isClosed: () => isClosed };
}
