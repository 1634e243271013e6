import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { atOnce, type Steps } from "../base/timer.ts";
import { AccountCopy, type AccountRows, keptRows } from "./account.ts";
import { pendingOf } from "./buffer.ts";
import { fileBytes, load } from "./file-state.ts";
import { packedLayout, wholeLayout } from "./layout-rows.ts";
import { scanLeaves } from "./leaf-scan.ts";
import { instant, joinedSpan, type LossSpan, type LossTime, lossTable } from "./losses.ts";
import { readMark } from "./mark.ts";
import { type WholePack, wholePack } from "./pack-salvage.ts";
import { Packs } from "./packs.ts";
import { type IdRange, union, without } from "./position.ts";
import { hasRoom } from "./reserve.ts";
import { SCHEMA, SCHEMA_VERSION } from "./schema.ts";
import { pendingRanges, type SinkState } from "./sink-state.ts";
import type { StampRange } from "./stamps.ts";
import { Tables } from "./tables.ts";

const PROGRESS_MS = 10_000;
/** Tables of few rows without which something less is known: those that are in the copy of the account, and the others. */
const COPIED = ["rejected", "stamp"] as const;
const WANTED = ["gap", "age", "start"] as const;

/** Columns that tables of older versions lack. */
const ADDED: Readonly<Record<string, object>> = {
  meta: { overflow_of_run: 0 },
  sink: { delivered_unstored: 0, unconfirmed: 0, filtered: 0 },
};

/** The outcome for a damaged file. */
export interface Salvaged {
  /** Values of all sinks that were pending in it and cannot be read. */
  readonly lost: number;
}

const partFile = (file: string): string => `${file}.part`;
const wholeFile = (file: string): string => `${file}.whole`;

/**
 * Makes, beside a damaged file, one of what can be read of it: its account, its layouts, and of its batches those that are pending. What cannot
 * be read is dropped(damaged) for each sink that waited for it. Undefined: not even the account can be read, it is that of another file, or the
 * disk has no room for another one. Throws where the disk does not take it at this moment. Takes about 15 s of CPU for a GiB; `onProgress` gets
 * the part that is done, at most every ten seconds.
 */
export function salvage(file: string, now: LossTime, onProgress: (part: number) => void = () => {}): Salvaged | undefined {
  rmSync(partFile(file), { force: true });
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return undefined;
  const from = openDamaged(file);
  const db = new Database(partFile(file));
  try {
    db.pragma("auto_vacuum = INCREMENTAL");
    // Nothing of it counts before it is whole.
    db.pragma("journal_mode = OFF");
    db.pragma("synchronous = OFF");
    db.exec(SCHEMA);
    const salvaged = db.transaction(() => fill(db, file, from, { now, onProgress })).immediate();
    db.close();
    syncFile(partFile(file));
    renameSync(partFile(file), wholeFile(file));
    return salvaged;
  } catch (error) {
    db.close();
    rmSync(partFile(file), { force: true });
    // With room for it, the disk takes the new file a little later.
    const hasNoRoom = isOfNewFile(error) && !hasRoom(file, 2 * (fileBytes(file) + fileBytes(`${file}-wal`)));
    if (error instanceof UnreadableError || hasNoRoom) return undefined;
    throw error;
  } finally {
    from?.close();
  }
}

/** Puts what was salvaged in the place of the file, which was set aside; also where a process ended between the two. */
export function useSalvaged(file: string): void {
  if (existsSync(file)) rmSync(wholeFile(file), { force: true });
  else if (existsSync(wholeFile(file))) renameSync(wholeFile(file), file);
}

function syncFile(path: string): void {
  const fd = openSync(path, "r+");
  fsyncSync(fd);
  closeSync(fd);
}

/** Not even what every other thing depends on can be read. */
class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/** Opens a file that may be damaged, of any version that this code reads; undefined: SQLite cannot open it. */
export function openDamaged(damaged: string): Database.Database | undefined {
  let db: Database.Database | undefined;
  try {
    db = new Database(damaged, { readonly: true, fileMustExist: true });
    // A file that is shorter than it says is read as far as it goes.
    db.unsafeMode();
    db.pragma("writable_schema = ON");
    const version = Number(db.pragma("user_version", { simple: true }));
    if (version >= 1 && version <= SCHEMA_VERSION) return db;
  } catch {}
  db?.close();
  return undefined;
}

interface FillOptions {
  readonly now: LossTime;
  readonly onProgress: (part: number) => void;
}

function fill(db: Database.Database, file: string, from: Database.Database | undefined, { now, onProgress }: FillOptions): Salvaged {
  const account = atOnce(accountIn(file, from));
  if (!account || !insertRows(db, "meta", account.meta) || !insertRows(db, "sink", account.sink)) throw new UnreadableError("account");
  // Files of before lack some of them, and a copy has no stamps where there are many.
  for (const table of COPIED) insertRows(db, table, account[table] ?? rowsIn(from, table) ?? []);
  for (const table of WANTED) insertRows(db, table, rowsIn(from, table) ?? []);
  const { sinks, nextId, ...loaded } = load(db);
  const epoch = readMark(file)?.epoch;
  if (epoch !== undefined && loaded.epoch !== epoch) throw new UnreadableError("meta");
  const pending = union([...sinks.values()].flatMap((sink) => pendingRanges(sink, nextId)));
  const packed = takeAll(db, file, pending, onProgress);
  const holes = holesIn(db, without(pending, packed));
  let lost = 0;
  for (const sink of sinks.values()) lost += settle(db, sink, holes, { nextId, now, stamps: loaded.stamps });
  new AccountCopy(db).save();
  return { lost };
}

/** Takes over all layouts, and the batches and packs in which something is pending; returns the ids of the packs. */
function takeAll(db: Database.Database, file: string, pending: readonly IdRange[], onProgress: (part: number) => void): readonly IdRange[] {
  const insert = db.prepare("INSERT OR IGNORE INTO batch VALUES (@id, @layout, @ts, @n, @n_exploration, @crc, @payload)");
  const remove = db.prepare<[number, number]>("DELETE FROM batch WHERE id >= ? AND id < ?");
  const insertLayout = db.prepare<[number, string, string]>("INSERT OR IGNORE INTO layout (id, key, body) VALUES (?, ?, ?)");
  const insertCopy = db.prepare<[number, string, Uint8Array]>("INSERT OR IGNORE INTO layout_copy VALUES (?, ?, ?)");
  const packs = new Packs(db);
  let packed: readonly IdRange[] = [];
  const all = pending.reduce((sum, range) => sum + range.to - range.from, 0);
  const progress = everySoOften(onProgress);
  let done = 0;
  for (const found of scanLeaves(file)) {
    if (found?.what === "batch" && isIn(pending, found.row.id) && !isIn(packed, found.row.id)) {
      insert.run(found.row);
      done++;
    } else if (found?.what === "pack") {
      const pack = wholePack(found);
      const taken = pack && takePack(packs, pack, pending, packed);
      if (!taken) continue;
      // Pages that are free may still have its rows.
      remove.run(taken.from, taken.to);
      packed = union([...packed, taken]);
      done += taken.to - taken.from;
    } else if (found?.what === "layout") {
      const layout = wholeLayout(found.key, found.body)?.layout;
      if (!layout) continue;
      const body = JSON.stringify(layout);
      insertLayout.run(found.id, found.key, body);
      insertCopy.run(found.id, found.key, packedLayout(body));
    } else if (!found) progress(Math.min(1, done / all));
  }
  return packed;
}

const isIn = (ranges: readonly IdRange[], id: number): boolean => ranges.some(({ from, to }) => id >= from && id < to);

/** Takes over a pack as it is; returns its ids. Undefined: nothing in it is pending, or another pack has some of them. */
function takePack(packs: Packs, pack: WholePack, pending: readonly IdRange[], packed: readonly IdRange[]): IdRange | undefined {
  const all = { from: pack.id, to: pack.last + 1 };
  const gone = without([all], pending);
  if (packed.some((other) => other.from < all.to && all.from < other.to)) return undefined;
  const row = { id: pack.id, last: pack.last, ...leftIn(pack, gone), gone: JSON.stringify(gone) };
  if (row.rows === 0) return undefined;
  packs.add(row, pack);
  return all;
}

function leftIn(
  { index }: WholePack,
  gone: readonly IdRange[],
): { readonly rows: number; readonly n: number; readonly n_exploration: number } {
  let [rows, n, n_exploration] = [0, 0, 0];
  for (const [i, id] of index.ids.entries()) {
    if (isIn(gone, id)) continue;
    rows++;
    n += index.n[i] ?? 0;
    n_exploration += index.nExploration[i] ?? 0;
  }
  return { rows, n, n_exploration };
}

function everySoOften(onProgress: (part: number) => void): (part: number) => void {
  let nextMs = performance.now() + PROGRESS_MS;
  return (part) => {
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + PROGRESS_MS;
    onProgress(part);
  };
}

/**
 * The account of a damaged file: its copy by the tables, or where these do not lead to it by looking through the file; else the tables themselves.
 * Undefined: it cannot be read. Pauses in long work.
 */
export function* accountIn(file: string, db: Database.Database | undefined): Steps<AccountRows | undefined> {
  const kept = db && keptRows(db);
  if (kept) return kept;
  let newest: string | undefined;
  for (const found of scanLeaves(file)) {
    if (!found) yield;
    if (found?.what === "account") newest = found.body;
  }
  if (newest !== undefined) return JSON.parse(newest) as AccountRows;
  const meta = rowsIn(db, "meta");
  const sink = rowsIn(db, "sink");
  return meta && sink && { meta, sink, rejected: rowsIn(db, "rejected") ?? [], stamp: rowsIn(db, "stamp") ?? [] };
}

/** Undefined: not all of it can be read. */
const rowsIn = (db: Database.Database | undefined, table: string): readonly Record<string, unknown>[] | undefined =>
  tried(() => db?.prepare<[], Record<string, unknown>>(`SELECT * FROM ${table}`).all());

/** False: a row is none of this table, or there is none where one has to be. Throws what the new file throws. */
function insertRows(db: Database.Database, table: string, read: readonly Record<string, unknown>[]): boolean {
  const rows = read.map((row) => ({ ...ADDED[table], ...row }));
  const [first] = rows;
  if (!first) return table !== "meta";
  const columns = Object.keys(first);
  try {
    const insert = db.prepare(`INSERT OR REPLACE INTO ${table} (${columns.join()}) VALUES (${columns.map((name) => `@${name}`).join()})`);
    for (const row of rows) insert.run(row);
    return true;
  } catch (error) {
    // SQLITE_ERROR: a newer collector wrote the account, with a column that is not known here.
    if (error instanceof Database.SqliteError && /^SQLITE_(CONSTRAINT|MISMATCH|ERROR$)/.test(error.code)) return false;
    throw error;
  }
}

/** Ids of the ranges that no row has, as ranges; none of them is in a pack. */
function holesIn(db: Database.Database, ranges: readonly IdRange[]): readonly IdRange[] {
  const ids = db.prepare<[number, number], number>("SELECT id FROM batch WHERE id >= ? AND id < ? ORDER BY id").pluck();
  const holes: IdRange[] = [];
  for (const { from, to } of ranges) {
    let at = from;
    for (const id of ids.iterate(from, to)) {
      if (id > at) holes.push({ from: at, to: id });
      at = id + 1;
    }
    if (to > at) holes.push({ from: at, to });
  }
  return holes;
}

interface SettleOptions {
  readonly nextId: number;
  readonly now: LossTime;
  readonly stamps: readonly StampRange[];
}

/** Drops what the sink waited for and no row holds any more, to the value. Returns how many values those are. */
function settle(db: Database.Database, sink: SinkState, holes: readonly IdRange[], options: SettleOptions): number {
  const { nextId } = options;
  const tables = new Tables(db);
  const held = tables.countValues(sink, pendingRanges(sink, nextId));
  const lost = pendingOf(sink) - held;
  if (lost === 0) return 0;
  const dropped = lost > 0 ? { ...sink.dropped, damaged: (sink.dropped.damaged ?? 0) + lost } : sink.dropped;
  // More than was known to be pending: it is accepted now.
  tables.saveSink({ ...sink, accepted: sink.accepted - Math.min(0, lost), dropped });
  const span = timesAround(db, holes, options);
  if (lost > 0 && (sink.active || sink.removed)) lossTable(db).add({ sink: sink.id, reason: "damaged", values: lost, ...span });
  return Math.max(0, lost);
}

/** Between which times what is gone was read: those of the rows next to it. */
function timesAround(db: Database.Database, holes: readonly IdRange[], { now, stamps }: SettleOptions): LossSpan {
  const [first, last] = [holes[0]?.from ?? 0, holes.at(-1)?.to ?? Number.MAX_SAFE_INTEGER];
  const tables = new Tables(db);
  const before = tables.lastBefore(first);
  const after = tables.firstIn({ from: last, to: Number.MAX_SAFE_INTEGER });
  const timeAt = (id: number | undefined): LossTime | undefined =>
    id === undefined ? undefined : tables.timeSpan([{ from: id, to: id + 1 }], stamps)?.from;
  const to = timeAt(after) ?? now;
  return joinedSpan(instant(timeAt(before) ?? to), instant(to));
}

function tried<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const isOfNewFile = (error: unknown): boolean => error instanceof Database.SqliteError && error.code.startsWith("SQLITE_FULL");
