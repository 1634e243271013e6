import path from "node:path";
import type { MessagePort } from "node:worker_threads";
import type { DeliveryOf } from "../../buffer/messages.ts";
import type { DeliveryWorkerData, SinkSpec, ToDelivery } from "../../delivery/messages.ts";
import { canonicalJson, reconcile } from "../../lib/reconcile.ts";
import { type RunningWorker, SupervisedWorker } from "../../lib/thread/host.ts";
import type { PkiPlace } from "../../model/pki.ts";
import type { Policy } from "../../model/policy.ts";
import type { SinkReport, SourceReport } from "../../model/report.ts";
import { type ReportedWarning, reportedSince, warning } from "../../model/warning.ts";
import type { Logger } from "../../os/log.ts";
import { Describer } from "./describer.ts";
import { type FromServing, StoreRelay } from "./store-relay.ts";

export interface DeliveryOptions {
  readonly bufferFile: string;
  /** The addresses that sinks may connect to and listen on, at the start. */
  readonly policy: Policy;
  /** The place of our certificates and of others', for sinks that are servers. */
  readonly pki: PkiPlace;
  readonly log: Logger;
  readonly workerUrl: (name: string) => URL;
  /** The worker's end of a new channel to the store; undefined: the store is not ready, and `link` follows when it is. */
  link(of: DeliveryOf): MessagePort | undefined;
  sources(): readonly SourceReport[];
  /** The environment of a process that is started; absent: this one's own. */
  readonly childEnv?: Readonly<Record<string, string>>;
}

/**
 * Sinks that serve current values are servers with clients of their own, who decide what is done and kept for them: they have a process of
 * their own, with memory of its own.
 */
const NAME: Readonly<Record<DeliveryOf, string>> = { every: "delivery", latest: "serving" };
/** 50,000 monitored items on 10,000 variables that are read every second take 282 MiB (`npm run bench opcua`). */
const SERVING_MEMORY_MIB = 512;
const SERVING_HEAP_MIB = 320;

/** A delivery worker with its sinks; it is started again whenever it dies. */
export class DeliveryHost {
  readonly #of: DeliveryOf;
  readonly #options: DeliveryOptions;
  readonly #worker: SupervisedWorker<FromServing>;
  /** Of a process: it cannot be given the port. */
  readonly #relay: StoreRelay | undefined;
  readonly #describer: Describer;
  #policy: Policy;
  #specs: ReadonlyMap<string, SinkSpec> = new Map();
  #reports: readonly SinkReport[] = [];
  #deaths = 0;
  /** Of the last death; undefined: there was none. */
  #death: ReportedWarning | undefined;

  constructor(of: DeliveryOf, options: DeliveryOptions) {
    this.#of = of;
    this.#options = options;
    this.#policy = options.policy;
    this.#describer = new Describer((message) => this.#post(message), options.sources);
    this.#relay = of === "latest" ? new StoreRelay((message) => void this.#worker.post(message)) : undefined;
    const { childEnv: env } = options;
    this.#worker = new SupervisedWorker({
      entry: options.workerUrl(NAME[of]),
      name: NAME[of],
      workerData: this.#workerData(),
      ...(of === "latest" && { process: { memoryMiB: SERVING_MEMORY_MIB, heapMiB: SERVING_HEAP_MIB, ...(env && { env }) } }),
      log: options.log,
      stopMessage: { type: "shutdown" } satisfies ToDelivery,
      onOnline: (worker) => this.#onOnline(worker),
      onMessage: (message) => this.#onMessage(message),
      onExit: (cause) => this.#onExit(cause),
    });
  }

  /** Starts, restarts and stops sinks until the desired ones run; unchanged ones notice nothing. */
  setSinks(desired: readonly SinkSpec[]): void {
    const next = new Map(desired.map((spec) => [spec.uuid, spec]));
    const plan = reconcile(next, new Map([...this.#specs].map(([uuid, spec]) => [uuid, canonicalJson(spec)])), canonicalJson);
    this.#specs = next;
    for (const uuid of plan.stop) this.#post({ type: "stop", uuid, removed: !next.has(uuid) });
    for (const uuid of plan.start) {
      const sink = next.get(uuid);
      if (sink) this.#post({ type: "start", sink });
    }
  }

  /** Sinks that it concerns end or begin at once, the others notice nothing. */
  setPolicy(policy: Policy): void {
    this.#policy = policy;
    this.#worker.setWorkerData(this.#workerData());
    this.#post({ type: "policy", policy });
  }

  /** Hands on the sources as they are now. */
  describe(): void {
    this.#describer.describe();
  }

  /** Connects the worker with the store. */
  link(): void {
    const { link, bufferFile: file } = this.#options;
    const port = link(this.#of);
    if (!port) return;
    if (this.#relay) this.#relay.connect(port, file);
    else this.#post({ type: "store", port, file }, [port]);
  }

  reports(): readonly SinkReport[] {
    const death = this.#death;
    if (death === undefined) return this.#reports;
    return this.#reports.map((report) => ({ ...report, warnings: [...report.warnings, death] }));
  }

  stop(timeoutMs: number): Promise<void> {
    return this.#worker.stop(timeoutMs);
  }

  #workerData(): DeliveryWorkerData {
    const { bufferFile, pki } = this.#options;
    return {
      policy: this.#policy,
      memoryDir: path.join(path.dirname(bufferFile), "sinks"),
      // Only servers show the collector's certificate.
      ...(this.#of === "latest" && { pki }),
    };
  }

  #post(message: ToDelivery, transfer: readonly MessagePort[] = []): void {
    this.#worker.post(message, transfer);
  }

  #onMessage(message: FromServing): void {
    if (message.type === "report") this.#reports = message.sinks;
    else if (message.type === "to_store") this.#relay?.pass(message);
  }

  /** Nobody reports of sinks that were in a process which is gone. */
  #onExit(cause: string): void {
    this.#relay?.close();
    if (!this.#relay) return;
    this.#deaths++;
    const since = new Date().toISOString();
    const times = this.#deaths === 1 ? "" : `; ${this.#deaths} times since the collector was started`;
    const ended = `the process of the hosted servers ended at ${since} and was started again, without any effect on what is read: ${cause}${times}`;
    this.#death = reportedSince(warning("sink_process_ended", ended), since);
    const error = {
      reason: { type: "UNKNOWN" },
      condition: "internal_error",
      detail: `its process ended and is started again: ${cause}`,
    } as const;
    this.#reports = [...this.#specs.values()].map(({ uuid, name, type }) => {
      const known = this.#reports.find((report) => report.uuid === uuid);
      // One that has never reported: the process cannot be started.
      const report = known ?? { uuid, name, type, endpoint: null, next_retry_at: null, warnings: [] };
      return { ...report, state: "ERROR", since, error };
    });
  }

  #onOnline(worker: RunningWorker): void {
    for (const sink of this.#specs.values()) worker.postMessage({ type: "start", sink } satisfies ToDelivery);
    // The supervisor knows the new worker only after this call.
    setImmediate(() => {
      this.#describer.reset();
      this.describe();
      this.link();
    });
  }
}
