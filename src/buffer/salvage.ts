import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import Database from "better-sqlite3";
import { AccountCopy, keptRows } from "./account.ts";
import { pendingOf } from "./buffer.ts";
import { fileBytes, load } from "./file-state.ts";
import { layoutRows, packedLayout } from "./layout-rows.ts";
import { scanLeaves } from "./leaf-scan.ts";
import { instant, joinedSpan, type LossSpan, type LossTime, lossTable } from "./losses.ts";
import { readMark } from "./mark.ts";
import { type FoundPack, foundPacks } from "./pack-salvage.ts";
import { Packs } from "./packs.ts";
import { type IdRange, union, without } from "./position.ts";
import { hasRoom } from "./reserve.ts";
import { type BatchRow, isIntact, SCHEMA, SCHEMA_VERSION } from "./schema.ts";
import { withNotedSchema } from "./schema-page.ts";
import { pendingRanges, type SinkState } from "./sink-state.ts";
import type { StampRange } from "./stamps.ts";
import { Tables } from "./tables.ts";

/** Ids that are read at once, and their bytes, but for a single batch; where one cannot be read, all of them are looked for page by page. */
const READ_IDS = 1024;
const READ_BYTES = 4 * 2 ** 20;
/** Tables of few rows without which nothing is known of the others. */
const NEEDED = ["meta", "sink"] as const;
const PROGRESS_MS = 10_000;
/** Tables that a file has in all its versions. */
const KNOWN = ["meta", "sink", "batch", "layout"] as const;
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
  const from = openWhole(file);
  if (from) return salvageFrom(from, file, now, onProgress);
  return withNotedSchema(file, () => {
    const noted = openWhole(file);
    return noted && salvageFrom(noted, file, now, onProgress);
  });
}

/** Opens it to read what can be read; undefined: not even its tables are known. */
export function openWhole(file: string): Database.Database | undefined {
  const db = openDamaged(file);
  if (db && tried(() => KNOWN.map((table) => db.prepare(`SELECT * FROM ${table}`)))) return db;
  db?.close();
  return undefined;
}

function salvageFrom(from: Database.Database, file: string, now: LossTime, onProgress: (part: number) => void): Salvaged | undefined {
  const db = new Database(partFile(file));
  try {
    db.pragma("auto_vacuum = INCREMENTAL");
    // Nothing of it counts before it is whole.
    db.pragma("journal_mode = OFF");
    db.pragma("synchronous = OFF");
    db.exec(SCHEMA);
    const salvaged = db.transaction(() => fill(db, from, { epoch: readMark(file)?.epoch, now, onProgress })).immediate();
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
    from.close();
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

/** Opens a file that may be damaged, of any version that this code reads; undefined: it cannot be read at all. */
function openDamaged(damaged: string): Database.Database | undefined {
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
  /** That the file should have; undefined: not known. */
  readonly epoch: string | undefined;
  readonly now: LossTime;
  readonly onProgress: (part: number) => void;
}

function fill(db: Database.Database, from: Database.Database, { epoch, now, onProgress }: FillOptions): Salvaged {
  const kept = keptRows(from);
  const copied = (table: (typeof NEEDED | typeof COPIED)[number]): boolean => {
    const rows = kept?.[table];
    return rows ? insertRows(db, table, rows) : copyTable(db, from, table);
  };
  for (const table of NEEDED) if (!copied(table)) throw new UnreadableError(table);
  for (const table of COPIED) copied(table);
  for (const table of WANTED) copyTable(db, from, table);
  const { sinks, nextId, ...loaded } = load(db);
  if (epoch !== undefined && loaded.epoch !== epoch) throw new UnreadableError("meta");
  // After `load`, which drops the layouts of a file without batches.
  copyLayouts(db, from);
  const pending = union([...sinks.values()].flatMap((sink) => pendingRanges(sink, nextId)));
  const insert = db.prepare("INSERT OR IGNORE INTO batch VALUES (@id, @layout, @ts, @n, @n_exploration, @crc, @payload)");
  const all = pending.reduce((sum, range) => sum + range.to - range.from, 0);
  const progress = everySoOften(onProgress);
  let done = 0;
  const take = (row: BatchRow): void => {
    insert.run(row);
    progress(++done / all);
  };
  const packs = takePacks(db, from, pending);
  const inPack = (id: number): boolean => isIn(packs.taken, id);
  const unread = readThroughTables(from, without(pending, packs.taken), take);
  const missing = without(union([...unread, ...packs.unread]), packs.taken);
  // Pages that are free may still have rows that are in a pack now.
  if (missing.length > 0) for (const row of scanLeaves(from.name)) if (row && isIn(missing, row.id) && !inPack(row.id)) take(row);
  const holes = holesIn(db, missing);
  let lost = 0;
  for (const sink of sinks.values()) lost += settle(db, sink, holes, { nextId, now, stamps: loaded.stamps });
  new AccountCopy(db).save();
  return { lost };
}

const isIn = (ranges: readonly IdRange[], id: number): boolean => ranges.some(({ from, to }) => id >= from && id < to);

interface TakenPacks {
  /** From the first to the last id of each pack that was taken over; rising. */
  readonly taken: readonly IdRange[];
  /** Pending ids, where a pack could not be read. */
  readonly unread: readonly IdRange[];
}

/** Takes over the packs in which something is pending, each as it is. */
function takePacks(db: Database.Database, from: Database.Database, pending: readonly IdRange[]): TakenPacks {
  const packs = new Packs(db);
  const taken: IdRange[] = [];
  let isAll = true;
  for (const pack of foundPacks(from, from.name)) {
    if (!pack) {
      isAll = false;
      continue;
    }
    const all = { from: pack.id, to: pack.last + 1 };
    const gone = union([...pack.gone, ...without([all], pending)]);
    if (without([all], gone).length === 0 || taken.some((other) => other.from < all.to && all.from < other.to)) continue;
    const row = { id: pack.id, last: pack.last, ...leftIn(pack, gone), gone: JSON.stringify(gone) };
    if (row.rows === 0) continue;
    packs.add(row, pack);
    taken.push(all);
  }
  return { taken: union(taken), unread: isAll ? [] : pending };
}

function leftIn(
  { index }: FoundPack,
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

/** Ids that a sink of the file waits for; undefined: that cannot be read. */
export function pendingIn(from: Database.Database): readonly IdRange[] | undefined {
  return tried(() => {
    const nextId = from.prepare<[], number>("SELECT next_id FROM meta").pluck().get();
    const rows = from.prepare<[], { active: number; older: string; live: number }>("SELECT active, older, live FROM sink").all();
    if (nextId === undefined) throw new UnreadableError("meta");
    return union(
      rows.flatMap(({ active, older, live }) => [
        ...(JSON.parse(older) as readonly IdRange[]),
        ...(active === 1 ? [{ from: live, to: nextId }] : []),
      ]),
    );
  });
}

/** False: not all of it can be read. */
function copyTable(db: Database.Database, from: Database.Database, table: string): boolean {
  const rows = tried(() => from.prepare<[], Record<string, unknown>>(`SELECT * FROM ${table}`).all());
  return rows !== undefined && insertRows(db, table, rows);
}

/** False: a row is none of this table, or there is none where one has to be. Throws what the new file throws. */
function insertRows(db: Database.Database, table: string, read: readonly Record<string, unknown>[]): boolean {
  const rows = read.map((row) => ({ ...ADDED[table], ...row }));
  const [first] = rows;
  if (!first) return table !== "meta";
  const columns = Object.keys(first);
  const insert = db.prepare(`INSERT OR REPLACE INTO ${table} (${columns.join()}) VALUES (${columns.map((name) => `@${name}`).join()})`);
  try {
    for (const row of rows) insert.run(row);
    return true;
  } catch (error) {
    if (error instanceof Database.SqliteError && /^SQLITE_(CONSTRAINT|MISMATCH)/.test(error.code)) return false;
    throw error;
  }
}

function copyLayouts(db: Database.Database, from: Database.Database): void {
  const insert = db.prepare<[number, string, string]>("INSERT OR IGNORE INTO layout (id, key, body) VALUES (?, ?, ?)");
  const insertCopy = db.prepare<[number, string, Uint8Array]>("INSERT OR IGNORE INTO layout_copy VALUES (?, ?, ?)");
  const lastIn = (table: string): number => tried(() => from.prepare<[], number | null>(`SELECT max(id) FROM ${table}`).pluck().get()) ?? 0;
  const last = Math.max(lastIn("layout"), lastIn("layout_copy"));
  const read = layoutRows(from);
  for (let id = 1; id <= last; id++) {
    const row = tried(() => read(id));
    if (!row) continue;
    const body = JSON.stringify(row.layout);
    insert.run(id, row.key, body);
    insertCopy.run(id, row.key, packedLayout(body));
  }
}

/** The ranges in pieces that are read at once. */
export function* inSteps(from: Database.Database, ranges: readonly IdRange[]): Generator<IdRange> {
  const bytesOf = from.prepare<[number, number], number>("SELECT total(length(payload)) FROM batch WHERE id >= ? AND id < ?").pluck();
  function* halves(range: IdRange): Generator<IdRange> {
    const bytes = tried(() => bytesOf.get(range.from, range.to)) ?? 0;
    if (range.to - range.from === 1 || bytes <= READ_BYTES) return yield range;
    const middle = Math.floor((range.from + range.to) / 2);
    yield* halves({ from: range.from, to: middle });
    yield* halves({ from: middle, to: range.to });
  }
  for (const { from: first, to } of ranges)
    for (let at = first; at < to; at += READ_IDS) yield* halves({ from: at, to: Math.min(to, at + READ_IDS) });
}

/** Hands over the rows of the ranges that are found through the tables, and returns the ranges of which some are not. */
export function readThroughTables(from: Database.Database, ranges: readonly IdRange[], take: (row: BatchRow) => void): readonly IdRange[] {
  const select = from.prepare<[number, number], BatchRow>("SELECT * FROM batch WHERE id >= ? AND id < ? ORDER BY id");
  const unread: IdRange[] = [];
  for (const range of inSteps(from, ranges)) {
    const rows = tried(() => select.all(range.from, range.to));
    if (rows?.every(isIntact)) rows.forEach(take);
    else unread.push(range);
  }
  return union(unread);
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
