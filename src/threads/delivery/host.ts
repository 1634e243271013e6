import path from "node:path";
import type { MessagePort } from "node:worker_threads";
import { canonicalJson, reconcile } from "../../lib/reconcile.ts";
import { superviseWorker } from "../../lib/thread/host.ts";
import type { PkiPlace } from "../../model/pki.ts";
import type { Policy } from "../../model/policy.ts";
import type { SinkReport, SourceReport } from "../../model/report.ts";
import type { Logger } from "../../os/log.ts";
import type { DeliveryOf } from "../store/messages.ts";
import { Describer } from "./describer.ts";
import type { DeliveryWorkerData, FromDelivery, SinkSpec, ToDelivery } from "./messages.ts";

export interface DeliveryOptions {
  readonly bufferFile: string;
  /** Where sinks may connect to and listen. */
  readonly policy: Policy;
  /** Where the certificates of ours and of others are, for sinks that are servers. */
  readonly pki: PkiPlace;
  readonly log: Logger;
  readonly workerUrl: (name: string) => URL;
  /** The worker's end of a new channel to the store; undefined: the store is not ready, and `link` follows when it is. */
  link(of: DeliveryOf): MessagePort | undefined;
  sources(): readonly SourceReport[];
}

/** A delivery worker with its sinks. */
export interface Delivery {
  /** Starts, restarts and stops sinks until the desired ones run; unchanged ones notice nothing. */
  setSinks(desired: readonly SinkSpec[]): void;
  /** Hands on the sources as they are now. */
  describe(): void;
  /** Connects the worker with the store. */
  link(): void;
  reports(): readonly SinkReport[];
  stop(timeoutMs: number): Promise<void>;
}

/**
 * Sinks that serve current values are servers with clients of their own, whose work must not hold up what is written elsewhere: they have a
 * thread of their own.
 */
const NAME: Readonly<Record<DeliveryOf, string>> = { every: "delivery", latest: "serving" };

/** Starts a delivery worker, and starts it again whenever it dies. */
export function startDelivery(of: DeliveryOf, options: DeliveryOptions): Delivery {
  let specs: ReadonlyMap<string, SinkSpec> = new Map();
  let reports: readonly SinkReport[] = [];
  const post = (message: ToDelivery, transfer: readonly MessagePort[] = []) => worker.post(message, transfer);
  const describer = new Describer(post, options.sources);
  const link = (): void => {
    const port = options.link(of);
    if (port) post({ type: "store", port, file: options.bufferFile }, [port]);
  };

  const worker = superviseWorker<FromDelivery>({
    entry: options.workerUrl("delivery"),
    name: NAME[of],
    workerData: {
      policy: options.policy,
      memoryDir: path.join(path.dirname(options.bufferFile), "sinks"),
      serves: of === "latest",
      // Only servers show the collector's certificate.
      ...(of === "latest" && { pki: options.pki }),
    } satisfies DeliveryWorkerData,
    // What a server makes of each value for each of its clients lives for a moment, and is much.
    needsHeap: of === "latest",
    log: options.log,
    stopMessage: { type: "shutdown" } satisfies ToDelivery,
    onOnline(online) {
      const postTo = (message: ToDelivery) => online.postMessage(message);
      for (const sink of specs.values()) postTo({ type: "start", sink });
      // The supervisor knows the new worker only after this call.
      setImmediate(() => {
        describer.reset();
        describer.describe();
        link();
      });
    },
    onMessage(message) {
      if (message.type === "report") reports = message.sinks;
    },
  });

  return {
    setSinks(desired) {
      const next = new Map(desired.map((spec) => [spec.uuid, spec]));
      const plan = reconcile(next, new Map([...specs].map(([uuid, spec]) => [uuid, canonicalJson(spec)])), canonicalJson);
      specs = next;
      for (const uuid of plan.stop) post({ type: "stop", uuid, removed: !next.has(uuid) });
      for (const uuid of plan.start) {
        const sink = next.get(uuid);
        if (sink) post({ type: "start", sink });
      }
    },
    describe: () => describer.describe(),
    link,
    reports: () => reports,
    stop: (timeoutMs) => worker.stop(timeoutMs),
  };
}
