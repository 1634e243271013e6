import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";
import SQLite from "better-sqlite3";
import { errorCode, messageOf } from "../../model/failure.ts";

/**
 * The schema, one step per version; `user_version` says how many were taken. A step that was released never changes.
 * Row ids rise and are never used again: creation order is the order of pages.
 */
export const MIGRATIONS: readonly string[] = [
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
  `
  CREATE TABLE sites (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1
  ) STRICT;

  CREATE TABLE collectors_with_site (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT,
    site TEXT REFERENCES sites (uuid),
    revision INTEGER NOT NULL DEFAULT 1,
    version INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  INSERT INTO collectors_with_site (uuid, revision) SELECT uuid, revision FROM collectors ORDER BY rowid;
  DROP TABLE collectors;
  ALTER TABLE collectors_with_site RENAME TO collectors;
  CREATE INDEX collectors_site ON collectors (site, id);

  CREATE TABLE machines_with_site (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT,
    site TEXT REFERENCES sites (uuid),
    version INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  INSERT INTO machines_with_site (uuid) SELECT uuid FROM machines ORDER BY rowid;
  DROP TABLE machines;
  ALTER TABLE machines_with_site RENAME TO machines;
  CREATE INDEX machines_site ON machines (site, id);

  ALTER TABLE data_sources ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE data_sinks ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE variables ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

  ALTER TABLE api_keys ADD COLUMN name TEXT;

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    role TEXT NOT NULL,
    key_id INTEGER,
    key_name TEXT,
    address TEXT NOT NULL,
    operation TEXT NOT NULL,
    resource TEXT,
    fields TEXT NOT NULL
  ) STRICT;
  `,
  // Rises with every change of what is answered, a status too; the version with changes of the configuration alone.
  "ALTER TABLE data_sources ADD COLUMN answer INTEGER NOT NULL DEFAULT 1;",
  // Changes are noticed by triggers of the connection that makes them.
  "ALTER TABLE data_sources DROP COLUMN answer;",
  // The oldest entries of one actor are found without looking at all.
  "CREATE INDEX audit_actor ON audit (role, key_id, id);",
  // The record's name, what its fields were and are, and the operating system's user of the command line.
  `
  ALTER TABLE audit ADD COLUMN name TEXT;
  ALTER TABLE audit ADD COLUMN changes TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE audit ADD COLUMN os_user TEXT;
  `,
  // One page less to be made durable with every change; the oldest entries of one actor are looked for seldom.
  "DROP INDEX audit_actor;",
];

export type Database = SQLite.Database;

/** How a database is brought to its present schema. */
export interface Schema {
  /** What it is, for messages: `configuration database`. */
  readonly what: string;
  /** One step per version. */
  readonly migrations: readonly string[];
  /** What a person does about a damaged one. */
  readonly wayBack: string;
}

/** What a message about a damaged configuration ends with. */
export const WAY_BACK = "restore a backup with `collector api restore`";

const CONFIGURATION: Schema = { what: "configuration database", migrations: MIGRATIONS, wayBack: WAY_BACK };

/** Opens the configuration's database. See openSqlite. */
export const openDatabase = (file: string): Database => openSqlite(file, CONFIGURATION);

/** Another connection to an open database; what it reads is of one state until it is closed. */
export function openSnapshot(file: string): Database {
  const db = new SQLite(file, { timeout: 2000 });
  db.exec("BEGIN");
  return db;
}

/**
 * Opens a database, makes it where there is none (0600), checks its pages, and brings its schema up to date.
 * Throws an Error whose message names the file and the way back: not a database, damaged, written by a newer version, not writable.
 */
export function openSqlite(file: string, schema: Schema): Database {
  let db: Database | undefined;
  try {
    // SQLite makes its -wal and -shm files with the rights of the database.
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
    else if (statSync(file).isFile()) chmodSync(file, 0o600);
    db = new SQLite(file, { timeout: 2000 });
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    // A deleted secret does not stay in free pages.
    db.pragma("secure_delete = ON");
    const found = db.pragma("quick_check(1)", { simple: true });
    if (found !== "ok") throw new Error(`it is damaged (${String(found)})`);
    // A step may replace a table that others refer to; references are checked after it, and kept from then on.
    db.pragma("foreign_keys = OFF");
    migrate(db, schema.migrations);
    db.pragma("foreign_keys = ON");
    return db;
  } catch (error) {
    db?.close();
    const hint = isDamage(error) ? `: ${schema.wayBack}` : "";
    throw new Error(`the ${schema.what} ${file} cannot be opened: ${messageOf(error)}${hint}`, { cause: error });
  }
}

/** True: what SQLite or the check of its pages says means that the file itself is bad. */
function isDamage(error: unknown): boolean {
  const code = errorCode(error);
  return code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT") || /^it is damaged/.test(messageOf(error));
}

function migrate(db: Database, migrations: readonly string[]): void {
  db.transaction(() => {
    const version = Number(db.pragma("user_version", { simple: true }));
    if (version > migrations.length)
      throw new Error(
        `it was written by a newer collector (schema ${version}, this one knows ${migrations.length}): install that version again`,
      );
    for (const step of migrations.slice(version)) db.exec(step);
    const broken = db.pragma("foreign_key_check") as readonly unknown[];
    if (broken.length > 0) throw new Error("it is damaged (records refer to others that are not there)");
    db.pragma(`user_version = ${migrations.length}`);
    const put = db.prepare("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING");
    put.run("cursor_key", randomBytes(32));
    put.run("epoch", newEpoch());
  }).immediate();
}

const newEpoch = (): Uint8Array => randomBytes(9);

/** Begins another life of the database: revisions and ETags of before are never taken for present ones. */
export function renewEpoch(db: Database): void {
  db.prepare("UPDATE meta SET value = ? WHERE name = 'epoch'").run(newEpoch());
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
  if (!row) throw new Error(`the configuration database has no ${name}: it is damaged, restore a backup with collector api restore`);
  return row.value;
}
