import { MessageChannel } from "node:worker_threads";
import type { Ledger, SinkLedger } from "./buffer/buffer.ts";
import { superviseWorker } from "./lib/thread/host.ts";
import type { PkiPlace } from "./model/pki.ts";
import type { Policy } from "./model/policy.ts";
import type { SourceReport } from "./model/report.ts";
import type { BufferStatus, SinkStatus } from "./model/service-status.ts";
import type { Logger } from "./os/log.ts";
import { SINKS, type SinkEntry } from "./sinks/index.ts";
import { type Delivery, type DeliveryOptions, startDelivery } from "./threads/delivery/host.ts";
import type { SinkSpec } from "./threads/delivery/messages.ts";
import { StoreClient } from "./threads/store/host.ts";
import type { FromStore, StoreWorkerData, ToStore } from "./threads/store/messages.ts";

export interface PipelineOptions {
  readonly run: string;
  readonly bufferFile: string;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly keepRemovedMs: number;
  /** Where sinks may connect to. */
  readonly policy: Policy;
  readonly pki: PkiPlace;
  readonly log: Logger;
  readonly workerUrl: (name: string) => URL;
  readonly onAlarm: (message: string) => void;
}

/** From an encoded readout to the sinks: the store and the delivery workers, and what they say of themselves. */
export interface Pipeline {
  readonly append: StoreClient["append"];
  /** Brings the sinks that run to those that are wanted; unchanged ones notice nothing. */
  setSinks(specs: readonly SinkSpec[]): void;
  /** The sources as they are now, for retained status and metadata. */
  describe(sources: readonly SourceReport[]): void;
  sinks(): readonly SinkStatus[];
  buffer(): BufferStatus;
  /** Commits what was accepted, lets the sinks finish, ends the workers. */
  stop(): Promise<void>;
}

const COMMIT_WITHIN_MS = 4000;
const WORKER_STOP_MS = 4000;

export function startPipeline(options: PipelineOptions): Pipeline {
  const { log, bufferFile } = options;
  let ledger: Ledger | undefined;
  let bytes = 0;
  let sources: readonly SourceReport[] = [];
  let storeReady = false;
  /** Of the sinks of this run of the process, so that a removed one can be told by its name. */
  const names = new Map<string, string | null>();

  const client = new StoreClient({
    run: options.run,
    onLedger(told, fileBytes) {
      ledger = told;
      bytes = fileBytes;
    },
    onAlarm: options.onAlarm,
  });

  const store = superviseWorker<FromStore>({
    entry: options.workerUrl("store"),
    name: "store",
    workerData: {
      file: bufferFile,
      run: options.run,
      maxBytes: options.maxBytes,
      maxAgeMs: options.maxAgeMs,
      keepRemovedMs: options.keepRemovedMs,
    } satisfies StoreWorkerData,
    log,
    onOnline: (worker) => client.attach((message) => worker.postMessage(message)),
    onExit: () => {
      storeReady = false;
    },
    onMessage(message) {
      client.onMessage(message);
      if (message.type !== "ready") return;
      storeReady = true;
      for (const delivery of deliveries()) delivery.link();
    },
  });

  const deliveryOptions: DeliveryOptions = {
    ...options,
    /** A new way between the two workers, after either has started. */
    link(of) {
      if (!storeReady) return undefined;
      const { port1, port2 } = new MessageChannel();
      store.post({ type: "delivery", port: port1, of } satisfies ToStore, [port1]);
      return port2;
    },
    sources: () => sources,
  };
  const every = startDelivery("every", deliveryOptions);
  /** Started with the first sink that needs it. */
  let latest: Delivery | undefined;
  const deliveries = (): readonly Delivery[] => (latest ? [every, latest] : [every]);

  return {
    append: (layout, readout) => client.append(layout, readout),
    setSinks(wanted) {
      rememberNames(names, wanted);
      const keeping: SinkSpec[] = [];
      const serving: SinkSpec[] = [];
      for (const spec of wanted) (entryOf(spec)?.delivery === "latest" ? serving : keeping).push(spec);
      // The store learns first: what is read from now on is pending for a new sink.
      client.setSinks(
        keeping.flatMap((spec) => {
          const entry = entryOf(spec);
          return entry ? [{ id: spec.uuid, takesExploration: entry.takesExploration }] : [];
        }),
      );
      every.setSinks(keeping);
      if (serving.length > 0) latest ??= startDelivery("latest", deliveryOptions);
      latest?.setSinks(serving);
    },
    describe(now) {
      sources = now;
      for (const delivery of deliveries()) delivery.describe();
    },
    sinks: () =>
      deliveries()
        .flatMap((delivery) => delivery.reports())
        .map((report) => ({ ...report, ledger: accountOf(ledger?.sinks.find(({ sink }) => sink === report.uuid)) })),
    buffer: () => ({
      bytes,
      unanswered_bytes: client.unanswered().bytes,
      // Until the store has told its account, what this run knows.
      rejected: ledger?.rejected ?? (client.rejected().values > 0 ? { overflow: client.rejected().values } : {}),
      removed_sinks: (ledger?.sinks ?? []).flatMap(({ sink, pending, keptUntil }) =>
        keptUntil === undefined
          ? []
          : [{ uuid: sink, name: names.get(sink) ?? null, pending, until: new Date(Math.min(keptUntil, MAX_DATE_MS)).toISOString() }],
      ),
      lost: ledger?.lost ? { since: new Date(ledger.lost.since).toISOString(), why: ledger.lost.why } : null,
    }),
    async stop() {
      await client.close(COMMIT_WITHIN_MS);
      await Promise.all(deliveries().map((delivery) => delivery.stop(WORKER_STOP_MS)));
      await store.stop(WORKER_STOP_MS);
    },
  };
}

const MAX_NAMES = 1000;
/** The latest time that a Date holds. */
const MAX_DATE_MS = 8.64e15;

function rememberNames(names: Map<string, string | null>, wanted: readonly SinkSpec[]): void {
  for (const { uuid, name } of wanted) {
    names.delete(uuid);
    names.set(uuid, name);
  }
  for (const uuid of [...names.keys()].slice(0, Math.max(0, names.size - MAX_NAMES))) names.delete(uuid);
}

const entryOf = ({ type }: SinkSpec): SinkEntry | undefined => (Object.hasOwn(SINKS, type) ? SINKS[type] : undefined);

function accountOf(ledger: SinkLedger | undefined): SinkStatus["ledger"] {
  if (!ledger) return null;
  const { accepted, delivered, pending, dropped, deliveredUnstored } = ledger;
  return { accepted, delivered, pending, dropped, delivered_unstored: deliveredUnstored };
}
