import path from "node:path";
import type { MessagePort, Worker } from "node:worker_threads";
import { canonicalJson, reconcile } from "../../lib/reconcile.ts";
import { SupervisedWorker } from "../../lib/thread/host.ts";
import type { PkiPlace } from "../../model/pki.ts";
import type { Policy } from "../../model/policy.ts";
import type { SinkReport, SourceReport } from "../../model/report.ts";
import type { Logger } from "../../os/log.ts";
import type { DeliveryOf } from "../store/messages.ts";
import { Describer } from "./describer.ts";
import type { DeliveryWorkerData, FromDelivery, SinkSpec, ToDelivery } from "./messages.ts";

export interface DeliveryOptions {
  readonly bufferFile: string;
  /** Where sinks may connect to and listen, at the start. */
  readonly policy: Policy;
  /** Where the certificates of ours and of others are, for sinks that are servers. */
  readonly pki: PkiPlace;
  readonly log: Logger;
  readonly workerUrl: (name: string) => URL;
  /** The worker's end of a new channel to the store; undefined: the store is not ready, and `link` follows when it is. */
  link(of: DeliveryOf): MessagePort | undefined;
  sources(): readonly SourceReport[];
}

/**
 * Sinks that serve current values are servers with clients of their own, whose work must not hold up what is written elsewhere: they have a
 * thread of their own.
 */
const NAME: Readonly<Record<DeliveryOf, string>> = { every: "delivery", latest: "serving" };

/** A delivery worker with its sinks; it is started again whenever it dies. */
export class DeliveryHost {
  readonly #of: DeliveryOf;
  readonly #options: DeliveryOptions;
  readonly #worker: SupervisedWorker<FromDelivery>;
  readonly #describer: Describer;
  #policy: Policy;
  #specs: ReadonlyMap<string, SinkSpec> = new Map();
  #reports: readonly SinkReport[] = [];

  constructor(of: DeliveryOf, options: DeliveryOptions) {
    this.#of = of;
    this.#options = options;
    this.#policy = options.policy;
    this.#describer = new Describer((message) => this.#post(message), options.sources);
    this.#worker = new SupervisedWorker({
      entry: options.workerUrl("delivery"),
      name: NAME[of],
      workerData: this.#workerData(),
      // What a server makes of each value for each of its clients lives for a moment, and is much.
      needsHeap: of === "latest",
      log: options.log,
      stopMessage: { type: "shutdown" } satisfies ToDelivery,
      onOnline: (worker) => this.#onOnline(worker),
      onMessage: (message) => {
        if (message.type === "report") this.#reports = message.sinks;
      },
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
    const port = this.#options.link(this.#of);
    if (port) this.#post({ type: "store", port, file: this.#options.bufferFile }, [port]);
  }

  reports(): readonly SinkReport[] {
    return this.#reports;
  }

  stop(timeoutMs: number): Promise<void> {
    return this.#worker.stop(timeoutMs);
  }

  #workerData(): DeliveryWorkerData {
    const { bufferFile, pki } = this.#options;
    return {
      policy: this.#policy,
      memoryDir: path.join(path.dirname(bufferFile), "sinks"),
      serves: this.#of === "latest",
      // Only servers show the collector's certificate.
      ...(this.#of === "latest" && { pki }),
    };
  }

  #post(message: ToDelivery, transfer: readonly MessagePort[] = []): void {
    this.#worker.post(message, transfer);
  }

  #onOnline(worker: Worker): void {
    for (const sink of this.#specs.values()) worker.postMessage({ type: "start", sink } satisfies ToDelivery);
    // The supervisor knows the new worker only after this call.
    setImmediate(() => {
      this.#describer.reset();
      this.describe();
      this.link();
    });
  }
}
