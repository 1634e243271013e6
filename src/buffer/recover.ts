import { readdirSync, renameSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import type { AccountRows } from "./account.ts";
import type { CommitWork, NewBatch } from "./buffer.ts";
import { layoutKey } from "./codec.ts";
import { layoutRows, wholeLayout } from "./layout-rows.ts";
import { scanLeaves } from "./leaf-scan.ts";
import { rowAt, rowsOf, wholePack } from "./pack-salvage.ts";
import { PackReader } from "./packs.ts";
import { type IdRange, union } from "./position.ts";
import { accountIn, openDamaged } from "./salvage.ts";
import { type BatchRow, isIntact, SCHEMA_VERSION } from "./schema.ts";

/** What a file beside the buffer is. taken: what could be read of it was taken over; waiting: it is to be delivered. */
export type AsideState = "damaged" | "taken" | "newer" | "waiting" | "recovered";

/** A file that was set aside. */
export interface AsideFile {
  readonly name: string;
  readonly path: string;
  readonly state: AsideState;
  /** With its WAL. */
  readonly bytes: number;
}

/** Some of what is in a file that was set aside. */
export interface Recovered extends Pick<CommitWork, "layouts"> {
  readonly batches: readonly Omit<NewBatch, "seq">[];
}

const WAITING = "recover-";
const RECOVERED = "recovered-";
/** Payload bytes that are handed over at once. */
const STEP_BYTES = 2 ** 20;
/** Rows that are read at once: a large one has some hundred KiB. */
const READ_ROWS = 16;

/** The files that were set aside for this buffer, by name. Throws what the file system throws. */
export function asideFiles(file: string): readonly AsideFile[] {
  const prefix = `${basename(file)}.`;
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(prefix) && !/-(wal|shm)$/.test(name))
    .flatMap((name) => {
      const state = stateOf(name.slice(prefix.length));
      const path = join(dirname(file), name);
      return state ? [{ name, path, state, bytes: bytesOf(path) + bytesOf(`${path}-wal`) }] : [];
    })
    .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

/** Lets the store deliver what can be read of it; returns the new path. Throws what the file system throws. */
export function markForRecovery(file: string, { path, name }: AsideFile): string {
  return renamed(path, `${file}.${WAITING}${name.slice(basename(file).length + 1)}`);
}

/** It is done with. */
export function markRecovered(file: string, { path, name }: AsideFile): string {
  return renamed(path, `${file}.${RECOVERED}${name.slice(basename(file).length + 1).replace(WAITING, "")}`);
}

const NOTHING: Recovered = { layouts: [], batches: [] };

/**
 * What can be read of what was pending in it, or of all that is in it where nobody knows that any more. A part without batches is a pause in
 * long work. Throws what the file system throws.
 */
export function* readAside(path: string): Generator<Recovered> {
  const db = openDamaged(path);
  try {
    const layouts = new Layouts(db, path);
    let rows: BatchRow[] = [];
    let bytes = 0;
    for (const row of pendingRows(db, path)) {
      if (!row) yield NOTHING;
      else {
        rows.push(row);
        bytes += row.payload.byteLength;
      }
      if (bytes < STEP_BYTES) continue;
      yield* asNew(rows, layouts);
      rows = [];
      bytes = 0;
    }
    if (rows.length > 0) yield* asNew(rows, layouts);
  } finally {
    db?.close();
  }
}

/** The layouts of a file by id: through the tables, or where these do not lead to one, page by page. */
class Layouts {
  readonly #path: string;
  readonly #read: ReturnType<typeof layoutRows> | undefined;
  readonly #known = new Map<number, Layout | undefined>();
  #isScanned = false;

  constructor(db: Database.Database | undefined, path: string) {
    this.#path = path;
    this.#read = tried(() => db && layoutRows(db));
  }

  get(id: number): Layout | undefined {
    if (!this.#known.has(id))
      this.#known.set(
        id,
        tried(() => this.#read?.(id)?.layout),
      );
    return this.#known.get(id);
  }

  /** Looks for those that the rows lack, once. Pauses where it takes long. */
  *look(rows: readonly BatchRow[]): Generator<Recovered> {
    if (this.#isScanned || rows.every(({ layout }) => this.get(layout))) return;
    this.#isScanned = true;
    for (const found of scanLeaves(this.#path)) {
      if (!found) yield NOTHING;
      else if (found.what === "layout" && !this.#known.get(found.id)) this.#known.set(found.id, wholeLayout(found.key, found.body)?.layout);
    }
  }
}

/**
 * Those that can be read, each once; where no account says what was pending all that there are. Through the tables in their order, and what these
 * do not lead to page by page. Undefined: a pause.
 */
function* pendingRows(db: Database.Database | undefined, path: string): Generator<BatchRow | undefined> {
  const looking = accountIn(path, db);
  let looked = looking.next();
  for (; !looked.done; looked = looking.next()) yield undefined;
  const pending = pendingIn(looked.value);
  const seen = new Set<number>();
  const isWanted = (id: number): boolean => !seen.has(id) && (!pending || pending.some(({ from, to }) => id >= from && id < to));
  if (db && pending && (yield* throughTables(db, pending, seen))) return;
  for (const found of scanLeaves(path)) {
    if (!found) yield undefined;
    const pack = found?.what === "pack" ? wholePack(found) : undefined;
    const rows = found?.what === "batch" ? [found.row] : pack ? rowsOf(pack, isWanted) : [];
    for (const row of rows) {
      if (!isWanted(row.id)) continue;
      seen.add(row.id);
      yield row;
    }
  }
}

/** Returns true where nothing is damaged. */
function* throughTables(db: Database.Database, pending: readonly IdRange[], seen: Set<number>): Generator<BatchRow, boolean> {
  let isWhole = true;
  try {
    for (const row of rowsOfTables(db, pending)) {
      if (!isIntact(row)) isWhole = false;
      else {
        seen.add(row.id);
        yield row;
      }
    }
    return isWhole;
  } catch {
    return false;
  }
}

/** Throws what SQLite throws, and DamagedFileError. */
function* rowsOfTables(db: Database.Database, pending: readonly IdRange[]): Generator<BatchRow> {
  const packs = hasPacks(db) ? new PackReader(db) : undefined;
  for (const range of packs ? pending : [])
    for (const pack of packs?.in(range) ?? [])
      for (const i of packs?.rowsIn(pack, range) ?? []) if (packs) yield rowAt(packs.index(pack), packs.payloads(pack), i);
  const select = db.prepare<[number, number, number], BatchRow>("SELECT * FROM batch WHERE id >= ? AND id < ? ORDER BY id LIMIT ?");
  for (const { from, to } of pending)
    for (let rows = select.all(from, to, READ_ROWS); rows.length > 0; rows = select.all((rows.at(-1)?.id ?? to) + 1, to, READ_ROWS))
      yield* rows;
}

/** Files before version 9 have none. */
const hasPacks = (db: Database.Database): boolean => Number(db.pragma("user_version", { simple: true })) >= 9;

/** Ids that a sink waits for by the account; undefined: that is not known any more. */
function pendingIn(account: AccountRows | undefined): readonly IdRange[] | undefined {
  return tried(() => {
    const { meta: [meta] = [], sink = [] } = account ?? {};
    const nextId = Number(meta?.["next_id"]);
    if (!Number.isSafeInteger(nextId)) return undefined;
    return union(
      sink.flatMap(({ active, older, live }) => [
        ...(JSON.parse(String(older)) as readonly IdRange[]),
        ...(active === 1 ? [{ from: Number(live), to: nextId }] : []),
      ]),
    );
  });
}

function* asNew(rows: readonly BatchRow[], layouts: Layouts): Generator<Recovered> {
  yield* layouts.look(rows);
  const used = new Map<string, Layout>();
  const batches = rows.flatMap(({ layout: id, ts, n, n_exploration, payload }) => {
    const layout = layouts.get(id);
    if (!layout) return [];
    const key = layoutKey(layout);
    used.set(key, layout);
    return [{ layoutKey: key, time: ts, count: n, explorationCount: n_exploration, payload }];
  });
  yield { layouts: [...used].map(([key, layout]) => ({ key, layout })), batches };
}

function stateOf(suffix: string): AsideState | undefined {
  if (suffix.startsWith(WAITING)) return "waiting";
  if (suffix.startsWith(RECOVERED)) return "recovered";
  const version = /^version-(\d+)/.exec(suffix);
  if (version) return Number(version[1]) > SCHEMA_VERSION ? "newer" : "waiting";
  if (suffix.startsWith("damaged-")) return suffix.includes("-taken") ? "taken" : "damaged";
  return undefined;
}

function renamed(path: string, target: string): string {
  for (const own of ["-wal", "-shm", ""])
    if (statSync(`${path}${own}`, { throwIfNoEntry: false })) renameSync(`${path}${own}`, `${target}${own}`);
  return target;
}

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

function tried<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
