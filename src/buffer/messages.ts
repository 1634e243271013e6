import type { MessagePort } from "node:worker_threads";
import type { Layout } from "../model/layout.ts";
import type { Warning } from "../model/warning.ts";
import type {
  Acknowledgement,
  BufferFill,
  BufferSink,
  Ledger,
  LossAcknowledgement,
  NewBatch,
  RejectedSpan,
  Start,
  StoredBatch,
} from "./buffer.ts";
import type { BufferBounds } from "./buffer-file.ts";
import type { StoreOptions } from "./store.ts";

/** Which sinks a delivery worker has: those that get the whole history, or those that serve current values only. */
export type DeliveryOf = "every" | "latest";

/** The store worker's input at its start. */
export interface StoreWorkerData extends StoreOptions {
  /** Bytes under way to one delivery worker at once; default 8 MiB. */
  readonly maxUnderWayBytes?: number;
}

/** Host → worker. */
export type ToStore =
  /** The answer to `ready`: all that is unanswered follows. What was posted before it is not looked at. */
  | { readonly type: "begin"; readonly life: number }
  /** Its last variables, or all of them where nothing of it came before. */
  | { readonly type: "layout"; readonly key: string; readonly layout: Layout }
  /** Of a large layout, in order. */
  | { readonly type: "layout_part"; readonly key: string; readonly variables: Layout["variables"] }
  | { readonly type: "append"; readonly batches: readonly NewBatch[] }
  | { readonly type: "sinks"; readonly sinks: readonly BufferSink[] }
  /** What is kept from now on. */
  | { readonly type: "bounds"; readonly bounds: BufferBounds }
  /** Values that found no room to wait in, since the start of the process; `span` of those that this worker was not told of. */
  | { readonly type: "overflow"; readonly values: number; readonly span?: RejectedSpan }
  /** A new channel to a delivery worker, after either was restarted; comes with a MessagePort in `transferList`. */
  | { readonly type: "delivery"; readonly port: MessagePort; readonly of: DeliveryOf }
  /** Commit everything, close the file, end. */
  | { readonly type: "stop" };

/** Worker → host. `ready` comes again when the file was replaced at run: all that is unanswered is posted again, and the delivery linked again. */
export type FromStore =
  /** epoch "": no file can be opened for the time being; values wait in memory, or go to the sinks unstored. */
  | { readonly type: "ready"; readonly life: number; readonly epoch: string; readonly lastSeq: number }
  | { readonly type: "committed"; readonly upTo: number }
  /** Everything up to here that was not committed is rejected. */
  | { readonly type: "rejected"; readonly upTo: number }
  | { readonly type: "ledger"; readonly ledger: Ledger; readonly bytes: number; readonly fill?: BufferFill }
  /** For the operator: the file is damaged, the disk is full. The worker goes on. */
  | { readonly type: "alarm"; readonly alarm: Warning; readonly isOver: boolean }
  /** For the log alone. */
  | { readonly type: "note"; readonly message: string }
  | { readonly type: "stopped" };

/** Store → delivery. Only so many bytes of batches are under way: each message with batches is to be answered by `received`. */
export type StoreToDelivery =
  /** Ids below nextId are committed; those from start.from on have its name. Undefined: no file is open. */
  | { readonly type: "ready"; readonly start: Start | undefined; readonly nextId: number | undefined }
  | { readonly type: "sinks"; readonly sinks: readonly BufferSink[] }
  /** Comes before its first batch. Negative ids are those of unstored batches, and never in the file. */
  | { readonly type: "layout"; readonly id: number; readonly layout: Layout }
  | { readonly type: "committed"; readonly batches: readonly StoredBatch[] }
  /** Ids below this are committed; what was not posted of them is to be read from the file. */
  | { readonly type: "skipped"; readonly nextId: number }
  /**
   * Batches that the file does not take: for sinks that can write them now, and for nobody later. Their ids are negative, in no file,
   * and not to be acknowledged; `delivered_unstored` reports what was delivered of them.
   */
  | { readonly type: "unstored"; readonly batches: readonly StoredBatch[] }
  /** Newest readouts that found no room on the way to a delivery of current values: bytes by uuid of the source. */
  | { readonly type: "kept_back"; readonly bytes: ReadonlyMap<string, number> }
  /** These sinks have losses to publish (BufferReader.losses). */
  | { readonly type: "losses"; readonly sinks: readonly string[] };

/** Store → delivery in a process of its own, whose messages pass the host: it copies the bytes of a large layout, and not the objects. */
export type StoreToRelay =
  | StoreToDelivery
  /** A piece of a serialized layout, in order; the last one completes it. */
  | { readonly type: "layout_bytes"; readonly id: number; readonly bytes: Uint8Array; readonly isLast: boolean };

/** Delivery → store. */
export type DeliveryToStore =
  | { readonly type: "acknowledge"; readonly acknowledgements: readonly Acknowledgement[] }
  /** These batches are sent with the stamps they were read with: those are final. */
  | { readonly type: "stamps_used"; readonly ids: readonly number[] }
  /** How many of the sinks that keep the whole history take values at this moment, and how many do not. */
  | { readonly type: "sinks_open"; readonly open: number; readonly closed: number }
  /** One message with batches was taken from the port: `committed` or `unstored`. */
  | { readonly type: "received" }
  | { readonly type: "delivered_unstored"; readonly sink: string; readonly values: number }
  | { readonly type: "losses_published"; readonly losses: readonly LossAcknowledgement[] }
  /** Reading the file has failed: the store itself may never read the damaged page. */
  | { readonly type: "unreadable" };
