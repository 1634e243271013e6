import type { MessagePort } from "node:worker_threads";
import type { Layout } from "../model/layout.ts";
import type { Acknowledgement, BufferSink, NewBatch, SinkLedger, StoredBatch } from "./buffer.ts";

/** Acquisition → store. `run` names one life of the process, so that batches posted again are known. */
export type ToStore =
  | { readonly type: "layout"; readonly key: string; readonly layout: Layout }
  | { readonly type: "append"; readonly batches: readonly NewBatch[] }
  | { readonly type: "sinks"; readonly sinks: readonly BufferSink[] }
  /** A new way to the delivery worker, after either was restarted; comes with a MessagePort in `transferList`. */
  | { readonly type: "delivery"; readonly port: MessagePort }
  /** Commit everything, close the file, end. */
  | { readonly type: "stop" };

/** Store → acquisition. */
export type FromStore =
  | { readonly type: "ready"; readonly epoch: string; readonly lastSeq: number }
  | { readonly type: "committed"; readonly upTo: number }
  | { readonly type: "ledger"; readonly sinks: readonly SinkLedger[]; readonly bytes: number }
  /** For the operator: the file is damaged, the disk is full. The worker goes on or ends by itself. */
  | { readonly type: "alarm"; readonly message: string }
  | { readonly type: "stopped" };

/** Store → delivery: batches as they are committed. */
export type StoreToDelivery =
  | { readonly type: "ready" }
  | { readonly type: "sinks"; readonly sinks: readonly BufferSink[] }
  | { readonly type: "layout"; readonly id: number; readonly layout: Layout }
  | { readonly type: "committed"; readonly batches: readonly StoredBatch[] };

/** Delivery → store. */
export type DeliveryToStore = { readonly type: "acknowledge"; readonly acknowledgements: readonly Acknowledgement[] };
