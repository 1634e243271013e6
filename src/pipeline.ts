import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { BufferFill, Ledger, SinkLedger } from "./buffer/buffer.ts";
import type { BufferBounds } from "./buffer/buffer-file.ts";
import type { DeliveryOf, FromStore, StoreWorkerData, ToStore } from "./buffer/messages.ts";
import type { SinkSpec } from "./delivery/messages.ts";
import { SupervisedWorker } from "./lib/thread/host.ts";
import type { Layout } from "./model/layout.ts";
import type { Policy } from "./model/policy.ts";
import type { SourceReport } from "./model/report.ts";
import type { BufferStatus, SinkStatus } from "./model/service-status.ts";
import type { Readout } from "./model/value.ts";
import type { RaiseAlarm, Warning } from "./model/warning.ts";
import { BufferOutlook, flowOf } from "./service/buffer-outlook.ts";
import { DropWatch } from "./service/drop-watch.ts";
import { sinkEntryOf } from "./sinks/index.ts";
import { DeliveryHost, type DeliveryOptions } from "./threads/delivery/host.ts";
import { StoreClient } from "./threads/store/host.ts";

export interface PipelineOptions extends Omit<DeliveryOptions, "link" | "sources"> {
  readonly run: string;
  readonly bounds: BufferBounds;
  /** With less left until the oldest values are dropped, ms, it warns; absent: it does not. */
  readonly warnBelowMs?: number;
  readonly onAlarm: RaiseAlarm;
  /** As StoreClientOptions: readouts are numbered from 1 in the order in which `append` took them. */
  readonly onCommitted?: (upTo: number) => void;
  readonly onRejected?: (upTo: number) => void;
}

/** A broker that refuses a value each second, or ends each connection, would have all values with each readout. */
const REPORT_ALL_MS = 10_000;
const COMMIT_WITHIN_MS = 4000;
const WORKER_STOP_MS = 4000;

/** From a readout to the sinks: the store and the delivery workers, and what they report. */
export class Pipeline {
  readonly #options: PipelineOptions;
  #bounds: BufferBounds;
  readonly #client: StoreClient;
  readonly #store: SupervisedWorker<FromStore>;
  #deliveryOptions: DeliveryOptions;
  /** Each is started with the first sink that needs it. */
  #every: DeliveryHost | undefined;
  #latest: DeliveryHost | undefined;
  #isStoreReady = false;
  #isStopping = false;
  #ledger: Ledger | undefined;
  #fileBytes = 0;
  #fill: BufferFill | undefined;
  readonly #outlook: BufferOutlook;
  readonly #drops: DropWatch;
  #reportAll: () => void = () => {};
  /** Values that were lost, and openings of sinks, at the last look. */
  #lost = 0;
  #open: ReadonlySet<string> = new Set();
  #isReportDue = false;
  /** When all values were reported for such a reason last, monotonic ms. */
  #reportedMs = Number.NEGATIVE_INFINITY;
  #sources: readonly SourceReport[] = [];
  /** Of the sinks of this run of the process, so that a removed one can be named. */
  readonly #names = new Map<string, string | null>();
  /** Of the sinks that are configured. */
  #configured: ReadonlySet<string> = new Set();

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#bounds = options.bounds;
    this.#outlook = new BufferOutlook(options.log, options.warnBelowMs ?? 0);
    this.#drops = new DropWatch(options.log);
    this.#client = new StoreClient({
      run: options.run,
      onLedger: (ledger, fileBytes, fill) => {
        this.#ledger = ledger;
        this.#fileBytes = fileBytes;
        this.#fill = fill;
        this.#watchBuffer(ledger);
      },
      onAlarm: options.onAlarm,
      onNote: (message) => options.log.info({}, message),
      ...(options.onCommitted && { onCommitted: options.onCommitted }),
      ...(options.onRejected && { onRejected: options.onRejected }),
    });
    this.#store = this.#startStore();
    this.#deliveryOptions = { ...options, link: (of) => this.#link(of), sources: () => this.#sources };
  }

  /** See StoreClient.append. */
  append(layout: Layout, readout: Readout, intervalMs?: number): boolean {
    return this.#client.append(layout, readout, intervalMs);
  }

  /** See StoreClient.appendInSlices. */
  appendInSlices(layout: Layout, readout: Readout, intervalMs?: number): Promise<boolean> {
    return this.#client.appendInSlices(layout, readout, intervalMs);
  }

  /** See StoreClient.prepare. */
  prepare(layout: Layout): Promise<void> | undefined {
    return this.#client.prepare(layout);
  }

  /**
   * `reportAll` is called when sinks may know less than was reported: at once where one is new; where one is open again, or values were lost on
   * the way, once in ten seconds at most.
   */
  watchGaps(reportAll: () => void): void {
    this.#reportAll = reportAll;
  }

  /** Brings the sinks that run to the desired ones; unchanged ones notice nothing. */
  setSinks(desired: readonly SinkSpec[]): void {
    // A configuration may come until the last: a thread that starts now would outlive the stop.
    if (this.#isStopping) return;
    rememberNames(this.#names, desired);
    if (desired.some(({ uuid }) => !this.#configured.has(uuid))) this.#reportAll();
    this.#configured = new Set(desired.map(({ uuid }) => uuid));
    const keeping: SinkSpec[] = [];
    const serving: SinkSpec[] = [];
    for (const spec of desired) (sinkEntryOf(spec.type)?.delivery === "latest" ? serving : keeping).push(spec);
    // The store learns first: what is read from now on is pending for a new sink.
    this.#client.setSinks(
      keeping.flatMap((spec) => {
        const entry = sinkEntryOf(spec.type);
        return entry ? [{ id: spec.uuid, takesExploration: entry.takesExploration }] : [];
      }),
    );
    this.#client.setServing(serving.length > 0);
    if (keeping.length > 0) this.#every ??= new DeliveryHost("every", this.#deliveryOptions);
    this.#every?.setSinks(keeping);
    if (serving.length > 0) this.#latest ??= new DeliveryHost("latest", this.#deliveryOptions);
    this.#latest?.setSinks(serving);
  }

  /** The place where sinks may connect to and listen from now on. */
  setPolicy(policy: Policy): void {
    this.#deliveryOptions = { ...this.#deliveryOptions, policy };
    for (const delivery of this.#deliveries()) delivery.setPolicy(policy);
  }

  /** What the buffer keeps from now on. */
  setBounds(bounds: BufferBounds): void {
    this.#bounds = bounds;
    this.#store.setWorkerData(this.#storeData());
    this.#store.post({ type: "bounds", bounds } satisfies ToStore);
  }

  /** With less left until the oldest values are dropped it warns from now on. */
  setWarnBelow(ms: number): void {
    this.#outlook.setWarnBelow(ms);
  }

  /** Bytes that may still be written where the buffer is; undefined: not known. */
  setDiskFree(bytes: number | undefined): void {
    this.#outlook.setDiskFree(bytes);
  }

  /** What a person should know of the buffer, for status: values that are dropped, or soon are. */
  notes(): readonly Warning[] {
    return [...this.#drops.notes(), ...this.#outlook.notes()];
  }

  /** The sources as they are now, for retained status and metadata. */
  describe(sources: readonly SourceReport[]): void {
    this.#sources = sources;
    for (const delivery of this.#deliveries()) delivery.describe();
  }

  sinks(): readonly SinkStatus[] {
    return this.#deliveries()
      .flatMap((delivery) => delivery.reports())
      .map((report) => ({ ...report, ledger: accountOf(this.#ledger?.sinks.find(({ sink }) => sink === report.uuid)) }));
  }

  buffer(): BufferStatus {
    const ledger = this.#ledger;
    const { values: overflow } = this.#client.rejected();
    const left = this.#outlook.left();
    return {
      bytes: this.#fileBytes,
      max_bytes: this.#bounds.maxBytes,
      ...(left && { left }),
      ...(this.#fill && { used_bytes: this.#fill.usedBytes, drop_at_bytes: this.#fill.dropAtBytes }),
      unanswered_bytes: this.#client.unanswered().bytes,
      // Until the store has sent its account, what this run knows.
      suppressed: ledger?.suppressed ?? 0,
      rejected: ledger?.rejected ?? (overflow > 0 ? { overflow } : {}),
      removed_sinks: (ledger?.sinks ?? []).flatMap((sink) => this.#removedSink(sink)),
      lost: ledger?.lost ? { since: new Date(ledger.lost.since).toISOString(), why: ledger.lost.why } : null,
    };
  }

  /** See StoreClient.unstoredForMs. */
  unstoredForMs(): number {
    return this.#client.unstoredForMs();
  }

  /** Commits what was accepted, lets the sinks finish, ends the workers. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#client.close(COMMIT_WITHIN_MS);
    await Promise.all(this.#deliveries().map((delivery) => delivery.stop(WORKER_STOP_MS)));
    await this.#store.stop(WORKER_STOP_MS);
  }

  #watchBuffer({ sinks, rejected }: Ledger): void {
    const atMs = performance.now();
    const reports = (this.#every?.reports() ?? []).filter(({ state }) => state === "OK");
    const open = new Set(reports.map(({ uuid }) => uuid));
    const openings = new Set(reports.map(({ uuid, endpoint, since }) => `${uuid} ${endpoint} ${since}`));
    this.#lookForGaps(rejected, sinks, openings, atMs);
    const names = sinks.map((sink) => ({ ...sink, uuid: sink.sink, name: this.#names.get(sink.sink) ?? sink.sink }));
    this.#drops.look(names, this.#bounds, { monotonicMs: atMs, iso: new Date().toISOString() });
    if (!this.#fill) return;
    const configured = names.filter(({ uuid }) => this.#configured.has(uuid));
    this.#outlook.add({
      atMs,
      fill: this.#fill,
      sinks: new Map(configured.map((sink) => [sink.uuid, flowOf(sink, open.has(sink.uuid))])),
    });
  }

  /** A sink that is open again gets new values before older ones: it must not wait for a change that is among those. */
  #lookForGaps(rejected: Ledger["rejected"], sinks: Ledger["sinks"], open: ReadonlySet<string>, atMs: number): void {
    const lost = [rejected, ...sinks.map(({ dropped }) => dropped)].flatMap((one) => Object.values(one)).reduce((sum, n) => sum + n, 0);
    this.#isReportDue ||= lost !== this.#lost || [...open].some((opening) => !this.#open.has(opening));
    this.#lost = lost;
    this.#open = open;
    if (!this.#isReportDue || atMs - this.#reportedMs < REPORT_ALL_MS) return;
    this.#isReportDue = false;
    this.#reportedMs = atMs;
    this.#reportAll();
  }

  #storeData(): StoreWorkerData {
    const { run, bufferFile } = this.#options;
    return { file: bufferFile, run, ...this.#bounds, looksAtDisk: true };
  }

  #startStore(): SupervisedWorker<FromStore> {
    const { log, workerUrl } = this.#options;
    return new SupervisedWorker({
      entry: workerUrl("store"),
      name: "store",
      workerData: this.#storeData(),
      log,
      onOnline: (worker) => this.#client.attach((message) => worker.postMessage(message)),
      onExit: () => {
        this.#isStoreReady = false;
      },
      onMessage: (message) => {
        this.#client.onMessage(message);
        if (message.type !== "ready") return;
        this.#isStoreReady = true;
        for (const delivery of this.#deliveries()) delivery.link();
      },
    });
  }

  /** A new channel between the store and a delivery worker, after either has started; undefined: the store is not ready. */
  #link(of: DeliveryOf): MessagePort | undefined {
    if (!this.#isStoreReady) return undefined;
    const { port1, port2 } = new MessageChannel();
    this.#store.post({ type: "delivery", port: port1, of } satisfies ToStore, [port1]);
    return port2;
  }

  #deliveries(): readonly DeliveryHost[] {
    return [this.#every, this.#latest].filter((one) => one !== undefined);
  }

  /** One that was removed: as long as something waits for it, or was dropped because nobody came. */
  #removedSink({ sink, pending, keptUntil, dropped }: SinkLedger): BufferStatus["removed_sinks"] {
    const isRemoved = keptUntil !== undefined || (pending === 0 && (dropped.sink_removed ?? 0) > 0 && !this.#configured.has(sink));
    if (!isRemoved) return [];
    const until = keptUntil === undefined ? null : new Date(Math.min(keptUntil, MAX_DATE_MS)).toISOString();
    return [{ uuid: sink, name: this.#names.get(sink) ?? null, pending, until, dropped }];
  }
}

const MAX_NAMES = 1000;
/** The latest time that a Date holds. */
const MAX_DATE_MS = 8.64e15;

function rememberNames(names: Map<string, string | null>, desired: readonly SinkSpec[]): void {
  for (const { uuid, name } of desired) {
    names.delete(uuid);
    names.set(uuid, name);
  }
  for (const uuid of [...names.keys()].slice(0, Math.max(0, names.size - MAX_NAMES))) names.delete(uuid);
}

function accountOf(ledger: SinkLedger | undefined): SinkStatus["ledger"] {
  if (!ledger) return null;
  const { accepted, delivered, unconfirmed, filtered, pending, dropped, deliveredUnstored } = ledger;
  return { accepted, delivered, unconfirmed, filtered, pending, dropped, delivered_unstored: deliveredUnstored };
}
