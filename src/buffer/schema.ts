import { crc32 } from "node:zlib";

/** `PRAGMA user_version` of the files this code reads and writes. */
export const SCHEMA_VERSION = 10;

/**
 * age: batches below the id were in the file when it was `at` ms old. stamp: stamps that may be corrected, or are. start: batches from the id
 * on were first numbered under this name.
 */
const SINCE_4 = `
CREATE TABLE age (id INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT;
CREATE TABLE stamp (from_id INTEGER PRIMARY KEY, to_id INTEGER NOT NULL, boot TEXT NOT NULL, boot_time REAL NOT NULL, correction REAL) STRICT;
CREATE TABLE start (from_id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
`;

/** account: tables of few rows once more (account.ts). layout_copy: each layout once more, packed. */
const SINCE_6 = `
CREATE TABLE account (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE layout_copy (id INTEGER PRIMARY KEY, key TEXT NOT NULL, body BLOB NOT NULL) STRICT;
`;

/** In `rejected`: the values that were not reported, which are no loss. */
export const SUPPRESSED = "suppressed";

/** pack: rows of batch that wait for long, packed (packs.ts); pack_data: what is in them (pack-format.ts). */
const SINCE_9 = `
CREATE TABLE pack (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, rows INTEGER NOT NULL, n INTEGER NOT NULL,
                   n_exploration INTEGER NOT NULL, gone TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE pack_data (id INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL) STRICT;
`;

/** One meta row. Ids are ours and not SQLite's, so that they are never used again, not even after the file was emptied. */
export const SCHEMA = `
CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), epoch TEXT NOT NULL, next_id INTEGER NOT NULL,
                   run TEXT NOT NULL, last_seq INTEGER NOT NULL, overflow_of_run INTEGER NOT NULL,
                   lost_since REAL, lost_why TEXT,
                   age REAL NOT NULL DEFAULT 0, down REAL NOT NULL DEFAULT 0, age_at REAL) STRICT;
CREATE TABLE layout (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
CREATE TABLE batch (id INTEGER PRIMARY KEY, layout INTEGER NOT NULL, ts REAL NOT NULL, n INTEGER NOT NULL,
                    n_exploration INTEGER NOT NULL, crc INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
CREATE TABLE sink (id TEXT PRIMARY KEY, active INTEGER NOT NULL, takes_exploration INTEGER NOT NULL, older TEXT NOT NULL,
                   live INTEGER NOT NULL, accepted INTEGER NOT NULL, delivered INTEGER NOT NULL, dropped TEXT NOT NULL,
                   delivered_unstored INTEGER NOT NULL, removed_for_ms REAL, removed_at REAL, unconfirmed INTEGER NOT NULL DEFAULT 0,
                   filtered INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE rejected (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
CREATE TABLE gap (sink TEXT NOT NULL, reason TEXT NOT NULL, number INTEGER NOT NULL, from_ts REAL NOT NULL, to_ts REAL NOT NULL,
                  n INTEGER, is_open INTEGER NOT NULL, from_clock TEXT, to_clock TEXT, PRIMARY KEY (sink, reason)) STRICT;
${SINCE_4}${SINCE_6}${SINCE_9}
PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** From an older version of the file to the next one. */
export const MIGRATIONS: Readonly<Record<number, string>> = {
  1: `
ALTER TABLE meta ADD COLUMN overflow_of_run INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN lost_since REAL;
ALTER TABLE meta ADD COLUMN lost_why TEXT;
ALTER TABLE sink ADD COLUMN delivered_unstored INTEGER NOT NULL DEFAULT 0;
CREATE TABLE rejected (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
CREATE TABLE gap (sink TEXT NOT NULL, reason TEXT NOT NULL, number INTEGER NOT NULL, from_ts REAL NOT NULL, to_ts REAL NOT NULL,
                  n INTEGER, is_open INTEGER NOT NULL, PRIMARY KEY (sink, reason)) STRICT;
PRAGMA user_version = 2;
`,
  2: `
ALTER TABLE sink ADD COLUMN removed_for_ms REAL;
ALTER TABLE sink ADD COLUMN removed_at REAL;
PRAGMA user_version = 3;
`,
  // What a file of that version holds is as old as its first opening by this one.
  3: `
ALTER TABLE meta ADD COLUMN age REAL NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN down REAL NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN age_at REAL;
${SINCE_4}
PRAGMA user_version = 4;
`,
  // What stamped the ends of a loss (losses.ts); null: a clock that was right.
  4: `
ALTER TABLE gap ADD COLUMN from_clock TEXT;
ALTER TABLE gap ADD COLUMN to_clock TEXT;
PRAGMA user_version = 5;
`,
  5: `${SINCE_6}
PRAGMA user_version = 6;
`,
  // The copy of the account has more tables from the next transaction on: a collector that knows fewer would take it for damaged.
  6: "PRAGMA user_version = 7;",
  // Payloads may have elements that are no value, and faults that are new: a collector that knows neither would take them for damaged.
  7: "PRAGMA user_version = 8;",
  // The copy of the account is without the new column: the next transaction makes it again.
  8: `${SINCE_9}
ALTER TABLE sink ADD COLUMN unconfirmed INTEGER NOT NULL DEFAULT 0;
DELETE FROM account;
PRAGMA user_version = 9;
`,
  9: `
ALTER TABLE sink ADD COLUMN filtered INTEGER NOT NULL DEFAULT 0;
DELETE FROM account;
PRAGMA user_version = 10;
`,
};

export interface BatchRow {
  readonly id: number;
  readonly layout: number;
  readonly ts: number;
  readonly n: number;
  readonly n_exploration: number;
  readonly crc: number;
  readonly payload: Uint8Array;
}

const header = new Float64Array(5);
const headerBytes = new Uint8Array(header.buffer);

/** CRC-32 over a batch's columns and its payload. */
export function checksumOf(row: Omit<BatchRow, "crc">): number {
  header[0] = row.id;
  header[1] = row.layout;
  header[2] = row.ts;
  header[3] = row.n;
  header[4] = row.n_exploration;
  return crc32(row.payload, crc32(headerBytes));
}

/** True: a row is as it was written. What a damaged page holds may be of any type. */
export const isIntact = (row: BatchRow): boolean => (row.payload as unknown) instanceof Uint8Array && checksumOf(row) === row.crc;
