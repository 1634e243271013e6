import { randomUUID } from "node:crypto";
import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { messageOf } from "../model/failure.ts";
import { AccountCopy, keptAccount } from "./account.ts";
import type { Ledger, Position } from "./buffer.ts";
import type { SavedAge } from "./file-age.ts";
import { PackReader } from "./packs.ts";
import { union } from "./position.ts";
import { MIGRATIONS, SCHEMA, SCHEMA_VERSION, SUPPRESSED } from "./schema.ts";
import { DamagedFileError } from "./set-aside.ts";
import type { SinkState, SinksState } from "./sink-state.ts";
import { type StampRange, type StampRow, stampRange } from "./stamps.ts";

/** All that a transaction changes, replaced as a whole once it is on disk. */
export interface FileState extends SinksState {
  /** The file's next_id; above nextId while no sink is active and nothing is stored, so that most ids cost no write. */
  readonly reservedId: number;
  readonly run: string;
  readonly lastSeq: number;
  readonly layouts: ReadonlyMap<string, number>;
  readonly rejected: Ledger["rejected"];
  /** Values of all variables that were not reported. */
  readonly suppressed: number;
  /** Of these, what `run` has reported as overflow. */
  readonly overflowOfRun: number;
  /** Rising and apart. */
  readonly stamps: readonly StampRange[];
}

/** Facts that identify a file and do not change at run. */
export interface FileIdentity {
  readonly epoch: string;
  readonly lost: Ledger["lost"];
  /** The next id that is on disk: behind that of the state where ids were left out after a death. */
  readonly savedNextId: number;
  readonly age: SavedAge;
}

/** The whole file is checked at opening up to this size; a larger one would delay the start. */
const CHECKED_BYTES = 64 * 2 ** 20;
/** How long another connection may hold a lock that a commit needs. */
const BUSY_TIMEOUT_MS = 250;

/** Values are for the user of the collector and its group. */
const MODE = 0o640;

/** Takes the rights of others from a file that a version of before made, before anything opens it: SQLite gives the files beside it the same. */
export function limitRights(file: string): void {
  try {
    chmodSync(file, MODE);
  } catch {
    // None is there, its file system has no rights, or it is another user's: who may read it stays.
  }
}

/** Opens the file for writing. */
export function openDatabase(file: string): Database.Database {
  // Only a new one is made here: to close it takes SQLite's locks on it from this process (fcntl, POSIX.1-2017).
  if (!existsSync(file)) closeSync(openSync(file, "a", MODE));
  return new Database(file, { timeout: BUSY_TIMEOUT_MS });
}

/** The version of a file, which stays as it is; 0: there is none, or it cannot be read. */
export function versionOf(file: string): number {
  try {
    const db = new Database(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
    try {
      return Number(db.pragma("user_version", { simple: true }));
    } finally {
      db.close();
    }
  } catch {
    return 0;
  }
}

/** Makes the tables of a new file, checks an old one. Throws DamagedFileError if it is not a buffer's. */
export function prepareFile(db: Database.Database, file: string): void {
  // Only a file without tables takes this; it is what lets a file shrink again.
  db.pragma("auto_vacuum = INCREMENTAL");
  const mode = db.pragma("journal_mode = WAL", { simple: true });
  if (mode !== "wal") throw new Error(`the buffer ${file} needs SQLite's WAL, and its file system gives ${String(mode)}`);
  db.pragma("synchronous = FULL");
  db.pragma("cache_size = -1024");
  const version = Number(db.pragma("user_version", { simple: true }));
  if (version === 0) {
    if (db.prepare("SELECT 1 FROM sqlite_schema").get() !== undefined) throw new DamagedFileError("it is the database of another program");
    db.transaction(() => {
      db.exec(SCHEMA);
      db.prepare("INSERT INTO meta (one, epoch, next_id, run, last_seq, overflow_of_run) VALUES (1, ?, 1, '', 0, 0)").run(randomUUID());
    }).immediate();
    return;
  }
  for (let at = version; at !== SCHEMA_VERSION; at++) {
    const migration = MIGRATIONS[at];
    if (migration === undefined) throw new DamagedFileError(`it has version ${version}, this collector reads ${SCHEMA_VERSION}`);
    db.transaction(() => db.exec(migration)).immediate();
  }
  if (fileBytes(file) <= CHECKED_BYTES) checkPages(db);
}

/** Pages may hold other values and be in order all the same. */
function checkAccount(db: Database.Database): void {
  const kept = keptAccount(db);
  if (kept !== undefined && !new AccountCopy(db).isOf(kept)) throw new Error("its account has changed");
}

function checkPages(db: Database.Database): void {
  const found = db.pragma("quick_check(1)", { simple: true });
  if (found !== "ok") throw new DamagedFileError(String(found).replaceAll("\n", " "));
  // SQLite knows nothing of what is in a row.
  const packs = new PackReader(db);
  for (const pack of packs.in({ from: 0, to: Number.MAX_SAFE_INTEGER })) packs.check(pack);
}

/** Looks at every page of a file of any size, past what open connections remember of it: takes seconds for a GiB. Throws DamagedFileError. */
export function checkFile(file: string): void {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
  try {
    checkPages(db);
  } finally {
    db.close();
  }
}

interface MetaRow {
  readonly epoch: string;
  readonly next_id: number;
  readonly run: string;
  readonly last_seq: number;
  readonly overflow_of_run: number;
  readonly lost_since: number | null;
  readonly lost_why: string | null;
  readonly age: number;
  readonly down: number;
  readonly age_at: number | null;
}

interface SinkRow {
  readonly id: string;
  readonly active: number;
  readonly takes_exploration: number;
  readonly older: string;
  readonly live: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly dropped: string;
  readonly delivered_unstored: number;
  readonly removed_for_ms: number | null;
  readonly removed_at: number | null;
  readonly unconfirmed: number;
  readonly filtered: number;
}

/** The state that the file holds. Throws DamagedFileError if it is not one that a buffer writes. */
export function load(db: Database.Database): FileState & FileIdentity {
  try {
    checkAccount(db);
    const meta = db.prepare<[], MetaRow>("SELECT * FROM meta").get();
    if (!meta) throw new Error("its table meta is empty");
    const sinks = new Map<string, SinkState>();
    for (const row of db.prepare<[], SinkRow>("SELECT * FROM sink ORDER BY rowid").all())
      sinks.set(row.id, {
        id: row.id,
        active: row.active === 1,
        takesExploration: row.takes_exploration === 1,
        position: { older: JSON.parse(row.older) as Position["older"], live: row.live },
        accepted: row.accepted,
        delivered: row.delivered,
        unconfirmed: row.unconfirmed,
        filtered: row.filtered,
        dropped: JSON.parse(row.dropped) as SinkState["dropped"],
        deliveredUnstored: row.delivered_unstored,
        removed: row.removed_for_ms === null || row.removed_at === null ? null : { forMs: row.removed_for_ms, at: row.removed_at },
      });
    const first = firstId(db) ?? meta.next_id;
    // Layouts that no batch can name any more go when it costs no search.
    if (first === meta.next_id) tryTo(() => db.transaction(() => db.exec("DELETE FROM layout; DELETE FROM layout_copy"))());
    const layouts = db.prepare<[], { id: number; key: string }>("SELECT id, key FROM layout").all();
    const rejected = db.prepare<[], { reason: string; n: number }>("SELECT reason, n FROM rejected").all();
    return {
      epoch: meta.epoch,
      lost: meta.lost_since === null ? null : { since: meta.lost_since, why: meta.lost_why ?? "" },
      savedNextId: meta.next_id,
      nextId: meta.next_id,
      reservedId: meta.next_id,
      run: meta.run,
      lastSeq: meta.last_seq,
      sinks,
      garbage: union([{ from: first, to: meta.next_id }]),
      layouts: new Map(layouts.map(({ key, id }) => [key, id])),
      rejected: Object.fromEntries(rejected.flatMap(({ reason, n }) => (reason === SUPPRESSED ? [] : [[reason, n]]))),
      suppressed: rejected.find(({ reason }) => reason === SUPPRESSED)?.n ?? 0,
      overflowOfRun: meta.overflow_of_run,
      stamps: db.prepare<[], StampRow>("SELECT * FROM stamp ORDER BY from_id").all().map(stampRange),
      age: { ageMs: meta.age, downMs: meta.down, at: meta.age_at },
    };
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code !== "SQLITE_ERROR") throw error;
    throw new DamagedFileError(messageOf(error), { cause: error });
  }
}

/** The first id that a row of the file has, in a pack or not. */
function firstId(db: Database.Database): number | undefined {
  const ids = ["batch", "pack"].flatMap((table) => db.prepare<[], number | null>(`SELECT min(id) FROM ${table}`).pluck().get() ?? []);
  return ids.length === 0 ? undefined : Math.min(...ids);
}

/** On a full disk it is left for another time. */
function tryTo(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Database.SqliteError) || !/^SQLITE_(FULL|IOERR)/.test(error.code)) throw error;
  }
}

export const fileBytes = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
