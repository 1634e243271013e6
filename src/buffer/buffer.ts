import type { Layout } from "../model/layout.ts";

/** One readout as the acquisition thread encoded it (codec.ts); what is kept until the store has answered. */
export interface NewBatch {
  /** Running number within one run of the process, from 1, without holes. */
  readonly seq: number;
  /** Content key of its layout; the layout itself was sent before. */
  readonly layoutKey: string;
  /** Epoch ms UTC of the readout. */
  readonly time: number;
  /** Readings of ACTIVE variables in it. */
  readonly count: number;
  /** Readings of EXPLORATION variables in it. */
  readonly explorationCount: number;
  readonly payload: Uint8Array;
}

/** A batch as the file holds it. Ids rise by commit order and are never used again, not even after the file was emptied. */
export interface StoredBatch {
  readonly id: number;
  /** Id of the layout in this file. */
  readonly layout: number;
  readonly time: number;
  readonly count: number;
  readonly explorationCount: number;
  readonly payload: Uint8Array;
}

/** Pending ids of one sink: half-open ranges, rising, not touching; the last one is the live edge and has no end. */
export interface Position {
  readonly older: readonly { readonly from: number; readonly to: number }[];
  readonly live: number;
}

/** A sink as the buffer knows it: what "pending" is counted in. */
export interface BufferSink {
  readonly id: string;
  readonly takesExploration: boolean;
}

/** Why values were given up. Closed; each is counted. */
export const DROP_REASONS = ["buffer_full", "too_old", "sink_removed", "refused", "damaged"] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** In values. accepted = delivered + pending + Σ dropped, at every look. */
export interface SinkLedger {
  readonly sink: string;
  readonly accepted: number;
  readonly delivered: number;
  readonly pending: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
}

/** What a sink has done with whole batches: those ids are no longer pending for it. */
export interface Acknowledgement {
  readonly sink: string;
  readonly ids: readonly number[];
  /** Values the far side holds. */
  readonly delivered: number;
  /** Values it will never take. delivered + Σ dropped = the values of `ids` for this sink. */
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
}

/** The store's side: the only writer of the file. Synchronous: it lives in a worker of its own. */
export interface Buffer {
  /** Id of this file's life: a new one after the file was set aside. */
  readonly epoch: string;
  /** Highest `seq` of `run` that is committed; 0 if none. */
  lastSeq(run: string): number;
  /** One transaction, committed with synchronous=FULL when it returns. Batches at or below lastSeq are left out. */
  commit(work: {
    readonly run: string;
    readonly layouts: readonly { readonly key: string; readonly layout: Layout }[];
    readonly batches: readonly NewBatch[];
    readonly acknowledgements: readonly Acknowledgement[];
  }): readonly StoredBatch[];
  /** The sinks that get the whole history from now on. A new one starts at the live edge; what a missing one had pending is dropped(sink_removed). */
  setSinks(sinks: readonly BufferSink[]): void;
  ledger(): readonly SinkLedger[];
  /** Bytes of the file with its WAL. */
  bytes(): number;
  close(): void;
}

/** The delivery's side: short reads through a read-only connection, no iterator left open. */
export interface BufferReader {
  position(sink: string): Position | undefined;
  /** Batches with from <= id < to in order, until maxBytes of payload are reached (at least one if there is one). */
  read(from: number, to: number, maxBytes: number): readonly StoredBatch[];
  layout(id: number): Layout | undefined;
  close(): void;
}
