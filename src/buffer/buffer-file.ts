import { statSync } from "node:fs";
import type Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import type { Buffer, CommitWork, DropReason, GapReason, NewBatch, RejectReason, SinkLedger, StoredBatch } from "./buffer.ts";
import { type FileIdentity, type FileState, fileBytes } from "./file-state.ts";
import { gapTable } from "./gaps.ts";
import { createLayoutUse } from "./layout-use.ts";
import { type Mark, writeMark } from "./mark.ts";
import { type IdRange, rangesOf, union, without } from "./position.ts";
import { DamagedFileError } from "./set-aside.ts";
import {
  acknowledged,
  aged,
  agedWhileClosed,
  droppedIn,
  isOver,
  ledgerOf,
  mapSinks,
  pendingAmong,
  pendingRanges,
  type SinkState,
  sinksDiffer,
  valuesFor,
  withoutThoseOver,
  withSinks,
} from "./sink-state.ts";
import { tablesOf } from "./tables.ts";

export interface BufferLimits {
  /** Bound of the file with its WAL, for commits up to an eighth of it; the oldest values are dropped and counted. */
  readonly maxBytes: number;
  /** Values whose readout is older are dropped and counted. */
  readonly maxAgeMs: number;
  /** How long what waits for a removed sink is kept for it; absent: not at all. */
  readonly keepRemovedMs?: number | undefined;
  /** Epoch ms; default: the wall clock. */
  readonly now?: () => number;
  /** Never steps; default: the process' own. */
  readonly monotonicMs?: () => number;
}

export interface FileBuffer extends Buffer {
  /** One bounded step of what commits leave behind: rows nobody waits for, values beyond the bounds, free pages. True: there is more to do. */
  maintain(): boolean;
  /** A layout by its id in this file. */
  layout(id: number): Layout | undefined;
  /** Sinks that have gaps to tell. */
  sinksWithGaps(): readonly string[];
}

/** Rows deleted in one commit at most, beyond those that were dropped. */
const TRIM_ROWS = 4096;
/** Layouts that nothing names any more are kept up to so many. */
const KEPT_LAYOUTS = 8;
/** Rows looked at, and dropped, at once. */
const DROP_ROWS = 64;
/** Steps of dropping in one commit: always more than it adds. */
const DROP_STEPS = 64;
/** Ids reserved in the file at once while nothing is stored, so that most commits write nothing. */
const RESERVED_IDS = 65_536;
/** Ids reserved outside the file at once: the mark costs two fsyncs. */
const MARKED_IDS = 4096;
/** So often the mark outside the file follows it: what a file lacks of more than this is seen. */
const MARK_EVERY_MS = 10_000;
/** The WAL begins anew at this, or at a sixteenth of the whole, and is cut to it then. */
const WAL_BYTES = 4 * 2 ** 20;
/** A WAL above that which a reader kept from beginning anew may grow to this, or a quarter of the whole. */
const MAX_WAL_BYTES = 64 * 2 ** 20;
/** So often it is written for how long sinks have been removed. */
const AGE_EVERY_MS = 60_000;
/** Free pages are kept for what comes, up to this; beyond half of the file they go back to the file system. */
const KEPT_FREE_BYTES = 16 * 2 ** 20;
const VACUUM_PAGES = 256;

/** The buffer on a database that was prepared and loaded. `epoch`, ids and sinks are already those of this life of the file. */
export function bufferOn(
  db: Database.Database,
  file: string,
  loaded: FileState & FileIdentity,
  { maxBytes, maxAgeMs, keepRemovedMs = 0, now = Date.now, monotonicMs = () => performance.now() }: BufferLimits,
): FileBuffer {
  const { epoch, lost } = loaded;
  const tables = tablesOf(db);
  const gaps = gapTable(db);
  const pageBytes = Number(db.pragma("page_size", { simple: true }));
  const walLimitBytes = Math.min(WAL_BYTES, maxBytes / 16);
  const maxWalBytes = Math.min(MAX_WAL_BYTES, maxBytes / 4);
  // Room is left for what a commit adds before it drops, and SQLite's own bound lies above: it only ever stops what could not be foreseen.
  const maxPages = Math.max(1, Math.floor((maxBytes - maxWalBytes) / pageBytes));
  const dropAbovePages = maxPages - Math.min(WAL_BYTES / pageBytes, Math.floor(maxPages / 8));
  db.pragma(`journal_size_limit = ${Math.floor(walLimitBytes)}`);
  db.pragma(`wal_autocheckpoint = ${Math.ceil(walLimitBytes / pageBytes)}`);
  db.pragma(`max_page_count = ${maxPages}`);
  let state: FileState = { ...loaded, sinks: agedWhileClosed(loaded.sinks, keepRemovedMs, now()) };
  /** When the times in `state` for which sinks have been removed were right, monotonic ms. */
  let agedAtMs = monotonicMs();
  let { savedNextId } = loaded;
  const layoutUse = createLayoutUse(loaded.nextId);
  const inode = inodeOf(file);
  let marked: Mark | undefined;
  let markedAtMs = 0;

  const walBytes = (): number => fileBytes(`${file}-wal`);

  /** Begins the WAL anew where it has grown. Throws where a reader that does not end keeps it growing. */
  const keepWalBounded = (): void => {
    if (walBytes() <= 2 * walLimitBytes) return;
    db.pragma("wal_checkpoint(RESTART)");
    if (walBytes() > maxWalBytes) db.pragma("wal_checkpoint(TRUNCATE)");
    if (walBytes() > maxWalBytes)
      throw new Error(`${file}-wal has ${walBytes()} bytes and cannot be emptied, because another program reads the buffer without an end`);
  };

  const sinksThatWait = (): string[] => [...state.sinks.values()].filter(({ active, removed }) => active || removed).map(({ id }) => id);
  /** The file's next id is at least this, also where it falls back from what was reserved because something is stored again. */
  const leastNextId = (): number => Math.min(savedNextId, state.nextId);
  const mark = (to: number, closed: boolean, sinks = sinksThatWait()): void => {
    const next: Mark = { epoch, from: closed ? savedNextId : leastNextId(), to, closed, sinks, oldest: tables.oldest(1)[0]?.ts ?? now() };
    writeMark(file, next);
    marked = next;
    markedAtMs = performance.now();
  };
  /** Ids below `to` may be given from now on. */
  const reserve = (to: number): void => {
    if (!marked || marked.to < to) mark(to + MARKED_IDS, false);
  };

  const transaction = db.transaction((change: () => FileState): FileState => {
    const after = change();
    tables.saveState(state, after);
    return after;
  });
  /** What `change` returns becomes the state only once it is on disk. */
  const write = (change: () => FileState): void => {
    keepWalBounded();
    state = transaction.immediate(change);
    savedNextId = state.reservedId;
  };

  const withAges = (before: FileState): FileState => ({ ...before, sinks: aged(before.sinks, monotonicMs() - agedAtMs, now()) });
  /** As write; `change` gets the state with the times of now. */
  const writeAged = (change: (before: FileState) => FileState): void => {
    const atMs = monotonicMs();
    write(() => change(withAges(state)));
    agedAtMs = atMs;
  };
  const isAnyRemoved = (): boolean => [...state.sinks.values()].some(({ removed }) => removed);

  const isStoring = (): boolean => [...state.sinks.values()].some(({ active }) => active);

  const withLayouts = (before: FileState, work: CommitWork): FileState => {
    const layouts = new Map(before.layouts);
    for (const { key, layout } of work.layouts) if (!layouts.has(key)) layouts.set(key, tables.addLayout(key, layout));
    return { ...before, layouts };
  };

  const insert = (before: FileState, batches: readonly StoredBatch[]): FileState => {
    let count = 0;
    let explorationCount = 0;
    for (const batch of batches) {
      tables.addBatch(batch);
      count += batch.count;
      explorationCount += batch.explorationCount;
    }
    return {
      ...before,
      sinks: mapSinks(before.sinks, (sink) =>
        sink.active ? { ...sink, accepted: sink.accepted + valuesFor(sink, count, explorationCount) } : sink,
      ),
    };
  };

  const addGap = (sink: string, reason: GapReason, values: number, ranges: readonly IdRange[]): void => {
    const span = values > 0 ? tables.timeSpan(ranges) : undefined;
    if (span) gaps.add({ sink, reason, values, ...span });
  };

  /** Of sinks for which nothing waits from now on. */
  const forgetGaps = (after: FileState["sinks"]): void => {
    for (const { id, active, removed } of state.sinks.values()) {
      const now = after.get(id);
      if ((active || removed) && !now?.active && !now?.removed) gaps.forget(id);
    }
  };

  const acknowledge = (before: FileState, work: CommitWork): FileState => {
    const sinks = new Map(before.sinks);
    const garbage: IdRange[] = [...before.garbage];
    for (const acknowledgement of work.acknowledgements) {
      const sink = sinks.get(acknowledgement.sink);
      // A removed one may still tell what was under way.
      if (!sink?.active && !sink?.removed) continue;
      const damagedBefore = sink.dropped.damaged ?? 0;
      const taken = (acknowledgement.dropped.damaged ?? 0) > 0 ? pendingAmong(sink, rangesOf(acknowledgement.ids), before.nextId) : [];
      const after = acknowledged(sink, acknowledgement, before.nextId, tables.countValues, tables.firstIn);
      addGap(sink.id, "damaged", (after.state.dropped.damaged ?? 0) - damagedBefore, taken);
      sinks.set(sink.id, after.state);
      garbage.push(...after.freed);
    }
    for (const { sink: id, values } of work.deliveredUnstored ?? []) {
      const sink = sinks.get(id);
      if (sink) sinks.set(id, { ...sink, deliveredUnstored: sink.deliveredUnstored + values });
    }
    for (const gap of work.gaps ?? []) gaps.acknowledge(gap);
    return { ...before, sinks, garbage: union(garbage) };
  };

  const drop = (before: FileState, range: IdRange, reason: DropReason & GapReason): FileState => {
    const sinks = mapSinks(before.sinks, (sink) => {
      const counted = sink.removed && reason === "buffer_full" ? "sink_removed" : reason;
      const after = droppedIn(sink, range, before.nextId, counted, tables.countValues);
      addGap(sink.id, reason, after.values, after.lost);
      return after.state;
    });
    tables.deleteBatches(range);
    return { ...before, sinks };
  };

  const isTooLarge = (): boolean => {
    const { all, free } = tables.pages();
    return all - free > dropAbovePages;
  };

  /** The oldest rows that wait for removed sinks alone. */
  const firstOfRemoved = ({ sinks, nextId }: FileState): IdRange | undefined => {
    const waiting = (isWanted: (sink: SinkState) => boolean) =>
      union([...sinks.values()].filter(isWanted).flatMap((sink) => pendingRanges(sink, nextId)));
    for (const range of without(
      waiting(({ removed }) => removed !== null),
      waiting(({ active }) => active),
    )) {
      const from = tables.firstIn(range);
      if (from !== undefined) return { from, to: tables.endOfFirst({ from, to: range.to }, DROP_ROWS) };
    }
    return undefined;
  };

  const keepWithinBytes = (before: FileState): FileState => {
    let after = before;
    for (let step = 0; step < DROP_STEPS && isTooLarge(); step++) {
      const last = tables.oldest(DROP_ROWS).at(-1);
      const range = firstOfRemoved(after) ?? (last && { from: 0, to: last.id + 1 });
      if (!range) break;
      after = drop(after, range, "buffer_full");
    }
    return after;
  };

  const cutoff = (): number => now() - maxAgeMs;

  const keepWithinAge = (before: FileState): FileState => {
    const oldestKept = cutoff();
    const rows = tables.oldest(DROP_ROWS);
    const firstYoung = rows.find((row) => row.ts >= oldestKept);
    const upTo = firstYoung?.id ?? (rows.at(-1)?.id ?? 0) + 1;
    return rows[0] && upTo > rows[0].id ? drop(before, { from: 0, to: upTo }, "too_old") : before;
  };

  /** Deletes rows that no sink waits for, at most TRIM_ROWS; what is left of them stays garbage. */
  const trim = (before: FileState): FileState => {
    const pending = union([...before.sinks.values()].flatMap((sink) => pendingRanges(sink, before.nextId)));
    const free = without(before.garbage, pending);
    let left = TRIM_ROWS;
    const garbage: IdRange[] = [];
    for (const { from, to } of free) {
      const first = left > 0 ? tables.firstIn({ from, to }) : from;
      if (first === undefined) continue;
      const end = Math.min(to, first + left);
      if (left > 0) left -= tables.deleteBatches({ from: first, to: end });
      if (end < to) garbage.push({ from: end, to });
    }
    return { ...before, garbage };
  };

  /** Keys of layouts that are to be deleted now. */
  const unusedLayouts = (firstId: number): readonly string[] => {
    const kept = isTooLarge() ? 0 : KEPT_LAYOUTS;
    const unused = state.layouts.size > kept ? layoutUse.unused(state.layouts, firstId) : [];
    return unused.length > kept ? unused : [];
  };
  const withoutLayouts = (before: FileState, keys: readonly string[]): FileState => {
    if (keys.length === 0) return before;
    const layouts = new Map(before.layouts);
    for (const key of keys) {
      tables.deleteLayout(layouts.get(key) ?? 0);
      layouts.delete(key);
    }
    return { ...before, layouts };
  };

  const number = (before: FileState, work: CommitWork): { readonly state: FileState; readonly batches: readonly StoredBatch[] } => {
    const isSameRun = before.run === work.run;
    let lastSeq = isSameRun ? before.lastSeq : 0;
    let { nextId } = before;
    const batches: StoredBatch[] = [];
    for (const batch of work.batches) {
      if (batch.seq <= lastSeq) continue;
      lastSeq = batch.seq;
      batches.push(stored(batch, nextId++, before.layouts));
    }
    const overflowOfRun = isSameRun ? before.overflowOfRun : 0;
    return { state: { ...before, nextId, run: work.run, lastSeq, overflowOfRun }, batches };
  };

  const reject = (before: FileState, { rejected = {}, overflowOfRun }: CommitWork): FileState => {
    const counts = { ...before.rejected };
    const add = (reason: RejectReason, values: number): void => {
      if (values > 0) counts[reason] = (counts[reason] ?? 0) + values;
    };
    add("not_stored", rejected.not_stored ?? 0);
    add("overflow", rejected.overflow ?? 0);
    const overflow = Math.max(before.overflowOfRun, overflowOfRun ?? 0);
    add("overflow", overflow - before.overflowOfRun);
    return { ...before, rejected: counts, overflowOfRun: overflow };
  };

  const writesNothing = (work: CommitWork, storing: boolean): boolean => {
    const countsNothing =
      Object.values(work.rejected ?? {}).every((n) => n === 0) &&
      (work.overflowOfRun ?? 0) <= (work.run === state.run ? state.overflowOfRun : 0) &&
      (work.deliveredUnstored ?? []).length === 0 &&
      (work.gaps ?? []).length === 0;
    return (
      countsNothing &&
      work.acknowledgements.length === 0 &&
      state.garbage.length === 0 &&
      work.layouts.every(({ key }) => state.layouts.has(key)) &&
      (work.batches.length === 0 || (!storing && state.nextId + work.batches.length <= state.reservedId))
    );
  };

  /** Gives free pages back in a small step; false: there are none to give. */
  const shrink = (): boolean => {
    const { all, free } = tables.pages();
    const isWide = free * pageBytes > KEPT_FREE_BYTES && free > all / 2;
    if (free === 0 || !(isWide || all > maxPages)) {
      // Pages that were given back leave the file when the WAL is folded into it.
      if (fileBytes(file) > all * pageBytes || walBytes() > 2 * walLimitBytes) db.pragma("wal_checkpoint(TRUNCATE)");
      return false;
    }
    keepWalBounded();
    db.pragma(`incremental_vacuum(${Math.min(VACUUM_PAGES, Math.ceil(maxPages / 16))})`);
    // SQLite raises a bound that the file exceeds, and does not lower it again.
    db.pragma(`max_page_count = ${maxPages}`);
    return true;
  };

  return {
    epoch,
    lastSeq: (run) => (run === state.run ? state.lastSeq : 0),
    nextId: () => state.nextId,
    commit(work) {
      let batches: readonly StoredBatch[] = [];
      const storing = isStoring();
      if (writesNothing(work, storing)) {
        const numbered = number(state, work);
        state = numbered.state;
        layoutUse.committed(work, [], state.layouts);
        return numbered.batches;
      }
      reserve(state.nextId + work.batches.length + (storing ? 0 : RESERVED_IDS));
      write(() => {
        const numbered = number(withLayouts(state, work), work);
        batches = numbered.batches;
        let after = reject(numbered.state, work);
        if (storing) after = keepWithinBytes(insert({ ...after, reservedId: after.nextId }, batches));
        else if (after.nextId > after.reservedId) after = { ...after, reservedId: after.nextId + RESERVED_IDS };
        return trim(acknowledge(after, work));
      });
      layoutUse.committed(work, storing ? batches : [], state.layouts);
      return batches;
    },
    setSinks(wanted) {
      if (!sinksDiffer(state.sinks, wanted)) return;
      mark(Math.max(state.nextId + MARKED_IDS, marked?.to ?? 0), false, [...new Set([...sinksThatWait(), ...wanted.map(({ id }) => id)])]);
      writeAged((before) => {
        const after = withSinks(before, wanted, keepRemovedMs, now());
        forgetGaps(after.sinks);
        return trim({ ...before, ...after, reservedId: before.nextId });
      });
    },
    layout: tables.layout,
    sinksWithGaps: gaps.sinks,
    ledger() {
      const sinks = [...state.sinks.values()].map((sink): SinkLedger => {
        const told = ledgerOf(sink);
        if (!sink.removed || told.pending === 0) return told;
        return { ...told, keptUntil: Math.round(now() + Math.max(0, keepRemovedMs - sink.removed.forMs - (monotonicMs() - agedAtMs))) };
      });
      return { epoch, sinks, rejected: state.rejected, lost };
    },
    maintain() {
      if (inodeOf(file) !== inode) throw new DamagedFileError("it was removed or replaced while it was in use");
      if (isStoring() && marked && marked.from < leastNextId() && performance.now() - markedAtMs >= MARK_EVERY_MS) mark(marked.to, false);
      const sinceMs = monotonicMs() - agedAtMs;
      const isAnyOver = isAnyRemoved() && [...aged(state.sinks, sinceMs, 0).values()].some((sink) => isOver(sink, keepRemovedMs));
      if (isAnyOver || (isAnyRemoved() && sinceMs >= AGE_EVERY_MS)) {
        writeAged((before) => {
          const after = { ...before, ...withoutThoseOver(before, keepRemovedMs) };
          forgetGaps(after.sinks);
          return trim(after);
        });
        return true;
      }
      const [first] = tables.oldest(1);
      const tooOld = first !== undefined && first.ts < cutoff();
      const unused = unusedLayouts(first?.id ?? state.nextId);
      if (!tooOld && state.garbage.length === 0 && unused.length === 0 && !(first && isTooLarge())) return shrink();
      write(() => {
        const lean = withoutLayouts(state, unused);
        return trim(keepWithinBytes(tooOld ? keepWithinAge(lean) : lean));
      });
      return true;
    },
    bytes: () => fileBytes(file) + walBytes(),
    close() {
      // Without it a removed sink's values are kept for a little longer.
      try {
        if (db.open && isAnyRemoved()) writeAged((before) => before);
      } catch {}
      // Without it the next opening takes the file for one that was not closed, which costs some ids.
      try {
        if (db.open) mark(Math.max(state.nextId, state.reservedId) + MARKED_IDS, true);
      } catch {}
      db.close();
    },
  };
}

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;

function stored(batch: NewBatch, id: number, layouts: ReadonlyMap<string, number>): StoredBatch {
  const layout = layouts.get(batch.layoutKey);
  if (layout === undefined) throw new Error(`batch ${batch.seq} names the layout ${batch.layoutKey}, which has to be sent before it`);
  return { id, layout, time: batch.time, count: batch.count, explorationCount: batch.explorationCount, payload: batch.payload };
}
