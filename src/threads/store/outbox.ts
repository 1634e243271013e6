import type { MessagePort } from "node:worker_threads";
import type { BufferSink, StoredBatch } from "../../buffer/buffer.ts";
import type { Layout } from "../../model/layout.ts";
import type { DeliveryToStore, StoreToDelivery } from "./messages.ts";

/** Payload bytes under way to the delivery at once; what is beyond is left to the file. */
const MAX_UNDER_WAY_BYTES = 16 * 2 ** 20;
/** What a batch costs in memory beside its payload. */
const BATCH_OVERHEAD_BYTES = 200;

export interface OutboxOptions {
  /** All but `received`. */
  readonly onMessage: (message: Exclude<DeliveryToStore, { readonly type: "received" }>) => void;
  /** A layout by the id that a batch names. */
  readonly layout: (id: number) => Layout | undefined;
  /** Default 16 MiB. */
  readonly maxUnderWayBytes?: number | undefined;
}

/** The way to the delivery. Holds nothing back for it: what it cannot take now, it reads from the file or never gets. */
export interface Outbox {
  attach(port: MessagePort, sinks: readonly BufferSink[] | undefined): void;
  isAttached(): boolean;
  sinks(sinks: readonly BufferSink[]): void;
  /** `nextId`: the id after the last one. */
  committed(batches: readonly StoredBatch[], nextId: number): void;
  /** False: the delivery does not keep up, or there is none. */
  unstored(batches: readonly StoredBatch[]): boolean;
  gaps(sinks: readonly string[]): void;
  /** Layout ids mean something else from now on. */
  forgetLayouts(): void;
  close(): void;
}

export function createOutbox({ onMessage, layout, maxUnderWayBytes = MAX_UNDER_WAY_BYTES }: OutboxOptions): Outbox {
  let port: MessagePort | undefined;
  let toldLayouts = new Set<number>();
  /** Bytes of each message that was not received yet, oldest first. */
  let underWay: number[] = [];
  let underWayBytes = 0;
  let skippedTo: number | undefined;

  const post = (message: StoreToDelivery, transfer: readonly ArrayBuffer[] = []): void => port?.postMessage(message, transfer);

  const postBatches = (type: "committed" | "unstored", batches: readonly StoredBatch[]): boolean => {
    if (!port || underWayBytes >= maxUnderWayBytes) return false;
    for (const id of new Set(batches.map((batch) => batch.layout))) {
      if (toldLayouts.has(id)) continue;
      const found = layout(id);
      if (found) post({ type: "layout", id, layout: found });
      toldLayouts.add(id);
    }
    const bytes = batches.reduce((sum, { payload }) => sum + payload.byteLength + BATCH_OVERHEAD_BYTES, 0);
    underWay.push(bytes);
    underWayBytes += bytes;
    // The payloads came here as copies, and nobody else needs them now.
    const memory = new Set(batches.map(({ payload }) => payload.buffer).filter((buffer) => buffer instanceof ArrayBuffer));
    post({ type, batches }, [...memory]);
    return true;
  };

  const received = (): void => {
    underWayBytes -= underWay.shift() ?? 0;
    if (skippedTo === undefined || underWayBytes >= maxUnderWayBytes) return;
    post({ type: "skipped", nextId: skippedTo });
    skippedTo = undefined;
  };

  return {
    attach(next, sinks) {
      port?.close();
      port = next;
      toldLayouts = new Set();
      underWay = [];
      underWayBytes = 0;
      skippedTo = undefined;
      next.on("message", (message: DeliveryToStore) => {
        if (port !== next) return;
        if (message.type === "received") received();
        else onMessage(message);
      });
      next.on("close", () => {
        if (port === next) port = undefined;
      });
      post({ type: "ready" });
      if (sinks) post({ type: "sinks", sinks });
    },
    isAttached: () => port !== undefined,
    sinks: (sinks) => post({ type: "sinks", sinks }),
    committed(batches, nextId) {
      if (!port || batches.length === 0) return;
      if (!postBatches("committed", batches)) skippedTo = nextId;
    },
    unstored: (batches) => postBatches("unstored", batches),
    gaps: (sinks) => post({ type: "gaps", sinks }),
    forgetLayouts() {
      toldLayouts = new Set();
    },
    close() {
      port?.close();
      port = undefined;
    },
  };
}
