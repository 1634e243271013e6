import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cursorKey, databaseEpoch, openDatabase } from "./database.ts";
import { temporaryFolder } from "./testing.ts";

test("a new database is durable, bound by its foreign keys, and keeps its own key and epoch", () => {
  const folder = temporaryFolder();
  const file = join(folder, "c.db");
  const db = openDatabase(file);
  expect(["journal_mode", "synchronous", "foreign_keys", "user_version"].map((name) => db.pragma(name, { simple: true }))).toEqual([
    "wal",
    2,
    1,
    1,
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
