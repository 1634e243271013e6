import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";
import SQLite from "better-sqlite3";
import { messageOf } from "../../model/failure.ts";

/**
 * The schema, one step per version; `user_version` says how many were taken. A step that was released never changes.
 * Row ids rise and are never used again: creation order is the order of pages.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;

  CREATE TABLE collectors (uuid TEXT PRIMARY KEY, revision INTEGER NOT NULL DEFAULT 1) STRICT;
  CREATE TABLE machines (uuid TEXT PRIMARY KEY) STRICT;

  CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('admin', 'collector')),
    collector TEXT REFERENCES collectors (uuid),
    file TEXT,
    created_at TEXT NOT NULL,
    CHECK ((role = 'collector') = (collector IS NOT NULL))
  ) STRICT;

  CREATE TABLE data_sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    collector TEXT NOT NULL REFERENCES collectors (uuid),
    machine TEXT NOT NULL REFERENCES machines (uuid),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    manufacturer TEXT,
    device_model TEXT,
    note TEXT,
    readout_interval INTEGER NOT NULL,
    readout_limit INTEGER,
    details TEXT,
    variable_discovery INTEGER NOT NULL DEFAULT 0,
    last_readout_at TEXT,
    reported_variables INTEGER,
    state TEXT NOT NULL DEFAULT '{"type":"UNKNOWN"}'
  ) STRICT;
  CREATE INDEX data_sources_collector ON data_sources (collector, id);
  CREATE INDEX data_sources_machine ON data_sources (machine, id);

  CREATE TABLE data_sinks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    collector TEXT NOT NULL REFERENCES collectors (uuid),
    name TEXT,
    details TEXT NOT NULL,
    UNIQUE (collector, name)
  ) STRICT;
  CREATE INDEX data_sinks_collector ON data_sinks (collector, id);

  CREATE TABLE variables (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    data_source TEXT NOT NULL REFERENCES data_sources (uuid) ON DELETE CASCADE,
    collector TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    type TEXT,
    unit TEXT,
    scaling TEXT,
    comment TEXT,
    status TEXT NOT NULL,
    UNIQUE (data_source, name)
  ) STRICT;
  CREATE INDEX variables_source ON variables (data_source, id);
  CREATE INDEX variables_collector ON variables (collector, id);
  CREATE INDEX variables_counted ON variables (data_source) WHERE status <> 'INACTIVE';

  CREATE TABLE secrets (
    owner TEXT NOT NULL,
    field TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (owner, field)
  ) STRICT;
  `,
];

export type Database = SQLite.Database;

/**
 * Opens the database, makes it where there is none (0600), and brings its schema up to date.
 * Throws an Error whose message names the file: not a database, damaged, written by a newer version, not writable.
 */
export function openDatabase(file: string): Database {
  let db: Database | undefined;
  try {
    // SQLite makes its -wal and -shm files with the rights of the database.
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
    else if (statSync(file).isFile()) chmodSync(file, 0o600);
    db = new SQLite(file, { timeout: 2000 });
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("foreign_keys = ON");
    // A deleted secret does not stay in free pages.
    db.pragma("secure_delete = ON");
    migrate(db);
    return db;
  } catch (error) {
    db?.close();
    throw new Error(`the configuration database ${file} cannot be opened: ${messageOf(error)}`, { cause: error });
  }
}

function migrate(db: Database): void {
  db.transaction(() => {
    const version = Number(db.pragma("user_version", { simple: true }));
    if (version > MIGRATIONS.length)
      throw new Error(
        `it was written by a newer collector (schema ${version}, this one knows ${MIGRATIONS.length}): install that version again`,
      );
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.pragma(`user_version = ${MIGRATIONS.length}`);
    const put = db.prepare("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING");
    put.run("cursor_key", randomBytes(32));
    put.run("epoch", randomBytes(9));
  }).immediate();
}

/** The key that cursors of this database are signed with. */
export function cursorKey(db: Database): Uint8Array {
  return metaValue(db, "cursor_key");
}

/** Names one life of the database, so that a revision of an earlier one is never taken for a present one. */
export function databaseEpoch(db: Database): string {
  return Buffer.from(metaValue(db, "epoch")).toString("base64url");
}

function metaValue(db: Database, name: string): Uint8Array {
  const row = db.prepare<[string], { value: Uint8Array }>("SELECT value FROM meta WHERE name = ?").get(name);
  if (!row) throw new Error(`the configuration database has no ${name}: it is damaged, restore it from its backup`);
  return row.value;
}
