import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { expect, test } from "vitest";
import { cursorKey, databaseEpoch, MIGRATIONS, openDatabase } from "./database.ts";
import { temporaryFolder } from "./testing.ts";

const FIRST_SCHEMA = MIGRATIONS[0] ?? "";

test("a new database is durable, bound by its foreign keys, and keeps its own key and epoch", () => {
  const folder = temporaryFolder();
  const file = join(folder, "c.db");
  const db = openDatabase(file);
  expect(["journal_mode", "synchronous", "foreign_keys", "user_version"].map((name) => db.pragma(name, { simple: true }))).toEqual([
    "wal",
    2,
    1,
    MIGRATIONS.length,
  ]);
  expect(() => db.prepare("INSERT INTO data_sinks (uuid, collector, details) VALUES ('a', 'nobody', '{}')").run()).toThrow("FOREIGN KEY");
  const [key, epoch] = [cursorKey(db), databaseEpoch(db)];
  db.close();
  const again = openDatabase(file);
  expect([cursorKey(again), databaseEpoch(again)]).toEqual([key, epoch]);
  again.close();
  const other = openDatabase(join(folder, "d.db"));
  expect(databaseEpoch(other)).not.toBe(epoch);
  other.close();
});

test("what cannot be opened is said in words that name the file, and stays as it is", () => {
  const folder = temporaryFolder();
  const newer = join(folder, "newer.db");
  const db = openDatabase(newer);
  db.pragma("user_version = 99");
  db.close();
  expect(() => openDatabase(newer)).toThrow(`${newer} cannot be opened: it was written by a newer collector`);
  const text = join(folder, "text.db");
  writeFileSync(text, "not a database, but long enough to be taken for one".repeat(100));
  expect(() => openDatabase(text)).toThrow(text);
  mkdirSync(join(folder, "dir.db"));
  expect(() => openDatabase(join(folder, "dir.db"))).toThrow(join(folder, "dir.db"));
});

test("a database of the first schema is brought up to date with its records and its references", () => {
  const file = join(temporaryFolder(), "old.db");
  const old = new SQLite(file);
  old.exec(FIRST_SCHEMA);
  old.pragma("user_version = 1");
  old.exec(`
    INSERT INTO collectors (uuid, revision) VALUES ('c1', 7), ('c2', 1);
    INSERT INTO machines (uuid) VALUES ('m1');
    INSERT INTO data_sources (uuid, collector, machine, type, name, readout_interval) VALUES ('s1', 'c1', 'm1', 's7', 'press', 10);`);
  old.close();
  const db = openDatabase(file);
  expect(db.prepare("SELECT uuid, revision, site, version FROM collectors ORDER BY id").all()).toEqual([
    { uuid: "c1", revision: 7, site: null, version: 1 },
    { uuid: "c2", revision: 1, site: null, version: 1 },
  ]);
  expect(db.prepare("SELECT uuid, version FROM data_sources").all()).toEqual([{ uuid: "s1", version: 1 }]);
  expect(() => db.prepare("DELETE FROM collectors WHERE uuid = 'c1'").run()).toThrow("FOREIGN KEY");
  expect(() => db.prepare("DELETE FROM machines").run()).toThrow("FOREIGN KEY");
  db.close();
});

test("a damaged page is found when it is opened, and the way back is said", () => {
  const file = join(temporaryFolder(), "damaged.db");
  const db = openDatabase(file);
  const insert = db.prepare("INSERT INTO sites (uuid, name) VALUES (?, ?)");
  for (let n = 0; n < 500; n++) insert.run(`site-${n}`, "x".repeat(500));
  db.close();
  const bytes = readFileSync(file);
  bytes.fill(0xff, bytes.length - 8 * 4096);
  writeFileSync(file, bytes);
  expect(() => openDatabase(file)).toThrow(new RegExp(`${file} cannot be opened: .*collector api restore`, "s"));
  expect(readFileSync(file).equals(bytes)).toBe(true);
});
