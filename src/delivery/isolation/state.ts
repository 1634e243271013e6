import type { Hold } from "../../sinks/sink.ts";
import type { Outcome } from "../acknowledgements.ts";
import type { Counted, Places } from "./pieces.ts";
import type { RowAccounts, Settle } from "./row-accounts.ts";

/** Values of one layout that are written apart from the others. */
export interface Part {
  readonly layout: number;
  readonly backlog: boolean;
  /** By rising row and place. */
  readonly pieces: readonly Counted[];
}

/** Values with which a write has failed. */
export interface Suspect extends Part {
  /** Number of the refused message or the job that it was taken out of. */
  readonly origin: number;
  /** How small its messages must be: place in MESSAGE_BYTES. */
  readonly rung: number;
  /** Must be the only write under way: else a loss would not show whether the server fails on it. */
  needsQuiet: boolean;
  isUnderWay: boolean;
  failures: number;
  /** Other values have arrived since its last failure. */
  haveOthersPassed: boolean;
  pauseMs: number;
  dueMs: number;
}

/** Values of one source that the server refuses for now. */
export interface Held {
  /** Oldest first. */
  parts: Part[];
  /** Those that are being tried. */
  underWay: readonly Part[];
  /** After this nothing of the source is held. */
  readonly untilMs: number;
  readonly next: Hold["next"];
  /** The last refusal, in the server's words. */
  detail: string;
  pauseMs: number;
  dueMs: number;
  /** The newest is tried next: the oldest alone may be at fault. */
  isNewestNext: boolean;
}

/** Parts that are to be written now, in one write. */
export type Due = (
  | { readonly what: "suspect"; readonly suspect: Suspect }
  | { readonly what: "held"; readonly source: string; readonly parts: readonly Part[] }
) &
  Part & { readonly maxMessageBytes: number | undefined };

/** Parts that are being written. */
export interface Attempt {
  readonly due: Due;
  /** Those of its pieces that the file still has. */
  readonly pieces: readonly Counted[];
  readonly places: Places;
  /** Values, source and time, for people. */
  readonly name: string;
}

/** The part of the state that is about rows of one file. */
export const forgotten = () => ({
  /** In the order in which they are tried. */
  suspects: [] as Suspect[],
  /** By source. */
  holds: new Map<string, Held>(),
  /** Pieces in all holds. */
  heldPieces: 0,
  underWay: [] as Attempt[],
  /** Accounts of the rows of all these. */
  rows: new Map() as RowAccounts,
  /** Losses in a row of normal jobs that were under way, by their first row. The newest is last. */
  losses: new Map<number, number>(),
  /** By origin: how often its parts were split. */
  splits: new Map<number, number>(),
});

/** The state of one sink's isolation. Plain data; times are monotonic ms. */
export const newIsolation = () => ({
  ...forgotten(),
  origins: 0,
  /** The last failure, with its values, in words; null: none yet. */
  why: null as string | null,
  /** Writes of which the server took values, ever and before this opening. */
  passes: 0,
  passesBefore: 0,
  /** Messages that were refused since values passed. */
  refusedInARow: 0,
  refusedMs: Number.NEGATIVE_INFINITY,
  /** Bytes that a message may have, as was learned from a suspect; null: as the sink likes. */
  learned: null as { readonly maxMessageBytes: number; readonly untilMs: number } | null,
  /** How long what is learned next is believed. */
  learnMs: 60_000,
  openedMs: 0,
  /** No write of this opening begins earlier. */
  notBeforeMs: 0,
  /** Something apart was written last: a normal job is next, so that others pass between suspects. */
  wasApart: false,
  /** Normal jobs ended the opening before with nothing taken: in this one a suspect is first, or none would ever be tried. */
  isApartFirst: false,
  /** The collector ends this opening: the writes under way are not the cause. */
  isGivenUp: false,
  /** The last loss may have been due to a notice: once, the writes are not suspected for it. */
  isInDoubt: false,
});
export type Isolation = ReturnType<typeof newIsolation>;

export type Effect =
  /** `outcome` undefined: the row has left the file. */
  | { readonly what: "settled"; readonly row: number; readonly outcome: Outcome | undefined }
  /** A write of a source is through; so many of its values were refused and dropped. */
  | { readonly what: "wrote"; readonly source: string; readonly refused: number; readonly detail: string | undefined }
  /** The server failed on these values alone while others passed, or those of `source` were held for long enough. */
  | { readonly what: "dropped"; readonly values: number; readonly detail: string; readonly source?: string }
  /** The server takes all of a source again of which what was refused had not been held any more. */
  | { readonly what: "recovered"; readonly source: string }
  /** The server has refused values for now: they are held. */
  | { readonly what: "held"; readonly detail: string };

/** One step: its effects, in order. */
export interface Turn {
  readonly state: Isolation;
  readonly nowMs: number;
  readonly effects: Effect[];
  readonly settle: Settle;
}
