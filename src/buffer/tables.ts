import type Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import { AccountCopy } from "./account.ts";
import type { Start, StoredBatch } from "./buffer.ts";
import { wasClockSynced } from "./codec.ts";
import type { SavedAge } from "./file-age.ts";
import type { FileState } from "./file-state.ts";
import { layoutRows, packedLayout } from "./layout-rows.ts";
import { clockOf, correctedTime, joinedSpan, type LossSpan, type LossTime, NEVER_CORRECTED, withHidden } from "./losses.ts";
import type { Packed } from "./pack.ts";
import { type PackedTime, type PackRow, Packs } from "./packs.ts";
import { type IdRange, without } from "./position.ts";
import { type BatchRow, checksumOf, SUPPRESSED } from "./schema.ts";
import { type SinkState, valuesFor } from "./sink-state.ts";
import type { StampRange } from "./stamps.ts";

const ALL: IdRange = { from: 0, to: Number.MAX_SAFE_INTEGER };

/** The statements of the file's one writer, by what they are for. Changes belong into a transaction. */
export class Tables {
  readonly #sql: ReturnType<typeof statementsOf>;

  readonly #account: AccountCopy;
  readonly #layouts: ReturnType<typeof layoutRows>;
  readonly #packs: Packs;

  constructor(db: Database.Database) {
    this.#sql = statementsOf(db);
    this.#account = new AccountCopy(db);
    this.#layouts = layoutRows(db);
    this.#packs = new Packs(db);
  }

  /** Returns its id in this file. */
  addLayout(key: string, layout: Layout): number {
    const body = JSON.stringify(layout);
    const id = Number(this.#sql.insertLayout.run(key, body).lastInsertRowid);
    this.#sql.insertLayoutCopy.run(id, key, packedLayout(body));
    return id;
  }

  layout(id: number): Layout | undefined {
    return this.#layouts(id)?.layout;
  }

  deleteLayout(id: number): void {
    this.#sql.deleteLayout.run(id);
    this.#sql.deleteLayoutCopy.run(id);
  }

  addBatch({ id, layout, time, count, explorationCount, payload }: StoredBatch): void {
    const crc = checksumOf({ id, layout, ts: time, n: count, n_exploration: explorationCount, payload });
    this.#sql.insertBatch.run(id, layout, time, count, explorationCount, crc, payload);
  }

  /** Returns how many there were. */
  deleteBatches(range: IdRange): number {
    return this.#sql.deleteRange.run(range.from, range.to).changes + this.#packs.remove(range);
  }

  /** The rows of the range that are in no pack, the first `count` of them. */
  unpacked({ from, to }: IdRange, count: number): readonly BatchRow[] {
    return this.#sql.unpacked.all(from, to, count);
  }

  /** The first row of the range that is in no pack. */
  firstUnpacked({ from, to }: IdRange): number | undefined {
    return this.#sql.firstIn.get(from, to) ?? undefined;
  }

  /** A pack takes the place of the rows that are in it; false: some of them are gone meanwhile, and nothing was changed. */
  pack(row: Omit<PackRow, "crc">, packed: Packed): boolean {
    if (this.#sql.countRange.get(row.id, row.last + 1) !== row.rows) return false;
    this.#sql.deleteRange.run(row.id, row.last + 1);
    this.#packs.add(row, packed);
    return true;
  }

  /** The first id of the first pack that may have ids of the range. */
  firstPack(range: IdRange): number | undefined {
    return this.#packs.firstOf(range)?.id;
  }

  /** The id behind the last one of the pack that has this id; undefined: none has. */
  endOfPack(id: number): number | undefined {
    const pack = this.#packs.firstOf({ from: id, to: id + 1 });
    return pack && pack.last + 1;
  }

  /** After a transaction that failed: what was read in it may not be there. */
  forgetPacks(): void {
    this.#packs.forget();
  }

  /** Writes what differs. */
  saveState(before: FileState, after: FileState): void {
    for (const [id, sink] of after.sinks) if (sink !== before.sinks.get(id)) this.saveSink(sink);
    for (const id of before.sinks.keys()) if (!after.sinks.has(id)) this.#sql.forgetSink.run(id);
    if (before.rejected !== after.rejected)
      for (const [reason, values] of Object.entries(after.rejected)) this.#sql.saveRejected.run(reason, values);
    if (before.suppressed !== after.suppressed) this.#sql.saveRejected.run(SUPPRESSED, after.suppressed);
    if (before.stamps !== after.stamps) this.#saveStamps(after.stamps);
    this.#sql.saveMeta.run(after.reservedId, after.run, after.lastSeq, after.overflowOfRun);
    this.#account.save();
  }

  saveSink({ id, active, takesExploration, position, removed, ...counted }: SinkState): void {
    const { accepted, delivered, unconfirmed, filtered, deliveredUnstored } = counted;
    const older = JSON.stringify(position.older);
    const counts = JSON.stringify(counted.dropped);
    const [forMs, at] = [removed?.forMs ?? null, removed?.at ?? null];
    const flags = [Number(active), Number(takesExploration)] as const;
    const moved = [accepted, delivered, counts, deliveredUnstored, forMs, at, unconfirmed, filtered] as const;
    this.#sql.saveSink.run(id, ...flags, older, position.live, ...moved);
  }

  saveAge({ ageMs, downMs, at }: SavedAge): void {
    this.#sql.saveAge.run(ageMs, downMs, at);
  }

  /** What is in the file at this moment was there when it was `ageMs` old; `nextId` is above all of it. */
  addAgeMark(nextId: number, ageMs: number): void {
    this.#sql.addAgeMark.run(nextId, ageMs);
    const first = this.oldestId();
    if (first !== undefined) this.#sql.dropAgeMarks.run(first);
  }

  /** Batches below this id came before the file was so old; undefined: that is known of none. */
  endOfOlder(ageMs: number): number | undefined {
    return this.#sql.endOfOlder.get(ageMs) ?? undefined;
  }

  /** How old the file was when the batch with this id was first known to be in it; undefined: no mark came since. */
  ageOf(id: number): number | undefined {
    return this.#sql.ageOf.get(id) ?? undefined;
  }

  lastAgeMark(): { readonly id: number; readonly ageMs: number } | undefined {
    return this.#sql.lastAgeMark.get();
  }

  /** Nothing is lost with an earlier file any more. */
  forgetLost(): void {
    this.#sql.forgetLost.run();
  }

  /** Forgets starts of which no batch is left. */
  addStart({ from, name }: Start): void {
    this.#sql.addStart.run(from, name);
    this.#sql.dropStarts.run(this.oldestId() ?? from);
  }

  /** Values that the stored batches of the ranges are worth to the sink. */
  countValues(sink: SinkState, ranges: readonly IdRange[]): number {
    let values = 0;
    for (const range of ranges) {
      const sum = this.#sql.sumRange.get(range.from, range.to);
      const packed = this.#packs.sum(range);
      values += valuesFor(sink, (sum?.n ?? 0) + packed.n, (sum?.x ?? 0) + packed.x);
    }
    return values;
  }

  /** When the first and the last readout in the ranges were read, by these stamps; undefined: no batch is there. Its clock is that of all. */
  timeSpan(ranges: readonly IdRange[], stamps: readonly StampRange[]): LossSpan | undefined {
    let found: LossSpan | undefined;
    for (const { stamp, ...range } of withStamps(ranges, stamps)) {
      const times = this.#timesIn(range);
      if (!times) continue;
      const ends = { from: lossTime(times.first, stamp), to: lossTime(times.last, stamp) };
      const span = !stamp && times.isAnyUnsynced() ? withHidden(ends, [NEVER_CORRECTED]) : ends;
      found = found ? joinedSpan(found, span) : span;
    }
    return found;
  }

  firstIn(range: IdRange): number | undefined {
    const [unpacked, packed] = [this.firstUnpacked(range), this.#packs.firstIn(range)];
    return unpacked === undefined || packed === undefined ? (unpacked ?? packed) : Math.min(unpacked, packed);
  }

  /** The last row with a smaller id. */
  lastBefore(id: number): number | undefined {
    const [unpacked, packed] = [this.#sql.lastBefore.get(id) ?? undefined, this.#packs.lastBefore(id)];
    return unpacked === undefined || packed === undefined ? (unpacked ?? packed) : Math.max(unpacked, packed);
  }

  oldestId(): number | undefined {
    return this.firstIn(ALL);
  }

  /**
   * The id behind the first rows of the range: those of one pack, or `count` that are in none; its end where it has no more than those. A pack
   * gives its room back as a whole.
   */
  endOfFirst({ from, to }: IdRange, count: number): number {
    const pack = this.#packs.firstOf({ from, to });
    const first = this.firstUnpacked({ from, to: pack?.id ?? to });
    if (first === undefined) return Math.min(to, pack ? pack.last + 1 : to);
    return this.#sql.nth.get(first, pack?.id ?? to, count) ?? pack?.id ?? to;
  }

  /** Pages of the file as the last commit left it. */
  pages(): { readonly all: number; readonly free: number } {
    return { all: this.#sql.pageCount.get() ?? 0, free: this.#sql.freePages.get() ?? 0 };
  }

  #timesIn(range: IdRange): { readonly first: PackedTime; readonly last: PackedTime; isAnyUnsynced(): boolean } | undefined {
    const { from, to } = range;
    const [first, last] = [this.#sql.first.get(from, to), this.#sql.last.get(from, to)];
    const packed = this.#packs.times(range);
    if (!first || first.ts === null || !last || last.ts === null) return packed && { ...packed, isAnyUnsynced: () => packed.isAnyUnsynced };
    const [earliest, latest] = [timeOf(first.ts, first.head), timeOf(last.ts, last.head)];
    return {
      first: packed && packed.first.ts < earliest.ts ? packed.first : earliest,
      last: packed && packed.last.ts > latest.ts ? packed.last : latest,
      isAnyUnsynced: () => packed?.isAnyUnsynced === true || this.#sql.anyUnsynchronised.get(from, to) === 1,
    };
  }

  #saveStamps(ranges: readonly StampRange[]): void {
    this.#sql.forgetStamps.run();
    for (const { from, to, boot, bootTimeMs, correctionMs } of ranges) this.#sql.addStamp.run(from, to, boot, bootTimeMs, correctionMs);
  }
}

/** The ranges in pieces of which each has one stamp, or none. */
function* withStamps(ranges: readonly IdRange[], stamps: readonly StampRange[]): Generator<IdRange & { readonly stamp?: StampRange }> {
  for (const stamp of stamps) for (const range of ranges) yield* within(range, stamp, { stamp });
  yield* without(ranges, stamps);
}

function* within<T>({ from, to }: IdRange, of: IdRange, more: T): Generator<IdRange & T> {
  const piece = { from: Math.max(from, of.from), to: Math.min(to, of.to) };
  if (piece.from < piece.to) yield { ...piece, ...more };
}

/** `head`: the first bytes of the payload, which say whether its clock was synchronised. */
const timeOf = (ts: number, head: Uint8Array | null): PackedTime => ({ ts, isSynced: head?.length !== 2 || wasClockSynced(head) });

function lossTime({ ts: ms, isSynced }: PackedTime, stamp: StampRange | undefined): LossTime {
  if (stamp?.correctionMs != null) return correctedTime(ms, stamp.correctionMs);
  if (stamp) return { ms, clock: clockOf(stamp.boot, stamp.bootTimeMs) };
  return { ms, clock: isSynced ? null : NEVER_CORRECTED };
}

function statementsOf(db: Database.Database) {
  const insertLayout = db.prepare<[string, string]>("INSERT INTO layout (key, body) VALUES (?, ?)");
  const deleteLayout = db.prepare<[number]>("DELETE FROM layout WHERE id = ?");
  const insertLayoutCopy = db.prepare<[number, string, Uint8Array]>("INSERT OR REPLACE INTO layout_copy VALUES (?, ?, ?)");
  const deleteLayoutCopy = db.prepare<[number]>("DELETE FROM layout_copy WHERE id = ?");
  const insertBatch = db.prepare<[number, number, number, number, number, number, Uint8Array]>(
    "INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const saveMeta = db.prepare<[number, string, number, number]>("UPDATE meta SET next_id = ?, run = ?, last_seq = ?, overflow_of_run = ?");
  const saveSink = db.prepare<
    [string, number, number, string, number, number, number, string, number, number | null, number | null, number, number]
  >(
    `INSERT INTO sink VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET active = excluded.active,
     takes_exploration = excluded.takes_exploration, older = excluded.older, live = excluded.live, accepted = excluded.accepted,
     delivered = excluded.delivered, dropped = excluded.dropped, delivered_unstored = excluded.delivered_unstored,
     removed_for_ms = excluded.removed_for_ms, removed_at = excluded.removed_at,
     unconfirmed = excluded.unconfirmed, filtered = excluded.filtered`,
  );
  const forgetSink = db.prepare<[string]>("DELETE FROM sink WHERE id = ?");
  const saveRejected = db.prepare<[string, number]>("INSERT INTO rejected VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET n = excluded.n");
  const sumRange = db.prepare<[number, number], { n: number; x: number }>(
    "SELECT coalesce(sum(n), 0) AS n, coalesce(sum(n_exploration), 0) AS x FROM batch WHERE id >= ? AND id < ?",
  );
  // Of min() and max() the other columns are those of the row that has it.
  const spanEnd = (end: "min" | "max") =>
    db.prepare<[number, number], { ts: number | null; head: Uint8Array | null }>(
      `SELECT ${end}(ts) AS ts, substr(payload, 1, 2) AS head FROM batch WHERE id >= ? AND id < ?`,
    );
  // CLOCK_SYNCED is the lowest bit of the flags, the payload's second byte; what has none is no readout.
  const anyUnsynchronised = db
    .prepare<[number, number], number>(
      `SELECT EXISTS (SELECT 1 FROM batch WHERE id >= ? AND id < ? AND substr(hex(substr(payload, 2, 1)), 2) IN ('0', '2', '4', '6', '8', 'A', 'C', 'E'))`,
    )
    .pluck();
  const first = spanEnd("min");
  const last = spanEnd("max");
  const firstIn = db.prepare<[number, number], number | null>("SELECT min(id) FROM batch WHERE id >= ? AND id < ?").pluck();
  const lastBefore = db.prepare<[number], number | null>("SELECT max(id) FROM batch WHERE id < ?").pluck();
  const nth = db
    .prepare<[number, number, number], number>("SELECT id FROM batch WHERE id >= ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?")
    .pluck();
  const deleteRange = db.prepare<[number, number]>("DELETE FROM batch WHERE id >= ? AND id < ?");
  const countRange = db.prepare<[number, number], number>("SELECT count(*) FROM batch WHERE id >= ? AND id < ?").pluck();
  // Not `LIMIT ?`: SQLite plans by the value that is bound there, and compiles the statement again with each call.
  const unpacked = db.prepare<[number, number, number], BatchRow>("SELECT * FROM batch WHERE id >= ? AND id < ? ORDER BY id LIMIT +?");
  const saveAge = db.prepare<[number, number, number | null]>("UPDATE meta SET age = ?, down = ?, age_at = ?");
  const addAgeMark = db.prepare<[number, number]>("INSERT INTO age VALUES (?, ?) ON CONFLICT (id) DO NOTHING");
  const dropAgeMarks = db.prepare<[number]>("DELETE FROM age WHERE id <= ?");
  const endOfOlder = db.prepare<[number], number | null>("SELECT max(id) FROM age WHERE at <= ?").pluck();
  const ageOf = db.prepare<[number], number | null>("SELECT min(at) FROM age WHERE id > ?").pluck();
  const lastAgeMark = db.prepare<[], { id: number; ageMs: number }>("SELECT id, at AS ageMs FROM age ORDER BY id DESC LIMIT 1");
  const forgetLost = db.prepare<[]>("UPDATE meta SET lost_since = NULL, lost_why = NULL");
  const addStart = db.prepare<[number, string]>("INSERT INTO start VALUES (?, ?) ON CONFLICT (from_id) DO UPDATE SET name = excluded.name");
  const dropStarts = db.prepare<[number]>("DELETE FROM start WHERE from_id < (SELECT max(from_id) FROM start WHERE from_id <= ?)");
  const addStamp = db.prepare<[number, number, string, number, number | null]>("INSERT INTO stamp VALUES (?, ?, ?, ?, ?)");
  const forgetStamps = db.prepare<[]>("DELETE FROM stamp");
  const pageCount = db.prepare<[], number>("PRAGMA page_count").pluck();
  const freePages = db.prepare<[], number>("PRAGMA freelist_count").pluck();
  return {
    insertLayout,
    deleteLayout,
    insertLayoutCopy,
    deleteLayoutCopy,
    insertBatch,
    saveMeta,
    saveSink,
    forgetSink,
    saveRejected,
    sumRange,
    first,
    last,
    anyUnsynchronised,
    firstIn,
    lastBefore,
    nth,
    deleteRange,
    countRange,
    unpacked,
    saveAge,
    addAgeMark,
    dropAgeMarks,
    endOfOlder,
    ageOf,
    lastAgeMark,
    forgetLost,
    addStart,
    dropStarts,
    addStamp,
    forgetStamps,
    pageCount,
    freePages,
  };
}
