import { readdirSync, renameSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import type { CommitWork, NewBatch } from "./buffer.ts";
import { layoutKey } from "./codec.ts";
import { layoutRows, wholeLayout } from "./layout-rows.ts";
import { scanLayouts, scanLeaves } from "./leaf-scan.ts";
import { type FoundPack, foundPacks, rowsOf } from "./pack-salvage.ts";
import type { IdRange } from "./position.ts";
import { inSteps, openWhole, pendingIn, readThroughTables } from "./salvage.ts";
import { type BatchRow, SCHEMA_VERSION } from "./schema.ts";

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
  const db = openWhole(path);
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
    this.#read = db && layoutRows(db);
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
    for (const found of scanLayouts(this.#path)) {
      if (!found) yield NOTHING;
      else if (!this.#known.get(found.id)) this.#known.set(found.id, wholeLayout(found.key, found.body)?.layout);
    }
  }
}

/** Those that can be read, each once. Without tables all that there are. Undefined: a pause. */
function* pendingRows(db: Database.Database | undefined, path: string): Generator<BatchRow | undefined> {
  const pending = db && pendingIn(db);
  const unread: IdRange[] = [];
  const seen = new Set<number>();
  let areAllPacked = true;
  for (const pack of foundPacks(db, path)) {
    if (!pack) {
      areAllPacked = false;
      yield undefined;
      continue;
    }
    for (const row of packedRows(pack, pending ?? [{ from: 0, to: Number.MAX_SAFE_INTEGER }])) {
      if (seen.has(row.id)) continue;
      seen.add(row.id);
      yield row;
    }
  }
  if (!areAllPacked && pending) unread.push(...pending);
  for (const range of db ? inSteps(db, pending ?? []) : []) {
    const rows: BatchRow[] = [];
    if (db) unread.push(...readThroughTables(db, [range], (row) => rows.push(row)));
    for (const { id } of rows) seen.add(id);
    yield* rows;
  }
  if (pending && unread.length === 0) return;
  for (const row of scanLeaves(path)) {
    const isWanted = row && !seen.has(row.id) && (!pending || unread.some(({ from, to }) => row.id >= from && row.id < to));
    if (isWanted) seen.add(row.id);
    if (!row || isWanted) yield row;
  }
}

/** A body that is damaged for all its right checksum has none. */
function packedRows(pack: FoundPack, ranges: readonly IdRange[]): readonly BatchRow[] {
  try {
    return [...rowsOf(pack, ranges)];
  } catch {
    return [];
  }
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

function tried(read: () => Layout | undefined): Layout | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
