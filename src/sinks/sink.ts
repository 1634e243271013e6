import type { z } from "zod";
import type { Loss } from "../buffer/buffer.ts";
import type { Condition } from "../model/condition.ts";
import type { Context, Log } from "../model/context.ts";
import type { Layout } from "../model/layout.ts";
import type { LinkReport, SinkReport, SourceReport } from "../model/report.ts";
import type { Readout } from "../model/value.ts";
import type { Warning } from "../model/warning.ts";

/** Readouts of one source, in order, along one layout. `id` is stable when the same readouts are written again. */
export interface SinkBatch {
  readonly id: string;
  readonly layout: Layout;
  /**
   * Decoded one by one during the iteration, which may be repeated. The objects of a readout and its readings are reused: they stay valid
   * until the next readout is taken or the iteration ends. To keep one, copy it (`copyReadout`). Texts and arrays in them are not reused.
   */
  readonly readouts: Iterable<Readout>;
  /** Older data, delivered between live batches. */
  readonly backlog: boolean;
  /** True: older and newer readouts of a source arrive in the order of their writes. Else those of the backlog do, and the others do. */
  readonly inOrder?: boolean;
  /** True: to be tried whatever the sink expects of it, since it was refused for now, or is not held any more if it is refused. */
  readonly isRetry?: boolean;
  /** The server has failed on larger messages: none may be larger than this in bytes, except those of a single value. */
  readonly maxMessageBytes?: number;
}

/** Values of a batch: of one of its readouts, in the order in which they are iterated, those of the variables from <= place < to. */
export interface BatchPart {
  readonly readout: number;
  readonly from: number;
  readonly to: number;
}

/** The server refuses something for now, whatever is in it: a right may be given, and a fault of its own may pass. */
export interface Hold {
  /** From the first refusal on. */
  readonly forMs: number;
  /** The delivery then drops it, or tries it apart like any refused message. */
  readonly next: "drop" | "isolate";
}

/** One message that the server refused, over a connection that stays open. The rest of the batch is not affected. */
export interface Refusal {
  /** Its contents, by rising readout and place. */
  readonly parts: readonly BatchPart[];
  /** The server's words, with what they are about. */
  readonly detail: string;
  /** Absent: it may be at fault itself. */
  readonly hold?: Hold;
}

/** A readout of a batch, to be kept. Its texts and arrays are shared. */
export const copyReadout = (readout: Readout): Readout => ({
  ...readout,
  readings: readout.readings.map((reading) => reading && { ...reading }),
});

/** Values that this sink will never get. `id` is stable; of two publications under one id the later one holds. */
export interface PublishedLoss extends Omit<Loss, "number"> {
  readonly id: string;
}

/** The outcome of a batch, in values; the server has those that are not listed here. */
export interface WriteResult {
  /** Dropped and counted. */
  readonly refused: number;
  /** Why, for the sink's state; the first one is enough. */
  readonly detail?: string;
  /** Messages that may be at fault themselves: the delivery isolates their values and retries them in ever smaller batches. */
  readonly refusals?: readonly Refusal[];
}

export interface OpenInput<D, S, M = SinkMemory> {
  readonly uuid: string;
  readonly name: string | null;
  readonly details: D;
  readonly settings: S;
  /** By field name (`password`). Never logged. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Uuid of the collector; absent: not known. */
  readonly collector?: string | undefined;
  /** The kind's memory of this sink, the same for all its openings. Absent: the opening is the only one. */
  readonly memory?: M | undefined;
}

/** Memory that a kind keeps for one sink across openings. The delivery owns it from the start of the sink to its end. */
export interface SinkMemory {
  /** Saves what outlasts the process. `removed`: the configuration no longer has the sink; deletes that instead. Never throws. */
  close(removed: boolean): void;
}

/** Which sink a memory belongs to, and where it may be saved. */
export interface MemoryLocation {
  /** Folder for a small file of this sink; undefined: nothing is saved. */
  readonly folder: string | undefined;
  readonly uuid: string;
  /** The value of `SinkKind.endpoint`: knowledge of one server does not apply to another. */
  readonly endpoint: string;
  readonly log: Log;
}

/** A step on the way to a server, beyond the connection. */
export interface ProbeOutcome {
  /** unknown: the protocol does not say. */
  readonly result: "ok" | "unknown";
  readonly detail: string;
}

/** Runs one step and tells its outcome with its time. Throws what `work` throws, which the step has failed with then. */
export type ProbeTell = (step: "tls" | "log-in" | "publish", work: () => Promise<ProbeOutcome>) => Promise<void>;

/** A value as a sink places it. */
export interface PlacedValue {
  readonly name: string;
  readonly uuid: string;
}

/** Promises of the delivery: open is repeated with backoff; write follows a successful open and never exceeds `inFlight`. */
export interface SinkKind<D = unknown, S = unknown, M extends SinkMemory = SinkMemory> {
  /** `details.type` of the data sinks it serves. */
  readonly type: string;
  readonly title: string;
  readonly details: z.ZodType<D>;
  /** Local options: a strict object, every field with a description and a default. */
  readonly settings: z.ZodType<S>;
  /** every: the whole history, at least once. latest: current values only, no backlog, nothing in the ledger. */
  readonly delivery: "every" | "latest";
  readonly takesExploration: boolean;
  /** The likely cause where the server closes the connection soon after each opening; `sink`: as a command names it. */
  readonly closedSoon?: { readonly hint: (sink: string) => string; readonly condition: Condition };
  /** Readouts of one source within this many ms make one batch. Throws ReasonError(UNKNOWN, interval_invalid) that names the field. */
  publishIntervalMs(details: D, unit: "seconds" | "milliseconds"): number;
  /** False: with these settings nothing confirms what the sink sends; the ledger counts it as unconfirmed. Pure. Absent: the server confirms. */
  confirms?(settings: S): boolean;
  /** Says why the settings do not fit these details: the setting, what it needs, and what there is. Absent, or undefined: they fit. */
  settingsProblem?(settings: S, details: D): string | undefined;
  /** `host:port` or an address to listen on, for reports. */
  endpoint(details: D): string;
  /** It listens there, and others connect. Absent: it connects. */
  readonly listens?: boolean;
  /** Names the protection of the bytes on the way there, such as `TLS`. Pure. Absent: nothing protects them. */
  encryption?(details: D, settings: S): string;
  /** The place where a sink with these details puts a value of a source, in words; absent, or undefined: they do not say. Pure, may throw. */
  placeOf?(details: Readonly<Record<string, unknown>>, source: string, value: PlacedValue): string | undefined;
  /** Limits the readouts of current values that wait for the sink in memory (setting max_waiting). Absent: the delivery's own limit. */
  maxWaitingBytes?(settings: S): number;
  /** Absent: the kind keeps nothing over openings. Never throws. */
  openMemory?(location: MemoryLocation): M;
  open(input: OpenInput<D, S, M>, ctx: Context): Promise<Sink>;
  /** Walks the way beyond the connection for a person, beside the open sink and without disturbing it. Absent: nothing more can be looked at. */
  probe?(input: OpenInput<D, S, M>, tell: ProbeTell, ctx: Context): Promise<void>;
}

/** Limits on the older values that a sink accepts at once. */
export interface OlderBounds {
  /** Writes under way, from 1. */
  readonly writes: number;
  /** About how many bytes the sink may make of one of them; a single readout may exceed it. */
  readonly bytes: number;
}

/** An open sink. Knows nothing of the buffer: a batch whose write throws comes again after the next opening. */
export interface Sink {
  /** Writes under way at once; a hard bound. */
  readonly inFlight: number;
  /** Warnings while the sink is healthy. */
  readonly warnings: readonly Warning[];
  /** Called once, with what is to be called when the warnings or clients have changed. Absent: they are looked at when the sources are described. */
  watchWarnings?(changed: () => void): void;
  /** `host:port` that it really listens on, where that depends on more than the details; absent: as the kind says. */
  readonly endpoint?: string;
  /** Resolves once the server has the batch, except what the result names. Throws ReasonError when the connection is lost. */
  write(batch: SinkBatch, ctx: Context): Promise<WriteResult>;
  /**
   * The sources as they are now: retained status and metadata where the protocol has them; those of sources that are no
   * longer listed are cleared. Calls do not overlap. Throws ReasonError when the connection is lost.
   */
  describe?(sources: readonly SourceReport[], ctx: Context): Promise<void>;
  /** Resolves once the server has it; false: the server refuses it. Throws ReasonError when the connection is lost. */
  publishLoss?(loss: PublishedLoss, ctx: Context): Promise<boolean>;
  /** The sink has been removed: clears what it has retained at the server. */
  forget?(ctx: Context): Promise<void>;
  /** The way to the server, where the kind measures it. */
  link?(): LinkReport;
  /** Clients of a server that it hosts; changes are told as those of warnings are. */
  clients?(): NonNullable<SinkReport["clients"]>;
  /** Limits for older values, when the sink itself sends newer ones first. Absent: half of inFlight, of any size. */
  older?(): OlderBounds;
  /** Settles when the connection is lost, with the ReasonError; never before open has returned. */
  readonly lost: Promise<Error>;
  /** Idempotent, bounded in time, never throws. */
  close(): Promise<void>;
}

export type AnySinkKind = SinkKind;

export function defineSink<D, S, M extends SinkMemory = SinkMemory>(kind: SinkKind<D, S, M>): AnySinkKind {
  return kind as unknown as AnySinkKind;
}
