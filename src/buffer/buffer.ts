import type { ClockState } from "../model/clock.ts";
import type { Layout } from "../model/layout.ts";
import type { GapReason } from "../model/loss.ts";

/** One readout as the agent thread encoded it (codec.ts); what is kept until the store has answered. */
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
  /** Readings of all variables that are as they were reported last, and not in it; absent: none. */
  readonly suppressed?: number;
  /** For sinks that serve current values, where some are not in the payload: the whole readout. */
  readonly shown?: ShownReadout;
  /** Copied from the readout; both or neither. Without them the state of the clock is unknown, and `time` is never corrected. */
  readonly clockSynced?: boolean | undefined;
  readonly bootTimeMs?: number | undefined;
}

/** A readout with all of its readings. Never in the file. */
export type ShownReadout = Pick<NewBatch, "payload" | "count" | "explorationCount">;

/** A batch as the file holds it. Ids rise by commit order and are never used again, not even after the file was emptied. */
export interface StoredBatch extends Omit<NewBatch, "seq" | "layoutKey" | "clockSynced" | "bootTimeMs" | "suppressed"> {
  readonly id: number;
  /** Id of the layout in this file. */
  readonly layout: number;
  /** `time` minus the stamp in the payload, ms: the clock was set right since. */
  readonly correctionMs?: number | undefined;
}

/** Batches from the id on were first numbered since one start of a store. */
export interface Start {
  readonly from: number;
  /** New with each start, also of a copy of the file: an id with the name stands for one content. */
  readonly name: string;
}

/** Pending ids of one sink: half-open ranges, rising, not touching; the last one is the live edge and has no end. */
export interface Position {
  readonly older: readonly { readonly from: number; readonly to: number }[];
  readonly live: number;
}

/** A sink's place in the file at one moment. */
export interface Place {
  readonly position: Position;
  /** The id that the next batch gets. Every batch below it is committed, or will never be. */
  readonly nextId: number;
  readonly account: Account;
}

/** A sink as the buffer knows it: what "pending" is counted in. */
export interface BufferSink {
  readonly id: string;
  readonly takesExploration: boolean;
}

/** Why values were given up. Closed; each is counted. */
export const DROP_REASONS = ["buffer_full", "too_old", "sink_removed", "refused", "damaged"] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/**
 * Why read values were never accepted. overflow: no memory left to wait for the store in; not_stored: the file took nothing for too long,
 * and they were handed to the sinks that could take them at once.
 */
export const REJECT_REASONS = ["overflow", "not_stored"] as const;
export type RejectReason = (typeof REJECT_REASONS)[number];

/** The span of time of the values rejected for one reason. */
export interface RejectedSpan {
  /** Epoch ms of the first and the last readout in it. */
  readonly from: number;
  readonly to: number;
  /** The readouts' `bootTimeMs`, when their clock was not synchronised; absent: it was. */
  readonly fromBootTimeMs?: number | undefined;
  readonly toBootTimeMs?: number | undefined;
  /** How many of the values are of EXPLORATION variables: of those, not every sink has a loss. */
  readonly explorationCount: number;
}

/** In values. accepted = delivered + unconfirmed + filtered + pending + Σ dropped, at every look. */
export interface SinkLedger {
  readonly sink: string;
  readonly accepted: number;
  /** The receiver has confirmed that it holds them. */
  readonly delivered: number;
  /** They were sent, by a protocol that confirms nothing (MQTT with QoS 0). */
  readonly unconfirmed: number;
  /** Its filter leaves them out. */
  readonly filtered: number;
  readonly pending: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  /** Rejected values that were delivered all the same; outside the equation. */
  readonly deliveredUnstored: number;
  /** Epoch ms: the sink was removed, and what is pending waits for it until then. Absent: it is in use, or nothing waits. */
  readonly keptUntil?: number;
}

/** The fate of the values that were accepted for one sink. */
export type Account = Pick<SinkLedger, "accepted" | "delivered" | "unconfirmed" | "filtered" | "dropped">;

/** In values. */
export const pendingOf = ({ accepted, delivered, unconfirmed, filtered, dropped }: Account): number =>
  DROP_REASONS.reduce((rest, reason) => rest - (dropped[reason] ?? 0), accepted - delivered - unconfirmed - filtered);

/** The account as a whole. Counts go on over restarts; a file that was lost begins a new epoch, with `lost`. */
export interface Ledger {
  readonly epoch: string;
  readonly sinks: readonly SinkLedger[];
  /** Values of all variables that were read and not reported, being as they were reported last. */
  readonly suppressed: number;
  /** Values of all variables that were read and not accepted. */
  readonly rejected: Readonly<Partial<Record<RejectReason, number>>>;
  /** An unknown number of values was lost with an earlier file, none of them older than `since` (epoch ms). */
  readonly lost: { readonly since: number; readonly why: string } | null;
}

/** How full the file is. */
export interface BufferFill {
  /** Bytes of the pages that hold something. */
  readonly usedBytes: number;
  /** With more than so many the oldest values are dropped. */
  readonly dropAtBytes: number;
  /** Bytes of the pages that hold nothing: they are filled before the disk is asked for more. */
  readonly spareBytes: number;
  /** Bytes that readouts took in it since it was opened, whatever left it meanwhile. */
  readonly addedBytes: number;
  /** So much of a byte of these is left once it has waited for some seconds and is packed; absent: not known yet. */
  readonly packedPart?: number | undefined;
  /** Until the oldest readout in it exceeds the bound of age, ms; without readouts the bound itself. */
  readonly ageLeftMs: number;
}

/**
 * Values that a sink has not delivered and never will, or that only a newer version delivers. One per sink and reason is open at a time and grows
 * until it is acknowledged; what is dropped afterwards opens one with the next number. Published twice under one number, the later message
 * holds: one without values takes the gap back.
 */
export interface Loss {
  readonly reason: GapReason;
  /** From 1 per sink and reason; never used again. */
  readonly number: number;
  /** Epoch ms of the first and the last readout in it. */
  readonly from: number;
  readonly to: number;
  /** Null: nobody knows. */
  readonly values: number | null;
  /** How far `from` and `to` can be relied on; absent: they are right. */
  readonly clock?: Exclude<ClockState, "synchronised">;
}

/** The broker or server has a message about the loss of so many values. What came to it since then is still to be published. */
export interface LossAcknowledgement extends Pick<Loss, "reason" | "number" | "values"> {
  readonly sink: string;
}

/** The outcome of whole batches for a sink: their ids are no longer pending for it. */
export interface Acknowledgement {
  readonly sink: string;
  readonly ids: readonly number[];
  /** Values that the broker or server has. */
  readonly delivered: number;
  /** True: nothing confirms that, so that `delivered` counts as unconfirmed. */
  readonly isUnconfirmed?: boolean;
  /** Values that the filter of the sink leaves out; absent: none. */
  readonly filtered?: number;
  /** Values that it will never take. delivered + filtered + Σ dropped = the values of `ids` for this sink. */
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  /** Those of `ids` of which values were dropped; absent: any of them. */
  readonly droppedIds?: readonly number[];
}

/** The work of one transaction; absent lists are empty. */
export interface CommitWork {
  /** Names one life of the process. */
  readonly run: string;
  readonly layouts: readonly { readonly key: string; readonly layout: Layout }[];
  readonly batches: readonly NewBatch[];
  readonly acknowledgements: readonly Acknowledgement[];
  /** Ids of batches that a sink has begun to send with the stamps they were read with: those are final. */
  readonly stampsUsed?: readonly number[];
  readonly losses?: readonly LossAcknowledgement[];
  /** Values to add to those that were not reported. */
  readonly suppressed?: number;
  /** Values to add to what was rejected. */
  readonly rejected?: Readonly<Partial<Record<RejectReason, number>>>;
  /** The spans of the values that are new in `rejected` and in `overflowOfRun`. */
  readonly rejectedSpans?: Readonly<Partial<Record<RejectReason, RejectedSpan>>>;
  /** Values that `run` has rejected as overflow since its start; what is new in it is added. */
  readonly overflowOfRun?: number;
  /** Values to add to what was delivered unstored. */
  readonly deliveredUnstored?: readonly { readonly sink: string; readonly values: number }[];
}

/** The store's side: the only writer of the file. Synchronous: it lives in a worker of its own. */
export interface Buffer {
  /** Id of this file's life: a new one after values were lost with the file. */
  readonly epoch: string;
  /** Highest `seq` of `run` that is committed; 0 if none. */
  lastSeq(run: string): number;
  /** The id that the next batch gets. */
  nextId(): number;
  /** One transaction, committed with synchronous=FULL when it returns. Batches at or below lastSeq are left out. Throws with nothing changed. */
  commit(work: CommitWork): readonly StoredBatch[];
  /** The sinks that get the whole history from now on. A new one starts at the live edge; what a missing one has pending is kept for it for a time, and dropped(sink_removed) then. */
  setSinks(sinks: readonly BufferSink[]): void;
  ledger(): Ledger;
  /** Bytes of the file with its WAL. */
  bytes(): number;
  fill(): BufferFill;
  close(): void;
}

/** The delivery's side: short reads through a read-only connection, no iterator left open. */
export interface BufferReader {
  position(sink: string): Position | undefined;
  place(sink: string): Place | undefined;
  /** Batches with from <= id < to in order, until maxBytes of payload are reached (at least one if there is one). */
  read(from: number, to: number, maxBytes: number): readonly StoredBatch[];
  layout(id: number): Layout | undefined;
  /** The losses that a sink has to publish, at most one per reason. */
  losses(sink: string): readonly Loss[];
  /** By rising ids. Older batches have no start. */
  starts(): readonly Start[];
  close(): void;
}
