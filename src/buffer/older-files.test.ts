import { readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { layoutKey } from "./codec.ts";
import { openReader } from "./reader.ts";
import { checksumOf, SCHEMA_VERSION } from "./schema.ts";
import { A, append, batch, expectExact, layout, ledgerOf, NOW, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const META =
  "one INTEGER PRIMARY KEY CHECK (one = 1), epoch TEXT NOT NULL, next_id INTEGER NOT NULL, run TEXT NOT NULL, last_seq INTEGER NOT NULL";
const SINK = `id TEXT PRIMARY KEY, active INTEGER NOT NULL, takes_exploration INTEGER NOT NULL, older TEXT NOT NULL, live INTEGER NOT NULL,
  accepted INTEGER NOT NULL, delivered INTEGER NOT NULL, dropped TEXT NOT NULL`;
const META_2 = `${META}, overflow_of_run INTEGER NOT NULL, lost_since REAL, lost_why TEXT`;
const SINK_2 = `${SINK}, delivered_unstored INTEGER NOT NULL`;
const SINK_3 = `${SINK_2}, removed_for_ms REAL, removed_at REAL`;
const COMMON = `
CREATE TABLE layout (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
CREATE TABLE batch (id INTEGER PRIMARY KEY, layout INTEGER NOT NULL, ts REAL NOT NULL, n INTEGER NOT NULL,
                    n_exploration INTEGER NOT NULL, crc INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;`;
const LOSSES = `
CREATE TABLE rejected (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
CREATE TABLE gap (sink TEXT NOT NULL, reason TEXT NOT NULL, number INTEGER NOT NULL, from_ts REAL NOT NULL, to_ts REAL NOT NULL,
                  n INTEGER, is_open INTEGER NOT NULL, PRIMARY KEY (sink, reason)) STRICT;
INSERT INTO rejected VALUES ('not_stored', 7);
INSERT INTO gap VALUES ('a', 'buffer_full', 3, 1, 2, 40, 1);`;

const META_4 = `${META_2}, age REAL NOT NULL DEFAULT 0, down REAL NOT NULL DEFAULT 0, age_at REAL`;
const SINCE_4 = `
CREATE TABLE age (id INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT;
CREATE TABLE stamp (from_id INTEGER PRIMARY KEY, to_id INTEGER NOT NULL, boot TEXT NOT NULL, boot_time REAL NOT NULL, correction REAL) STRICT;
CREATE TABLE start (from_id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;`;

const SINCE_6 = `
CREATE TABLE account (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE layout_copy (id INTEGER PRIMARY KEY, key TEXT NOT NULL, body BLOB NOT NULL) STRICT;`;

const FILE_6 = `CREATE TABLE meta (${META_4}) STRICT; CREATE TABLE sink (${SINK_3}) STRICT; ${COMMON}${LOSSES}${SINCE_4}${SINCE_6}
      ALTER TABLE gap ADD COLUMN from_clock TEXT; ALTER TABLE gap ADD COLUMN to_clock TEXT;
      INSERT INTO meta VALUES (1, 'epoch-1', 4, 'r0', 3, 0, NULL, NULL, 5000, 0, ${NOW});
      INSERT INTO sink VALUES ('a', 1, 0, '[]', 2, 24, 8, '{}', 5, NULL, NULL);`;
const FILE_9 = `${FILE_6} ALTER TABLE sink ADD COLUMN unconfirmed INTEGER NOT NULL DEFAULT 0;
      CREATE TABLE pack (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, rows INTEGER NOT NULL, n INTEGER NOT NULL,
                         n_exploration INTEGER NOT NULL, gone TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
      CREATE TABLE pack_data (id INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL) STRICT;`;
/** Tables that the account has a copy of, by version. */
const ACCOUNT: Readonly<Record<number, readonly string[]>> = {
  6: ["meta", "sink"],
  7: ["meta", "sink", "rejected", "stamp"],
  8: ["meta", "sink", "rejected", "stamp"],
  9: ["meta", "sink", "rejected", "stamp"],
};

/** Files as each version wrote them, with three batches of which sink `a` waits for the last two. */
const OLDER: Readonly<Record<number, string>> = {
  1: `CREATE TABLE meta (${META}) STRICT; CREATE TABLE sink (${SINK}) STRICT; ${COMMON}
      INSERT INTO meta VALUES (1, 'epoch-1', 4, 'r0', 3);
      INSERT INTO sink VALUES ('a', 1, 0, '[]', 2, 24, 8, '{}');`,
  2: `CREATE TABLE meta (${META_2}) STRICT; CREATE TABLE sink (${SINK_2}) STRICT; ${COMMON}${LOSSES}
      INSERT INTO meta VALUES (1, 'epoch-1', 4, 'r0', 3, 0, NULL, NULL);
      INSERT INTO sink VALUES ('a', 1, 0, '[]', 2, 24, 8, '{}', 5);`,
  3: `CREATE TABLE meta (${META_2}) STRICT; CREATE TABLE sink (${SINK_3}) STRICT; ${COMMON}${LOSSES}
      INSERT INTO meta VALUES (1, 'epoch-1', 4, 'r0', 3, 0, NULL, NULL);
      INSERT INTO sink VALUES ('a', 1, 0, '[]', 2, 24, 8, '{}', 5, NULL, NULL);`,
  4: `CREATE TABLE meta (${META_4}) STRICT; CREATE TABLE sink (${SINK_3}) STRICT; ${COMMON}${LOSSES}${SINCE_4}
      INSERT INTO meta VALUES (1, 'epoch-1', 4, 'r0', 3, 0, NULL, NULL, 5000, 0, ${NOW});
      INSERT INTO sink VALUES ('a', 1, 0, '[]', 2, 24, 8, '{}', 5, NULL, NULL);`,
  5: `CREATE TABLE meta (${META_4}) STRICT; CREATE TABLE sink (${SINK_3}) STRICT; ${COMMON}${LOSSES}${SINCE_4}
      ALTER TABLE gap ADD COLUMN from_clock TEXT; ALTER TABLE gap ADD COLUMN to_clock TEXT;
      INSERT INTO meta VALUES (1, 'epoch-1', 4, 'r0', 3, 0, NULL, NULL, 5000, 0, ${NOW});
      INSERT INTO sink VALUES ('a', 1, 0, '[]', 2, 24, 8, '{}', 5, NULL, NULL);`,
  6: FILE_6,
  7: FILE_6,
  8: FILE_6,
  9: FILE_9,
};

function writeOlder(file: string, version: number): void {
  const db = new Database(file);
  db.pragma("auto_vacuum = INCREMENTAL");
  db.pragma("journal_mode = WAL");
  db.exec(`${OLDER[version]} PRAGMA user_version = ${version}`);
  db.prepare("INSERT INTO layout VALUES (1, ?, ?)").run(layoutKey(layout), JSON.stringify(layout));
  for (let id = 1; id <= 3; id++) {
    const { payload } = batch(id);
    const row = { id, layout: 1, ts: NOW, n: 8, n_exploration: 2, payload };
    db.prepare("INSERT INTO batch VALUES (?, 1, ?, 8, 2, ?, ?)").run(id, NOW, checksumOf(row), payload);
  }
  const copied = ACCOUNT[version];
  if (copied) {
    const body = JSON.stringify(Object.fromEntries(copied.map((table) => [table, db.prepare(`SELECT * FROM ${table}`).all()])));
    db.prepare("INSERT INTO account VALUES (1, ?, ?)").run(body, crc32(body));
  }
  db.close();
}

it("has a file of each version before", () => {
  expect(Object.keys(OLDER).map(Number)).toEqual(Array.from({ length: SCHEMA_VERSION - 1 }, (_, i) => i + 1));
});

it.for(Object.keys(OLDER).map(Number))("takes a file of version %i with all that is pending in it, and goes on", (version) => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  writeOlder(file, version);
  using buffer = open(file);
  expect(buffer.epoch).toBe("epoch-1");
  expect(ledgerOf(buffer, "a")).toMatchObject({
    accepted: 24,
    delivered: 8,
    unconfirmed: 0,
    filtered: 0,
    pending: 16,
    deliveredUnstored: version === 1 ? 0 : 5,
  });
  expect(append(buffer, batch(4))[0]?.id).toBe(4);
  while (buffer.maintain());
  const reader = openReader(file);
  expect(reader.position("a")).toEqual({ older: [], live: 2 });
  expect(reader.read(0, 10, 2 ** 20).map(({ id, time, payload }) => [id, time, payload.length > 0])).toEqual([
    [2, NOW, true],
    [3, NOW, true],
    [4, NOW, true],
  ]);
  expect(reader.losses("a")).toHaveLength(version === 1 ? 0 : 1);
  expect(reader.starts()).toEqual([buffer.start]);
  reader.close();
  expect(ledgerOf(buffer, A.id)).toMatchObject({ accepted: 32, pending: 24 });
  expectExact(buffer, file);
  expect(readFileSync(file).subarray(0, 6).toString()).toBe("SQLite");
});
