import type { Job } from "./delivery-queue.ts";

/** Values of one row: those of the variables from <= place < to; without `to` all that follow. */
export interface Piece {
  readonly row: number;
  readonly from: number;
  readonly to?: number;
}

/** Values that are written alone, because a write with them has failed. */
export interface Suspect {
  /** Of all its rows. */
  readonly layout: number;
  readonly backlog: boolean;
  /** By rising row and place. */
  readonly pieces: readonly Piece[];
  /** Bytes that a message of it may have. */
  readonly maxMessageBytes: number | undefined;
  /** Must be the only write under way: else a loss would not show whether the server fails on it. */
  readonly needsQuiet: boolean;
}

/** What became of a suspect that failed. */
export type Verdict =
  /** It is tried again later, as it is. */
  | { readonly type: "kept" }
  /** It is tried again in halves. */
  | { readonly type: "split" }
  /** It failed alone, again and again, while others passed. */
  | { readonly type: "dropped"; readonly failures: number };

/** By losses with the suspect alone under way. A server may close the connection, without a word, on a message that is too large for it. */
const MESSAGE_BYTES = [undefined, 16_384, 1024] as const;
/** Losses in a row with the same job under way, after which it is a suspect. One may be chance. */
const LOSSES = 2;
/** A single value that failed so often alone, with other values passing between any two of them, is dropped. */
const FAILURES = 3;
/** Between two failures that count. */
const SPACING_MS = 1000;
/** Between two tries while nothing else passes, at most. */
const LONGEST_PAUSE_MS = 60_000;
/** Parts that one refused message may be taken into: beyond it a part counts as a single value. */
const MAX_SPLITS = 64;
/** A server that takes only small messages is tried with larger ones again after the first time, then after twice as long each time. */
const LEARNT_MS = { least: 60_000, most: 3_600_000 } as const;
/** Jobs whose losses are counted; the oldest are forgotten. */
const MAX_JOBS = 1000;
/** Suspects at once. */
const MAX_SUSPECTS = 1000;
/** Refusals in a row without one value that passed: the server refuses everything. */
const REFUSES_ALL = 64;

interface Tracked extends Suspect {
  readonly origin: { splits: number };
  readonly rung: number;
  isUnderWay: boolean;
  failures: number;
  /** Of all passes, at its last failure. */
  passes: number;
  failedMs: number;
  pauseMs: number;
}

/**
 * Finds poison batches: batches whose delivery the server refuses, or makes it close the connection or fall silent. A batch that was under
 * way at two losses in a row, or that was refused, becomes a suspect and is written alone, so that it does not hold up the batches behind
 * it. A suspect that fails again is retried in smaller messages, then in halves down to single values. A single value that fails alone
 * while others pass is dropped. While nothing passes nothing is dropped: the server is in trouble, not the value. Has no timer and no clock
 * of its own.
 */
export class Suspects {
  readonly #losses = new Map<number, number>();
  /** In the order in which they are tried. */
  #waiting = new Set<Tracked>();
  /** Writes of which the server took values. */
  passes = 0;
  /** Messages that the server refused. */
  refusals = 0;
  #refusedInARow = 0;
  #learnt: { readonly maxMessageBytes: number; readonly untilMs: number } | undefined;
  #learntMs: number = LEARNT_MS.least;

  /** A normal job that is to be added instead of written. */
  isSuspected(job: Job): boolean {
    return (this.#losses.get(keyOf(job)) ?? 0) >= LOSSES && this.#waiting.size < MAX_SUSPECTS;
  }

  /** No more suspects can be kept, or nothing passes at all: the sink is to be closed for a while. */
  isOverwhelmed(): boolean {
    return this.#waiting.size >= MAX_SUSPECTS || this.#refusedInARow >= REFUSES_ALL;
  }

  /** The sink is open again. */
  opened(): void {
    this.#refusedInARow = 0;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Bytes that messages of any write may have; undefined: as the sink likes. */
  maxMessageBytes(nowMs: number): number | undefined {
    if (this.#learnt && nowMs >= this.#learnt.untilMs) this.#learnt = undefined;
    return this.#learnt?.maxMessageBytes;
  }

  /** A job is written apart from now on: all of it, since it was under way at losses. */
  addJob({ group: { layout, rows }, backlog }: Job): void {
    this.#losses.delete(keyOf({ group: { rows } }));
    const pieces = rows.map(({ id }) => ({ row: id, from: 0 }));
    const rung = (MESSAGE_BYTES as readonly (number | undefined)[]).indexOf(this.#learnt?.maxMessageBytes);
    this.#add({ layout, backlog, pieces, needsQuiet: true }, Math.max(0, rung));
  }

  /** What was in one refused message of a write that was no suspect's. */
  addRefused(suspect: Pick<Suspect, "layout" | "backlog" | "pieces">): void {
    this.#refused();
    this.#add({ ...suspect, needsQuiet: false }, 0);
  }

  /** The next to try, if one is due. `isProved`: also one that needs quiet. */
  next(nowMs: number, isProved: boolean): Suspect | undefined {
    for (const one of this.#waiting) if (!one.isUnderWay && this.#dueMs(one) <= nowMs && (isProved || !one.needsQuiet)) return one;
    return undefined;
  }

  /** When the next one may be due without anything else happening; undefined: none waits. */
  nextDueMs(): number | undefined {
    let next: number | undefined;
    for (const one of this.#waiting) if (!one.isUnderWay) next = Math.min(next ?? Number.POSITIVE_INFINITY, this.#dueMs(one));
    return next;
  }

  begin(suspect: Suspect): void {
    this.#tracked(suspect).isUnderWay = true;
  }

  /** The try came to nothing, and says nothing. */
  postpone(suspect: Suspect): void {
    this.#tracked(suspect).isUnderWay = false;
  }

  /** Values have arrived: those of a normal job, or of a suspect. */
  passed(job?: Job): void {
    if (job) this.#losses.delete(keyOf(job));
    this.passes++;
    this.#refusedInARow = 0;
  }

  /** All of it has arrived. */
  arrived(suspect: Suspect, nowMs: number): void {
    const one = this.#tracked(suspect);
    const bytes = MESSAGE_BYTES[one.rung];
    if (bytes !== undefined && one.origin.splits === 0) this.#learn(bytes, nowMs);
    this.remove(suspect);
    this.passed();
  }

  /** Nothing of it is left to write. */
  remove(suspect: Suspect): void {
    this.#waiting.delete(this.#tracked(suspect));
  }

  /** Part of it has arrived; of the rest each part was in one refused message. */
  narrowed(suspect: Suspect, rest: readonly (readonly Piece[])[]): void {
    const one = this.#tracked(suspect);
    this.refusals++;
    this.passed();
    this.#replace(
      one,
      rest.map((pieces) => ({ ...one, pieces, needsQuiet: false })),
    );
  }

  /**
   * A try has failed, with all that was in it. `halves` takes it apart; undefined: it is a single value. `isLoss`: the sink was lost with
   * it alone under way, else it was refused.
   */
  failed(suspect: Suspect, halves: readonly (readonly Piece[])[] | undefined, isLoss: boolean, nowMs: number): Verdict {
    const one = this.#tracked(suspect);
    one.isUnderWay = false;
    if (!isLoss) this.#refused();
    if (isLoss && one.rung + 1 < MESSAGE_BYTES.length) {
      this.#replace(one, [{ ...one, needsQuiet: true, rung: one.rung + 1 }]);
      return { type: "kept" };
    }
    if (halves && one.origin.splits < MAX_SPLITS) {
      one.origin.splits++;
      this.#replace(
        one,
        halves.map((pieces) => ({ ...one, pieces, needsQuiet: isLoss })),
      );
      return { type: "split" };
    }
    const counts = one.failures === 0 || this.passes > one.passes;
    if (counts) one.failures++;
    one.pauseMs = counts ? SPACING_MS : Math.min(one.pauseMs * 2, LONGEST_PAUSE_MS);
    one.passes = this.passes;
    one.failedMs = nowMs;
    if (one.failures < FAILURES) return { type: "kept" };
    this.#waiting.delete(one);
    return { type: "dropped", failures: one.failures };
  }

  /** Several writes were under way when the sink was lost: each may be the cause. */
  lostTogether(jobs: readonly Job[], suspects: readonly Suspect[]): void {
    for (const suspect of suspects) {
      const one = this.#tracked(suspect);
      this.#waiting.delete(one);
      this.#waiting.add({ ...one, needsQuiet: true, isUnderWay: false });
    }
    for (const job of jobs) {
      const key = keyOf(job);
      const losses = (this.#losses.get(key) ?? 0) + 1;
      this.#losses.delete(key);
      this.#losses.set(key, losses);
    }
    for (const key of [...this.#losses.keys()].slice(0, Math.max(0, this.#losses.size - MAX_JOBS))) this.#losses.delete(key);
  }

  /** The file is another one: its rows come again. */
  clear(): void {
    this.#losses.clear();
    this.#waiting.clear();
  }

  #dueMs({ failures, passes, failedMs, pauseMs }: Tracked): number {
    if (failures === 0) return 0;
    return failedMs + (this.passes > passes ? SPACING_MS : pauseMs);
  }

  #refused(): void {
    this.refusals++;
    this.#refusedInARow++;
  }

  /** It may have been chance: a server that is silent for a while fails on any size. */
  #learn(bytes: number, nowMs: number): void {
    const isNew = this.maxMessageBytes(nowMs) === undefined;
    this.#learnt = { maxMessageBytes: Math.min(bytes, this.#learnt?.maxMessageBytes ?? bytes), untilMs: nowMs + this.#learntMs };
    if (isNew) this.#learntMs = Math.min(this.#learntMs * 2, LEARNT_MS.most);
  }

  /** Its parts are tried next: what is learnt from one, as how large a message may be, is good for those that wait. */
  #replace(one: Tracked, parts: readonly Tracked[]): void {
    this.#waiting.delete(one);
    const untried = parts.map((part) => ({ ...part, ...UNTRIED, maxMessageBytes: MESSAGE_BYTES[part.rung] }));
    this.#waiting = new Set([...untried, ...this.#waiting]);
  }

  #add(suspect: Omit<Suspect, "maxMessageBytes">, rung: number): void {
    this.#waiting.add({ ...suspect, ...UNTRIED, rung, maxMessageBytes: MESSAGE_BYTES[rung], origin: { splits: 0 } });
  }

  #tracked(suspect: Suspect): Tracked {
    return suspect as Tracked;
  }
}

const UNTRIED = { isUnderWay: false, failures: 0, passes: 0, failedMs: 0, pauseMs: SPACING_MS } as const;

const keyOf = ({ group: { rows } }: { readonly group: Pick<Job["group"], "rows"> }): number => rows[0]?.id ?? 0;
