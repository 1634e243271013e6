import path from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { canonicalJson, reconcile } from "./agent/reconcile.ts";
import type { Ledger, SinkLedger } from "./buffer/buffer.ts";
import { createStoreClient, type StoreClient } from "./buffer/client.ts";
import type { FromStore } from "./buffer/messages.ts";
import type { Layout } from "./model/layout.ts";
import type { PkiPlace } from "./model/pki.ts";
import type { Policy } from "./model/policy.ts";
import type { SinkReport, SourceReport } from "./model/report.ts";
import type { BufferStatus, SinkStatus } from "./model/service-status.ts";
import type { Logger } from "./os/log.ts";
import { superviseWorker } from "./os/worker.ts";
import { SINKS } from "./sinks/index.ts";
import type { DeliveryWorkerData, DescribedSource, FromDelivery, SinkSpec, ToDelivery } from "./sinks/messages.ts";

export interface PipelineOptions {
  readonly run: string;
  readonly bufferFile: string;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** Where sinks may connect to. */
  readonly policy: Policy;
  readonly pki: PkiPlace;
  readonly log: Logger;
  readonly workerUrl: (name: string) => URL;
  readonly onAlarm: (message: string) => void;
}

/** From an encoded readout to the sinks: the store and the delivery worker, and what they say of themselves. */
export interface Pipeline {
  readonly append: StoreClient["append"];
  /** Brings the sinks that run to those that are wanted; unchanged ones notice nothing. */
  setSinks(specs: readonly SinkSpec[]): void;
  /** The sources as they are now, for retained status and metadata. */
  describe(sources: readonly SourceReport[]): void;
  sinks(): readonly SinkStatus[];
  buffer(): BufferStatus;
  /** Commits what was accepted, lets the sinks finish, ends both workers. */
  stop(): Promise<void>;
}

const COMMIT_WITHIN_MS = 4000;
const WORKER_STOP_MS = 4000;

export function startPipeline(options: PipelineOptions): Pipeline {
  const { log, bufferFile } = options;
  let ledger: Ledger | undefined;
  let bytes = 0;
  let reports: readonly SinkReport[] = [];
  let specs: ReadonlyMap<string, SinkSpec> = new Map();
  let sources: readonly SourceReport[] = [];
  /** What the delivery worker of now knows, by source; a source's layout is one object as long as it is the same. */
  let toldLayouts = new Map<string, Layout | null>();
  const described = (): readonly DescribedSource[] => {
    const before = toldLayouts;
    toldLayouts = new Map(sources.map(({ uuid, layout }) => [uuid, layout]));
    return sources.map(({ layout, ...source }) => (before.get(source.uuid) === layout ? source : { ...source, layout }));
  };
  let storeReady = false;

  const client = createStoreClient({
    run: options.run,
    onLedger(told, fileBytes) {
      ledger = told;
      bytes = fileBytes;
    },
    onAlarm: options.onAlarm,
  });

  /** A new way between the two workers, after either has started. */
  const link = () => {
    if (!storeReady) return;
    const { port1, port2 } = new MessageChannel();
    store.post({ type: "delivery", port: port1 }, [port1]);
    toDelivery({ type: "store", port: port2, file: bufferFile }, [port2]);
  };

  const store = superviseWorker<FromStore>({
    entry: options.workerUrl("store"),
    name: "store",
    workerData: { file: bufferFile, run: options.run, maxBytes: options.maxBytes, maxAgeMs: options.maxAgeMs },
    log,
    onOnline: (worker) => client.attach((message) => worker.postMessage(message)),
    onExit: () => {
      storeReady = false;
    },
    onMessage(message) {
      client.onMessage(message);
      if (message.type !== "ready") return;
      storeReady = true;
      link();
    },
  });

  const toDelivery = (message: ToDelivery, transfer: readonly MessagePort[] = []) => delivery.post(message, transfer);

  const delivery = superviseWorker<FromDelivery>({
    entry: options.workerUrl("delivery"),
    name: "delivery",
    workerData: {
      policy: options.policy,
      leftBehindDir: path.join(path.dirname(bufferFile), "sinks"),
      pki: options.pki,
    } satisfies DeliveryWorkerData,
    log,
    stopMessage: { type: "shutdown" } satisfies ToDelivery,
    onOnline(worker) {
      const post = (message: ToDelivery) => worker.postMessage(message);
      for (const sink of specs.values()) post({ type: "start", sink });
      toldLayouts = new Map();
      post({ type: "sources", sources: described() });
      // The supervisor knows the new worker only after this call.
      setImmediate(link);
    },
    onMessage(message) {
      if (message.type === "report") reports = message.sinks;
      else if (message.type === "log") log[message.level](message.fields, message.message);
    },
  });

  return {
    append: client.append,
    setSinks(wanted) {
      const next = new Map(wanted.map((spec) => [spec.uuid, spec]));
      const plan = reconcile(next, new Map([...specs].map(([uuid, spec]) => [uuid, canonicalJson(spec)])), canonicalJson);
      specs = next;
      // The store learns first: what is read from now on is pending for a new sink.
      client.setSinks(
        wanted.flatMap(({ uuid, type }) => {
          const entry = Object.hasOwn(SINKS, type) ? SINKS[type] : undefined;
          return entry?.delivery === "every" ? [{ id: uuid, takesExploration: entry.takesExploration }] : [];
        }),
      );
      for (const uuid of plan.stop) toDelivery({ type: "stop", uuid, removed: !next.has(uuid) });
      for (const uuid of plan.start) {
        const sink = next.get(uuid);
        if (sink) toDelivery({ type: "start", sink });
      }
    },
    describe(now) {
      sources = now;
      toDelivery({ type: "sources", sources: described() });
    },
    sinks: () => reports.map((report) => ({ ...report, ledger: accountOf(ledger?.sinks.find(({ sink }) => sink === report.uuid)) })),
    buffer: () => ({
      bytes,
      unanswered_bytes: client.unanswered().bytes,
      // Until the store has told its account, what this run knows.
      rejected: ledger?.rejected ?? (client.rejected().values > 0 ? { overflow: client.rejected().values } : {}),
      lost: ledger?.lost ? { since: new Date(ledger.lost.since).toISOString(), why: ledger.lost.why } : null,
    }),
    async stop() {
      await client.close(COMMIT_WITHIN_MS);
      await delivery.stop(WORKER_STOP_MS);
      await store.stop(WORKER_STOP_MS);
    },
  };
}

function accountOf(ledger: SinkLedger | undefined): SinkStatus["ledger"] {
  if (!ledger) return null;
  const { accepted, delivered, pending, dropped, deliveredUnstored } = ledger;
  return { accepted, delivered, pending, dropped, delivered_unstored: deliveredUnstored };
}
