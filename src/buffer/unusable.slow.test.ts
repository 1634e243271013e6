import { readdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import type { Ledger, StoredBatch } from "./buffer.ts";
import { isOfFile, takesNewFile } from "./set-aside.ts";
import { Store } from "./store.ts";
import { A, append, batch, layouts, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { deafListener } from "./testing/listener.ts";

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

/** Appends one batch again with each life of the file, as the host does. */
function startStore(file: string, unusableAfterMs: number) {
  const alarms: string[] = [];
  const stored: StoredBatch[] = [];
  const state: { ledger: Ledger | undefined; upTo: number } = { ledger: undefined, upTo: 0 };
  const store = new Store(
    { file, run: "r2", maxBytes: 2 ** 30, maxAgeMs: 1e9, commitDelayMs: 5, ledgerIntervalMs: 5, retryMs: 20, unusableAfterMs },
    {
      ...deafListener,
      ready(life) {
        store.begin(life);
        for (const { key, layout } of layouts) store.addLayout(key, layout);
        store.append([batch(1)]);
      },
      committed: (upTo) => {
        state.upTo = upTo;
      },
      ledger: (ledger) => {
        state.ledger = ledger;
      },
      alarm: ({ text }) => alarms.push(text),
      stored: (batches) => stored.push(...batches),
    },
  );
  store.start();
  return { store, alarms, stored, state };
}

/** A file with three batches that opens, and in which no further one can be stored. */
function unusable(folder: string): string {
  const file = join(folder, "buffer.db");
  {
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, batch(1), batch(2), batch(3));
  }
  const db = new Database(file);
  db.exec("CREATE TRIGGER stuck BEFORE INSERT ON batch BEGIN SELECT RAISE(FAIL, 'stuck'); END");
  db.close();
  return file;
}

it("a file that opens and takes nothing for long is set aside as a damaged one, and what waits in it is delivered", async () => {
  using folder = temporaryFolder();
  const file = unusable(folder.path);
  const { store, alarms, stored, state } = startStore(file, 300);
  await poll(() => state.upTo).toBe(1);
  expect(alarms).toEqual([
    expect.stringMatching(/takes no values: stuck\. They wait in memory/),
    expect.stringMatching(
      /is damaged \(it could not be used for \d+ s: stuck\): .*all values that were pending in it are delivered from a new one/,
    ),
  ]);
  expect(stored.map(({ id }) => id > 3)).toEqual([true]);
  store.stop();
  expect(state.ledger?.sinks).toMatchObject([{ accepted: 32, pending: 32, dropped: {} }]);
  expect(readdirSync(folder.path).filter((name) => /^buffer\.db\.damaged-[^.]*-taken$/.test(name))).toHaveLength(1);
});

it("stays where it is for a shorter time", async () => {
  using folder = temporaryFolder();
  const { store, alarms } = startStore(unusable(folder.path), 60_000);
  await poll(() => alarms.length).toBe(1);
  await new Promise((done) => setTimeout(done, 400));
  store.stop();
  expect(alarms.join()).not.toContain("damaged");
  expect(readdirSync(folder.path).filter((name) => name.includes("damaged"))).toEqual([]);
});

it("only where the file may be why, and a new one would be taken", () => {
  using folder = temporaryFolder();
  expect(takesNewFile(join(folder.path, "buffer.db"))).toBe(true);
  expect(takesNewFile(join(folder.path, "none", "buffer.db"))).toBe(false);
  const codes = [
    "SQLITE_IOERR_READ",
    "SQLITE_ERROR",
    "SQLITE_CANTOPEN",
    "SQLITE_FULL",
    "SQLITE_BUSY",
    "SQLITE_READONLY_DIRECTORY",
    "ENOSPC",
  ];
  expect(codes.map((code) => isOfFile(Object.assign(new Error(code), { code })))).toEqual([true, true, true, false, false, false, false]);
});
