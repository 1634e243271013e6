import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { openReader } from "./reader.ts";
import { A, acknowledge, append, batch, expectExact, ledgerOf, open, rowIds, taken } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const VALUES = 8;
/** About 120 rows of `batch`. */
const BLOCK = 10_000;

const packsIn = (file: string): { id: number; last: number; rows: number }[] => {
  const db = new Database(file, { readonly: true });
  const rows = db.prepare<[], { id: number; last: number; rows: number }>("SELECT id, last, rows FROM pack ORDER BY id").all();
  db.close();
  return rows;
};
const idsOf = (file: string): number[] => {
  const reader = openReader(file);
  const rows = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  reader.close();
  return rows.filter(({ payload }) => payload.length > 0).map(({ id }) => id);
};
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const fill = (buffer: ReturnType<typeof open>, from: number, to: number): void =>
  void append(buffer, ...range(from, to).map((seq) => batch(seq)));

it("packs what has waited for ten seconds, and while it waits what comes", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  let atMs = 0;
  using buffer = open(file, { monotonicMs: () => atMs, packing: { blockBytes: BLOCK } });
  buffer.setSinks([A]);
  for (let seq = 1; seq <= 900; seq += 100, atMs += 1000) {
    fill(buffer, seq, seq + 100);
    while (buffer.pack());
  }
  expect(packsIn(file)).toEqual([]);
  for (let seq = 901; seq <= 2000; seq += 100, atMs += 1000) {
    fill(buffer, seq, seq + 100);
    while (buffer.pack());
  }
  const packs = packsIn(file);
  expect(packs.length).toBeGreaterThan(5);
  expect(packs.map(({ id, last, rows }) => last - id + 1 - rows)).toEqual(packs.map(() => 0));
  expect(rowIds(file).length).toBeLessThan(200);
  expect(idsOf(file)).toEqual(range(1, 2001));
  expectExact(buffer, file);
});

it("packs nothing where the sink takes what comes, and knows by a sample how small it would be", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  let atMs = 0;
  using buffer = open(file, { monotonicMs: () => atMs, packing: { afterMs: 0, blockBytes: BLOCK } });
  buffer.setSinks([A]);
  for (let seq = 1; seq <= 1000; seq += 50, atMs += 4000) {
    if (atMs <= 60_000) expect(buffer.fill().packedPart).toBeUndefined();
    fill(buffer, seq, seq + 50);
    acknowledge(buffer, taken("a", range(seq, seq + 50), 50 * VALUES));
    while (buffer.pack());
  }
  expect(packsIn(file)).toEqual([]);
  expect(buffer.fill().packedPart).toBeGreaterThan(0);
  expect(buffer.fill().packedPart).toBeLessThan(0.5);
});

it("leaves a damaged row what it is, and packs those around it", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  using buffer = open(file, { packing: { afterMs: 0, blockBytes: BLOCK } });
  buffer.setSinks([A]);
  fill(buffer, 1, 1001);
  const db = new Database(file);
  db.prepare("UPDATE batch SET n = n + 1 WHERE id = 500").run();
  db.close();
  while (buffer.pack());
  expect(packsIn(file).length).toBeGreaterThan(3);
  expect(packsIn(file).some(({ id, last }) => id <= 500 && last >= 500)).toBe(false);
  expect(rowIds(file)).toContain(500);
  expect(idsOf(file)).toEqual(range(1, 1001).filter((id) => id !== 500));
});

it("gives a pack up of which rows were taken while it was made", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  using buffer = open(file, { packing: { afterMs: 0, blockBytes: 60_000, sliceMs: 0 } });
  buffer.setSinks([A]);
  fill(buffer, 1, 1001);
  // It has read its rows then.
  for (let slice = 0; slice < 2; slice++) expect(buffer.pack()).toBe(true);
  acknowledge(buffer, taken("a", range(10, 20), 10 * VALUES));
  expect(packsIn(file)).toEqual([]);
  for (let slice = 0; slice < 60; slice++) buffer.pack();
  expect(idsOf(file)).toEqual([...range(1, 10), ...range(20, 1001)]);
  expect(packsIn(file).length).toBeGreaterThan(0);
  expectExact(buffer, file);
});

it("drops the oldest pack as a whole where the file is full, and counts each of its rows", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  using buffer = open(file, { maxBytes: 2 ** 20, packing: { afterMs: 0, blockBytes: 65_536 } });
  buffer.setSinks([A]);
  const noise = (seq: number): Uint8Array =>
    Uint8Array.from({ length: 2000 }, (_, i) => {
      const mixed = Math.imul((seq * 2000 + i) ^ ((seq * 2000 + i) >>> 7), 0x45d9f3b);
      return Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 24;
    });
  for (let seq = 1; seq <= 800; seq += 20) {
    append(buffer, ...range(seq, seq + 20).map((n) => ({ ...batch(n), payload: noise(n) })));
    while (buffer.pack());
  }
  const ids = idsOf(file);
  const dropped = ledgerOf(buffer, "a")?.dropped.buffer_full ?? 0;
  expect(ids).toEqual(range(801 - ids.length, 801));
  expect(dropped).toBe((800 - ids.length) * VALUES);
  expect(dropped).toBeGreaterThan(0);
  expect(packsIn(file).length).toBeGreaterThan(2);
  expectExact(buffer, file);
});
