import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { decodeReadout } from "./codec.ts";
import { openReader } from "./reader.ts";
import { A, acknowledge, append, B, batch, expectExact, layout, ledgerOf, NOW, open, taken } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const PAGE = 4096;
const ROWS = 3000;
const TAKEN = 500;
const REJECTED = 77;

/** Stamps of a clock that was not right, as they are in the file. */
const stampsIn = (file: string): unknown => {
  const db = new Database(file, { readonly: true });
  const rows = db.prepare("SELECT * FROM stamp").all();
  db.close();
  return rows;
};

/** A backlog of two sinks, of which `a` has the first rows already, some stamped by a wrong clock, and others rejected. Returns the epoch. */
function fill(file: string): string {
  using buffer = open(file, { boot: "boot-1" });
  buffer.setSinks([A, B]);
  for (let seq = 1; seq <= ROWS; seq += 100)
    append(
      buffer,
      ...Array.from({ length: 100 }, (_, i) => ({
        ...batch(seq + i, 8, 2, NOW + (seq + i) * 1000),
        clockSynced: seq > 1000,
        bootTimeMs: NOW,
      })),
    );
  buffer.commit({ run: "r1", layouts: [], batches: [], acknowledgements: [], rejected: { not_stored: REJECTED } });
  acknowledge(
    buffer,
    taken(
      "a",
      Array.from({ length: TAKEN }, (_, i) => i + 1),
      TAKEN * 8,
    ),
  );
  return buffer.epoch;
}

function damage(file: string, page: number, how: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  how(bytes.subarray(page * PAGE, (page + 1) * PAGE));
  writeFileSync(file, bytes);
}

const zero = (bytes: Buffer): void => void bytes.fill(0);
const noise = (bytes: Buffer): void => {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + 7) % 251;
};

/** What a delivery finds of it: rows that decode, by id; undefined: their layout is gone. */
function readable(file: string): readonly number[] | undefined {
  const reader = openReader(file);
  const rows = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const known = reader.layout(rows[0]?.layout ?? 0);
  reader.close();
  if (!known) return undefined;
  expect(known).toEqual(layout);
  return rows.filter(({ payload }) => decodeReadout(layout, payload)).map(({ id }) => id);
}

/** Does what the table itself would refuse, as a damaged page does. */
function withoutConstraints(file: string, change: (db: Database.Database) => void): void {
  const edited = (sql: (before: string) => string): void => {
    const db = new Database(file);
    db.unsafeMode();
    db.pragma("writable_schema = ON");
    const before = db.prepare<[], string>("SELECT sql FROM sqlite_schema WHERE name = 'batch'").pluck().get() ?? "";
    original ??= before;
    db.prepare("UPDATE sqlite_schema SET sql = ? WHERE name = 'batch'").run(sql(before));
    db.close();
  };
  let original: string | undefined;
  edited((before) => before.replaceAll(/ NOT NULL| STRICT/g, ""));
  const db = new Database(file);
  change(db);
  db.close();
  edited((before) => original ?? before);
}

describe("a damaged page", () => {
  it("costs what was in it: every page of the file in turn", () => {
    using folder = temporaryFolder();
    const original = join(folder.path, "original.db");
    const epoch = fill(original);
    const whole = readFileSync(original);
    const stamps = stampsIn(original);
    expect(stamps).toHaveLength(1);
    const mark = readFileSync(`${original}.mark`);
    const pages = statSync(original).size / PAGE;
    let tried = 0;
    for (let page = 0; page < pages; page += page < 20 ? 1 : 9) {
      tried++;
      const file = join(folder.path, `${page}`, "buffer.db");
      const alarms: string[] = [];
      open(file).close();
      writeFileSync(file, whole);
      writeFileSync(`${file}.mark`, mark);
      damage(file, page, page % 2 === 0 ? zero : noise);
      using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
      expect(alarms).toHaveLength(1);
      const ids = readable(file);
      expect([page, buffer.epoch, ids !== undefined]).toEqual([page, epoch, true]);
      if (!ids) continue;
      const [a, b] = ["a", "b"].map((sink) => ledgerOf(buffer, sink));
      expect(a).toMatchObject({ accepted: ROWS * 8, delivered: TAKEN * 8, pending: ids.filter((id) => id > TAKEN).length * 8 });
      expect(b).toMatchObject({ accepted: ROWS * 10, delivered: 0, pending: ids.length * 10 });
      expect(b?.pending).toBeGreaterThan(0.9 * ROWS * 10);
      expectExact(buffer, file);
      expect([page, buffer.ledger().rejected, stampsIn(file)]).toEqual([page, { not_stored: REJECTED }, stamps]);
      const lost = (b?.dropped.damaged ?? 0) / 10;
      expect(lost).toBe(ROWS - ids.length);
      const reader = openReader(file);
      expect(reader.losses("b")).toEqual(lost === 0 ? [] : [expect.objectContaining({ reason: "damaged", values: lost * 10 })]);
      reader.close();
      expect(alarms[0]).toMatch(
        /it is kept as .*\.damaged-.*, and all (but \d+ )?values that were pending in it are delivered from a new one$/,
      );
    }
    expect(tried).toBeGreaterThan(20);
  });

  it("that holds what no column takes costs that row alone, and a delivery reads past it", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const epoch = fill(file);
    const [first = 0, second = 0] = [TAKEN + 100, TAKEN + 200];
    withoutConstraints(file, (db) => {
      db.prepare("UPDATE batch SET payload = NULL WHERE id = ?").run(first);
      db.prepare("UPDATE batch SET n = NULL, payload = 'text' WHERE id = ?").run(second);
    });
    const reader = openReader(file);
    const rows = reader.read(first, first + 1, 1000).concat(reader.read(second, second + 1, 1000));
    reader.close();
    expect(rows.map(({ id, count, payload }) => [id, count, payload.length])).toEqual([
      [first, 8, 0],
      [second, 0, 0],
    ]);
    const alarms: string[] = [];
    using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
    expect([alarms.length, buffer.epoch]).toEqual([1, epoch]);
    expect(ledgerOf(buffer, "b")).toMatchObject({ pending: (ROWS - 2) * 10, dropped: { damaged: 20 } });
    expectExact(buffer, file);
  });

  it("and another, and a cut end: what can be read goes on with its ids, and all is well at the next start", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const epoch = fill(file);
    const pages = statSync(file).size / PAGE;
    damage(file, Math.floor(pages / 2), zero);
    damage(file, Math.floor(pages / 3), noise);
    truncateSync(file, (pages - 3) * PAGE);
    const alarms: string[] = [];
    {
      using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
      expect([alarms.length, buffer.epoch]).toEqual([1, epoch]);
      expect(ledgerOf(buffer, "b")?.dropped.damaged).toBeGreaterThan(0);
      expectExact(buffer, file);
      expect(append(buffer, { ...batch(ROWS + 1), seq: ROWS + 1 })[0]?.id).toBeGreaterThan(ROWS);
      acknowledge(buffer, taken("b", [...(readable(file) ?? [])], 0));
      while (buffer.maintain());
      expectExact(buffer, file);
    }
    using again = open(file);
    expect(again.epoch).toBe(epoch);
    expect(ledgerOf(again, "b")?.pending).toBe(0);
  });
});
