import type { BufferSink, Ledger, NewBatch } from "../../buffer/buffer.ts";
import { encodeReadout, layoutKey } from "../../buffer/codec.ts";
import { createRecentLayouts } from "../../buffer/recent-layouts.ts";
import type { Layout } from "../../model/layout.ts";
import type { Readout } from "../../model/value.ts";
import type { FromStore, ToStore } from "./messages.ts";

export interface StoreClientOptions {
  /** One life of the process; the same as the store's. */
  readonly run: string;
  /** Bound of what waits for the store's answer; default 64 MiB. */
  readonly maxUnansweredBytes?: number;
  /** Every batch up to this number is on disk (or was not to be stored). */
  readonly onCommitted?: (upTo: number) => void;
  readonly onLedger: (ledger: Ledger, bytes: number) => void;
  /** Sentences for the operator; the same one is not told twice in a row. */
  readonly onAlarm: (message: string) => void;
}

export interface StoreClient {
  /** A store has started: what it has not yet answered goes to it once it says it is ready. */
  attach(post: (message: ToStore) => void): void;
  /** What the store says. */
  onMessage(message: FromStore): void;
  /** False: more waits for the store than may, or the client is closed; the readout's values are counted as rejected(overflow). */
  append(layout: Layout, readout: Readout): boolean;
  setSinks(sinks: readonly BufferSink[]): void;
  unanswered(): { readonly batches: number; readonly bytes: number };
  /** What append refused. */
  rejected(): { readonly readouts: number; readonly values: number };
  /** Takes no more. True once everything is answered, false if it is not within `timeoutMs`. */
  close(timeoutMs: number): Promise<boolean>;
}

interface Unanswered {
  readonly batch: NewBatch;
  readonly layout: Layout;
}

const MAX_UNANSWERED_BYTES = 64 * 2 ** 20;
/** What a batch costs in memory beside its payload. */
const BATCH_OVERHEAD_BYTES = 400;
/** Payload bytes in one message when much is posted again. */
const MESSAGE_BYTES = 2 ** 20;

/** The acquisition's side of the store: encodes each readout once and keeps it until the store has answered, across deaths of the store. */
export function createStoreClient(options: StoreClientOptions): StoreClient {
  const { maxUnansweredBytes = MAX_UNANSWERED_BYTES } = options;
  const unanswered = new Map<number, Unanswered>();
  let unansweredBytes = 0;
  let nextSeq = 1;
  /** The first batch that the store at hand was not sent. */
  let nextToPost = 1;
  let post: ((message: ToStore) => void) | undefined;
  let isReady = false;
  /** What the store at hand knows. */
  let sentLayouts = createRecentLayouts<string, true>();
  let sinks: readonly BufferSink[] | undefined;
  let flushing: NodeJS.Immediate | undefined;
  let rejectedReadouts = 0;
  let rejectedValues = 0;
  let toldRejectedValues = 0;
  let lastAlarm: string | undefined;
  let closed = false;
  let onDrained: (() => void) | undefined;

  const sizeOf = (batch: NewBatch): number => batch.payload.byteLength + BATCH_OVERHEAD_BYTES;

  const flush = (): void => {
    clearImmediate(flushing);
    flushing = undefined;
    if (!post || !isReady) return;
    let batches: NewBatch[] = [];
    let bytes = 0;
    while (nextToPost < nextSeq) {
      const entry = unanswered.get(nextToPost++);
      if (!entry) continue;
      const key = entry.batch.layoutKey;
      if (!sentLayouts.get(key)) {
        post({ type: "layout", key, layout: entry.layout });
        sentLayouts.add(key, entry.layout.source.uuid, true);
      }
      batches.push(entry.batch);
      bytes += entry.batch.payload.byteLength;
      if (bytes < MESSAGE_BYTES) continue;
      post({ type: "append", batches });
      batches = [];
      bytes = 0;
    }
    if (batches.length > 0) post({ type: "append", batches });
  };

  const tellOverflow = (): void => {
    if (!isReady || toldRejectedValues === rejectedValues) return;
    toldRejectedValues = rejectedValues;
    post?.({ type: "overflow", values: rejectedValues });
  };

  const answered = (upTo: number): void => {
    for (const [seq, { batch }] of unanswered) {
      if (seq > upTo) break;
      unanswered.delete(seq);
      unansweredBytes -= sizeOf(batch);
    }
    if (unanswered.size === 0) onDrained?.();
  };

  return {
    attach(postToStore) {
      post = postToStore;
      isReady = false;
    },
    onMessage(message) {
      switch (message.type) {
        case "ready":
          isReady = true;
          sentLayouts = createRecentLayouts();
          toldRejectedValues = 0;
          tellOverflow();
          answered(message.lastSeq);
          post?.({ type: "begin", life: message.life });
          if (sinks) post?.({ type: "sinks", sinks });
          nextToPost = unanswered.keys().next().value ?? nextSeq;
          flush();
          return;
        case "committed":
          answered(message.upTo);
          options.onCommitted?.(message.upTo);
          tellOverflow();
          return;
        case "rejected":
          answered(message.upTo);
          tellOverflow();
          return;
        case "ledger":
          tellOverflow();
          options.onLedger(message.ledger, message.bytes);
          return;
        case "alarm":
          if (message.message !== lastAlarm) options.onAlarm(message.message);
          lastAlarm = message.message;
          return;
        case "stopped":
          isReady = false;
          return;
      }
    },
    append(layout, readout) {
      const { payload, count, explorationCount } = encodeReadout(layout, readout);
      const batch = { seq: nextSeq, layoutKey: layoutKey(layout), time: readout.time, count, explorationCount, payload };
      if (closed || unansweredBytes + sizeOf(batch) > maxUnansweredBytes) {
        rejectedReadouts++;
        rejectedValues += count + explorationCount;
        return false;
      }
      nextSeq++;
      unanswered.set(batch.seq, { batch, layout });
      unansweredBytes += sizeOf(batch);
      // The readouts of one turn of the event loop go in one message.
      flushing ??= setImmediate(flush);
      return true;
    },
    setSinks(wanted) {
      // What was appended before belongs to the sinks that were.
      flush();
      sinks = wanted;
      if (isReady) post?.({ type: "sinks", sinks });
    },
    unanswered: () => ({ batches: unanswered.size, bytes: unansweredBytes }),
    rejected: () => ({ readouts: rejectedReadouts, values: rejectedValues }),
    close(timeoutMs) {
      closed = true;
      flush();
      if (unanswered.size === 0) return Promise.resolve(true);
      return new Promise((resolve) => {
        const timer = setTimeout(() => resolve(false), timeoutMs);
        onDrained = () => {
          clearTimeout(timer);
          resolve(true);
        };
      });
    },
  };
}
