import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it, onTestFinished } from "vitest";
import type { Ledger, StoredBatch } from "./buffer.ts";
import { openReader } from "./reader.ts";
import { asideFiles, markForRecovery } from "./recover.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { Store, type StoreListener } from "./store.ts";
import { A, append, batch, layout, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { deafListener } from "./testing/listener.ts";

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

const PAGE = 4096;

/** A backlog of 300 batches in a file that was set aside, with these pages damaged. */
function aside(file: string, suffix: string, pages: readonly number[]): string {
  const before = join(file, "..", "before", "buffer.db");
  {
    using buffer = open(before);
    buffer.setSinks([A]);
    for (let seq = 1; seq <= 300; seq += 100) append(buffer, ...Array.from({ length: 100 }, (_, i) => batch(seq + i)));
  }
  const bytes = readFileSync(before);
  for (const page of pages) bytes.fill(0x11, (page - 1) * PAGE, page * PAGE);
  writeFileSync(`${file}.${suffix}`, bytes);
  return `${file}.${suffix}`;
}

function startStore(file: string) {
  const alarms: string[] = [];
  const notes: string[] = [];
  const stored: StoredBatch[] = [];
  const state: { ledger: Ledger | undefined } = { ledger: undefined };
  const listener: StoreListener = {
    ...deafListener,
    ready: (life) => store.begin(life),
    ledger: (ledger) => {
      state.ledger = ledger;
    },
    alarm: ({ text }) => alarms.push(text),
    note: (message) => notes.push(message),
    stored: (batches) => stored.push(...batches),
  };
  const store = new Store({ file, run: "r", maxBytes: 2 ** 30, maxAgeMs: 1e9, commitDelayMs: 5, ledgerIntervalMs: 10 }, listener);
  store.start();
  store.setSinks([A]);
  onTestFinished(() => store.stop());
  return { alarms, notes, stored, ledger: () => state.ledger?.sinks[0], lost: () => state.ledger?.lost };
}

it.for([
  ["a damaged file, by the verb's mark", "damaged-20270115T080000Z", []],
  // The first page says where the tables begin, the third one is the first of them, with the account.
  ["one of which the account is gone", "damaged-20270115T080000Z", [3]],
  ["one that does not say where its tables begin", "damaged-20270115T080000Z", [1, 3]],
  ["the file of a newer collector, by the newer one", `version-${SCHEMA_VERSION}`, []],
] as const)("delivers what can be read of %s, once", async ([_, suffix, pages]) => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  aside(file, suffix, pages);
  const [found] = asideFiles(file);
  if (found?.state === "damaged") expect(existsSync(markForRecovery(file, found))).toBe(true);
  const { alarms, notes, stored, ledger } = startStore(file);
  await poll(() => notes.length).toBe(1);
  expect(alarms).toEqual([]);
  expect(notes[0]).toMatch(/^3000 values of .* were recovered, and are delivered; it is kept as .*recovered-/);
  expect(stored).toHaveLength(300);
  await poll(ledger).toMatchObject({ accepted: 2400, pending: 2400 });
  const reader = openReader(file);
  expect(reader.layout(stored[0]?.layout ?? 0)).toEqual(layout);
  reader.close();
  expect(asideFiles(file).map(({ state }) => state)).toEqual(["recovered"]);
});

it.for([
  ["this version", "UPDATE meta SET lost_since = NULL", "newer_version"],
  [
    "an earlier one, which published a loss",
    "UPDATE gap SET reason = 'lost', is_open = 0; UPDATE meta SET lost_since = (SELECT from_ts FROM gap), lost_why = 'it was written by a newer collector'; DELETE FROM account",
    "lost",
  ],
] as const)(
  "takes the gap of a downgrade to %s back once the newer version has delivered all, and without an alarm",
  async ([_, change, reason]) => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const newer = (version: number): void => {
      const db = new Database(file);
      db.pragma(`user_version = ${version}`);
      db.close();
    };
    {
      using buffer = open(file);
      buffer.setSinks([A]);
      append(buffer, ...Array.from({ length: 20 }, (_, i) => batch(i + 1)));
    }
    newer(SCHEMA_VERSION + 1);
    open(file, { onAlarm: () => {} }).close();
    // The newer version comes back: what it left is of its own version.
    const kept = `${file}.version-${SCHEMA_VERSION + 1}`;
    writeFileSync(`${file}.version-${SCHEMA_VERSION}`, readFileSync(kept));
    rmSync(kept);
    const own = new Database(`${file}.version-${SCHEMA_VERSION}`);
    own.pragma(`user_version = ${SCHEMA_VERSION}`);
    own.close();
    const db = new Database(file);
    db.exec(change);
    db.close();
    const { alarms, stored, ledger, lost } = startStore(file);
    await poll(() => stored.length).toBe(20);
    await poll(ledger).toMatchObject({ pending: 160 });
    const reader = openReader(file);
    await poll(() => reader.losses("a")).toEqual([expect.objectContaining({ reason, number: 1, values: 0 })]);
    reader.close();
    expect([alarms, lost()]).toEqual([[], null]);
  },
);
