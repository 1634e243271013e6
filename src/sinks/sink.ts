import type { z } from "zod";
import type { GapReason } from "../buffer/buffer.ts";
import type { Context } from "../model/context.ts";
import type { Layout } from "../model/layout.ts";
import type { SourceReport } from "../model/report.ts";
import type { Readout } from "../model/value.ts";

/** Readouts of one source, in order, along one layout. `id` is stable when the same readouts are written again. */
export interface SinkBatch {
  readonly id: string;
  readonly layout: Layout;
  /**
   * Decoded one by one as they are asked for; may be gone over again. A readout and its readings are valid until the next one is asked for or
   * the iteration ends, and are filled anew then: who keeps one makes a copy (`copyReadout`). Texts and arrays in them stay as they are.
   */
  readonly readouts: Iterable<Readout>;
  /** Older data, drained beside the live edge. */
  readonly backlog: boolean;
  /** True: older and newer readouts of a source arrive in the order of their writes. Else those of the backlog do, and the others do. */
  readonly inOrder?: boolean;
  /** The far side has failed on larger messages: they are made no larger than this in bytes, but for single values. */
  readonly maxMessageBytes?: number;
}

/** Values of a batch: of one of its readouts, in the order in which they are iterated, those of the variables from <= place < to. */
export interface BatchPart {
  readonly readout: number;
  readonly from: number;
  readonly to: number;
}

/** One message that the far side did not take, over a way out that goes on. The rest of the batch is not concerned. */
export interface Refusal {
  /** What was in it, by rising readout and place. */
  readonly parts: readonly BatchPart[];
  /** The far side's words, with what it was about. */
  readonly detail: string;
}

/** A readout of a batch, to be kept. Its texts and arrays are shared. */
export const copyReadout = (readout: Readout): Readout => ({
  ...readout,
  readings: readout.readings.map((reading) => reading && { ...reading }),
});

/** Values that the far side will never get. `id` is stable; told twice under one id, the later one holds. */
export interface SinkGap {
  readonly id: string;
  readonly reason: GapReason;
  /** Epoch ms of the first and the last readout in it. */
  readonly from: number;
  readonly to: number;
  /** Null: nobody knows. */
  readonly values: number | null;
}

/** What became of a batch, in values; the rest of it the far side holds. */
export interface WriteResult {
  /** Given up for ever: they are dropped and counted. */
  readonly refused: number;
  /** Why, for the sink's state; the first one is enough. */
  readonly detail?: string;
  /** Messages that may be at fault themselves: the delivery tries what was in them apart, in ever smaller batches. */
  readonly refusals?: readonly Refusal[];
}

export interface OpenInput<D, S> {
  readonly uuid: string;
  readonly name: string | null;
  readonly details: D;
  readonly settings: S;
  /** By field name (`password`). Never logged. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Where this sink has left something for good (retained topics), over all its openings: kept by the delivery, written by the sink. */
  readonly leftBehind: Set<string>;
  /** What, apart from values, the far side ended an opening for, and until when it is spared that (monotonic ms). Over all openings, kept by the delivery. */
  readonly unwelcome?: Map<string, Unwelcome>;
  /** What the sink wants to know of the far side at its next openings, by a key of its own. Kept by the delivery while it runs. */
  readonly remembered?: Map<string, string>;
}

export interface Unwelcome {
  readonly detail: string;
  readonly untilMs: number;
  /** The far side did not say so. */
  readonly isGuess?: boolean;
}

/** Promises of the delivery: open is repeated with backoff; write follows a successful open and never exceeds `inFlight`. */
export interface SinkKind<D = unknown, S = unknown> {
  /** `details.type` of the data sinks it serves. */
  readonly type: string;
  readonly title: string;
  readonly details: z.ZodType<D>;
  /** Local options: a strict object, every field with a description and a default. */
  readonly settings: z.ZodType<S>;
  /** every: the whole history, at least once. latest: current values only, no backlog, nothing in the ledger. */
  readonly delivery: "every" | "latest";
  readonly takesExploration: boolean;
  /** What may be the matter where the far side closes soon after each opening. */
  readonly closedSoonHint?: string;
  /** Readouts of one source within this many ms make one batch. Throws ReasonError(UNKNOWN, interval_invalid) that names the field. */
  publishIntervalMs(details: D, unit: "seconds" | "milliseconds"): number;
  /** `host:port` or an address to listen on, for reports. */
  endpoint(details: D): string;
  open(input: OpenInput<D, S>, ctx: Context): Promise<Sink>;
}

/** An open way out. Knows nothing of the buffer: to throw is to be given the batch again after a new open. */
export interface Sink {
  /** Writes under way at once; a hard bound. */
  readonly inFlight: number;
  /** What an operator should know of this way out although it works. */
  readonly warnings: readonly string[];
  /** Resolves once the far side holds the batch, but for what the result says. Throws ReasonError when the way out is lost. */
  write(batch: SinkBatch, ctx: Context): Promise<WriteResult>;
  /**
   * The sources as they are now: retained status and metadata where the protocol has them; what is no longer listed is cleared.
   * Calls do not overlap. Throws ReasonError when the way out is lost.
   */
  describe?(sources: readonly SourceReport[], ctx: Context): Promise<void>;
  /** Resolves once the far side holds it; false: it refuses it. Throws ReasonError when the way out is lost. */
  publishGap?(gap: SinkGap, ctx: Context): Promise<boolean>;
  /** The sink has been removed: clears all that it left behind. */
  forget?(ctx: Context): Promise<void>;
  /** Settles when the way out is lost, with the ReasonError; never before open has returned. */
  readonly lost: Promise<Error>;
  /** Idempotent, bounded in time, never throws. */
  close(): Promise<void>;
}

export type AnySinkKind = SinkKind;

export function defineSink<D, S>(kind: SinkKind<D, S>): AnySinkKind {
  return kind as unknown as AnySinkKind;
}
