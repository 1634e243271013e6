import type { LossReason } from "../model/loss.ts";
import { type CommitWork, type DropReason, REJECT_REASONS, type RejectedSpan, type RejectReason, type StoredBatch } from "./buffer.ts";
import type { FileSpace } from "./file-space.ts";
import type { FileState } from "./file-state.ts";
import { clockOf, type LossTable, type LossTime } from "./losses.ts";
import { type IdRange, rangesOf, union, without } from "./position.ts";
import { acknowledged, droppedIn, mapSinks, pendingAmong, pendingRanges, type SinkState, valuesFor } from "./sink-state.ts";
import type { StampRange } from "./stamps.ts";
import type { Tables } from "./tables.ts";

/** Rows deleted in one commit at most, beyond those that were dropped. */
const TRIM_ROWS = 4096;
/** Rows looked at, and dropped, at once. */
const DROP_ROWS = 64;
/** Steps of dropping in one commit: always more than it adds. */
const DROP_STEPS = 64;

/** What a sink drops of what it was given. */
const REPORTED_DROPS = ["damaged", "refused"] as const;

/** The parts of a transaction: each changes rows, and returns the state that goes with them. */
export class FileChanges {
  readonly #tables: Tables;
  readonly #losses: LossTable;
  readonly #space: FileSpace;
  readonly #boot: string;

  /** `boot`: of the machine. */
  constructor(tables: Tables, losses: LossTable, space: FileSpace, boot: string) {
    this.#boot = boot;
    this.#tables = tables;
    this.#losses = losses;
    this.#space = space;
  }

  addLayouts(before: FileState, work: CommitWork): FileState {
    const layouts = new Map(before.layouts);
    for (const { key, layout } of work.layouts) if (!layouts.has(key)) layouts.set(key, this.#tables.addLayout(key, layout));
    return { ...before, layouts };
  }

  deleteLayouts(before: FileState, keys: readonly string[]): FileState {
    if (keys.length === 0) return before;
    const layouts = new Map(before.layouts);
    for (const key of keys) {
      this.#tables.deleteLayout(layouts.get(key) ?? 0);
      layouts.delete(key);
    }
    return { ...before, layouts };
  }

  insert(before: FileState, batches: readonly StoredBatch[]): FileState {
    let count = 0;
    let explorationCount = 0;
    for (const batch of batches) {
      this.#tables.addBatch(batch);
      count += batch.count;
      explorationCount += batch.explorationCount;
    }
    const sinks = mapSinks(before.sinks, (sink) =>
      sink.active ? { ...sink, accepted: sink.accepted + valuesFor(sink, count, explorationCount) } : sink,
    );
    return { ...before, sinks };
  }

  acknowledge(before: FileState, work: CommitWork): FileState {
    const sinks = new Map(before.sinks);
    const garbage: IdRange[] = [...before.garbage];
    for (const acknowledgement of work.acknowledgements) {
      const sink = sinks.get(acknowledgement.sink);
      // A removed one may still report what was under way.
      if (!sink?.active && !sink?.removed) continue;
      const isAllDelivered = REPORTED_DROPS.every((reason) => (acknowledgement.dropped[reason] ?? 0) === 0);
      const taken = isAllDelivered ? [] : pendingAmong(sink, rangesOf(acknowledgement.droppedIds ?? acknowledgement.ids), before.nextId);
      const after = acknowledged(
        sink,
        acknowledgement,
        before.nextId,
        (state, ranges) => this.#tables.countValues(state, ranges),
        (range) => this.#tables.firstIn(range),
      );
      for (const reason of REPORTED_DROPS)
        this.#addLoss(sink.id, reason, (after.state.dropped[reason] ?? 0) - (sink.dropped[reason] ?? 0), taken, before.stamps);
      sinks.set(sink.id, after.state);
      garbage.push(...after.freed);
    }
    for (const { sink: id, values } of work.deliveredUnstored ?? []) {
      const sink = sinks.get(id);
      if (sink) sinks.set(id, { ...sink, deliveredUnstored: sink.deliveredUnstored + values });
    }
    for (const loss of work.losses ?? []) this.#losses.acknowledge(loss);
    return { ...before, sinks, garbage: union(garbage) };
  }

  /** The losses in what was rejected between the states: of each sink, but for what it has delivered unstored. */
  addRejected(before: FileState, after: FileState, { rejectedSpans = {}, deliveredUnstored = [] }: CommitWork): void {
    const unstored = new Map(deliveredUnstored.map(({ sink, values }) => [sink, values]));
    const newOf = (reason: RejectReason): number => (after.rejected[reason] ?? 0) - (before.rejected[reason] ?? 0);
    for (const { id, active, takesExploration } of after.sinks.values()) {
      if (!active) continue;
      for (const reason of REJECT_REASONS) {
        const span = rejectedSpans[reason];
        const rejected = span ? Math.max(0, newOf(reason) - (takesExploration ? 0 : span.explorationCount)) : 0;
        const values = rejected - (reason === "not_stored" ? (unstored.get(id) ?? 0) : 0);
        if (values > 0 && span) this.#losses.add({ sink: id, reason, values, ...this.#timesOf(span) });
        else if (values < 0) this.#losses.reduce(id, reason, -values);
      }
    }
  }

  /** Forgets the losses of sinks that had something pending before and will not after. */
  forgetLosses(before: FileState["sinks"], after: FileState["sinks"]): void {
    for (const { id, active, removed } of before.values()) {
      const next = after.get(id);
      if ((active || removed) && !next?.active && !next?.removed) this.#losses.forget(id);
    }
  }

  /** Drops the oldest values while the file is too large: those that wait for removed sinks alone go first. */
  keepWithinBytes(before: FileState): FileState {
    let after = before;
    for (let step = 0; step < DROP_STEPS && this.#space.isTooLarge(); step++) {
      const end = this.#endOfOldest(before.nextId);
      const range = this.#firstOfRemoved(after) ?? (end !== undefined && { from: 0, to: end });
      if (!range) break;
      after = this.#drop(after, range, "buffer_full");
    }
    return after;
  }

  /** Drops some of the values of the batches below this id. */
  dropOlder(before: FileState, endId: number): FileState {
    const end = this.#endOfOldest(before.nextId);
    return end === undefined ? before : this.#drop(before, { from: 0, to: Math.min(endId, end) }, "too_old");
  }

  /** Deletes rows that no sink waits for, at most TRIM_ROWS; the others stay garbage. */
  trim(before: FileState): FileState {
    const pending = union([...before.sinks.values()].flatMap((sink) => pendingRanges(sink, before.nextId)));
    const free = without(before.garbage, pending);
    let left = TRIM_ROWS;
    const garbage: IdRange[] = [];
    for (const { from, to } of free) {
      const first = left > 0 ? this.#tables.firstIn({ from, to }) : from;
      if (first === undefined) continue;
      // A pack goes as a whole, however many rows it has.
      const packEnd = left > 0 ? (this.#tables.endOfPack(first) ?? 0) : 0;
      const end = Math.min(to, Math.max(first + left, packEnd));
      if (left > 0) left -= this.#tables.deleteBatches({ from: first, to: end });
      if (end < to) garbage.push({ from: end, to });
    }
    return { ...before, garbage };
  }

  /** The id behind the rows that are dropped at once; `nextId`: behind all. */
  #endOfOldest(nextId: number): number | undefined {
    const first = this.#tables.oldestId();
    return first === undefined ? undefined : this.#tables.endOfFirst({ from: first, to: nextId }, DROP_ROWS);
  }

  #timesOf({ from, to, fromBootTimeMs, toBootTimeMs }: RejectedSpan): { readonly from: LossTime; readonly to: LossTime } {
    const timeOf = (ms: number, bootTimeMs: number | undefined): LossTime => ({
      ms,
      clock: bootTimeMs === undefined ? null : clockOf(this.#boot, bootTimeMs),
    });
    return { from: timeOf(from, fromBootTimeMs), to: timeOf(to, toBootTimeMs) };
  }

  #addLoss(sink: string, reason: LossReason, values: number, ranges: readonly IdRange[], stamps: readonly StampRange[]): void {
    const span = values > 0 ? this.#tables.timeSpan(ranges, stamps) : undefined;
    if (span) this.#losses.add({ sink, reason, values, ...span });
  }

  #drop(before: FileState, range: IdRange, reason: DropReason & LossReason): FileState {
    const sinks = mapSinks(before.sinks, (sink) => {
      const counted = sink.removed && reason === "buffer_full" ? "sink_removed" : reason;
      const after = droppedIn(sink, range, before.nextId, counted, (state, ranges) => this.#tables.countValues(state, ranges));
      this.#addLoss(sink.id, reason, after.values, after.lost, before.stamps);
      return after.state;
    });
    this.#tables.deleteBatches(range);
    return { ...before, sinks };
  }

  /** The oldest rows that wait for removed sinks alone. */
  #firstOfRemoved({ sinks, nextId }: FileState): IdRange | undefined {
    const waiting = (isMeant: (sink: SinkState) => boolean) =>
      union([...sinks.values()].filter(isMeant).flatMap((sink) => pendingRanges(sink, nextId)));
    const ofRemoved = waiting(({ removed }) => removed !== null);
    const ofActive = waiting(({ active }) => active);
    for (const range of without(ofRemoved, ofActive)) {
      const from = this.#tables.firstIn(range);
      if (from !== undefined) return { from, to: this.#tables.endOfFirst({ from, to: range.to }, DROP_ROWS) };
    }
    return undefined;
  }
}
