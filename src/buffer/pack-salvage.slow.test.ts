import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { NewBatch } from "./buffer.ts";
import { encodeReadout, layoutKey } from "./codec.ts";
import { openReader } from "./reader.ts";
import { readAside } from "./recover.ts";
import { A, acknowledge, append, B, batch, expectExact, layout, ledgerOf, open, rowIds, taken } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { plainReadout } from "./testing/readouts.ts";

const PAGE = 4096;
const ROWS = 2000;
const TAKEN = 150;
const VALUES = 8;
/** About 130 rows a pack. */
const packing = { afterMs: 0, blockBytes: 10_000, sliceMs: 1000 };

/** A readout of numbers that no pack makes small: a page has one pack or two. */
const noisy = (seq: number): NewBatch => ({
  ...batch(seq),
  payload: encodeReadout(layout, {
    ...plainReadout(10, 0),
    readings: Array.from({ length: 10 }, (_, i) => ({ quality: "good", value: (Math.imul(seq * 10 + i, 0x9e3779b1) >>> 8) & 0xffff })),
  }).payload,
});

/** A backlog of two sinks, of which `a` has the first rows already: all but some of the newest are packed. Returns the epoch. */
function fill(file: string): string {
  using buffer = open(file, { packing });
  buffer.setSinks([A, B]);
  for (let seq = 1; seq <= ROWS; seq += 100) append(buffer, ...Array.from({ length: 100 }, (_, i) => noisy(seq + i)));
  const ids = Array.from({ length: TAKEN }, (_, i) => i + 1);
  acknowledge(buffer, taken("a", ids, TAKEN * VALUES), taken("b", ids.slice(0, 100), 100 * (VALUES + 2)));
  while (buffer.pack());
  while (buffer.maintain());
  expect(rowIds(file).length).toBeLessThan(200);
  return buffer.epoch;
}

/** Rows with their values, as a delivery finds them. */
function valuesIn(file: string): Map<number, string> {
  const reader = openReader(file);
  const rows = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  reader.close();
  return new Map(rows.filter(({ payload }) => payload.length > 0).map(({ id, payload }) => [id, Buffer.from(payload).toString("hex")]));
}

describe("a damaged page of a file with packs", () => {
  it("costs the packs in it: every page of the file in turn", () => {
    using folder = temporaryFolder();
    const original = join(folder.path, "original.db");
    const epoch = fill(original);
    const whole = readFileSync(original);
    const before = valuesIn(original);
    expect(before.size).toBe(ROWS - 100);
    let salvaged = 0;
    let lostInAll = 0;
    for (let page = 0; page < statSync(original).size / PAGE; page += page < 22 ? 1 : 4) {
      const file = join(folder.path, `${page}`, "buffer.db");
      mkdirSync(dirname(file));
      copyFileSync(`${original}.mark`, `${file}.mark`);
      const bytes = Buffer.from(whole);
      if (page % 2 === 0) bytes.fill(0, page * PAGE, (page + 1) * PAGE);
      else for (let i = 0; i < PAGE; i += 7) bytes[page * PAGE + i] = (bytes[page * PAGE + i] ?? 0) ^ 0x5a;
      writeFileSync(file, bytes);
      const alarms: string[] = [];
      using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
      expect(
        alarms.filter((text) => /lost|not delivered/.test(text)),
        `page ${page}`,
      ).toEqual([]);
      if (alarms.length > 0) salvaged++;
      expect(buffer.epoch, `page ${page}`).toBe(epoch);
      expectExact(buffer, file);
      const left = valuesIn(file);
      for (const [id, payload] of left) expect(payload, `row ${id} after page ${page}`).toBe(before.get(id));
      const lost = before.size - left.size;
      expect(ledgerOf(buffer, "b"), `page ${page}`).toMatchObject({ accepted: ROWS * (VALUES + 2), delivered: 100 * (VALUES + 2) });
      // A page has parts of three packs at most; what was not found is counted, or comes with an empty payload, which delivery counts.
      expect(lost, `page ${page}`).toBeLessThan(450);
      lostInAll += lost;
    }
    expect(salvaged).toBeGreaterThan(5);
    expect(lostInAll).toBeGreaterThan(0);
  });

  it("costs no more where the file is recovered later, with its tables and without", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    fill(file);
    const before = valuesIn(file);
    const recovered = (path: string): Set<string> => {
      const found = new Set<string>();
      for (const { batches, layouts } of readAside(path)) {
        if (batches.length > 0) expect(layouts).toEqual([{ key: layoutKey(layout), layout }]);
        for (const { payload } of batches) found.add(Buffer.from(payload).toString("hex"));
      }
      return found;
    };
    const all = new Set(before.values());
    expect(recovered(file)).toEqual(all);
    const bytes = readFileSync(file);
    bytes.fill(0, 0, PAGE);
    writeFileSync(file, bytes);
    const found = recovered(file);
    expect([...all].filter((payload) => !found.has(payload))).toEqual([]);
  });

  it("is seen where only the head of a pack has changed", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    fill(file);
    const db = new Database(file);
    db.prepare("UPDATE pack_data SET head = zeroblob(length(head)) WHERE id = (SELECT max(id) FROM pack_data)").run();
    db.close();
    const alarms: string[] = [];
    using buffer = open(file, { onAlarm: ({ text }) => alarms.push(text) });
    expect(alarms).toEqual([expect.stringMatching(/is damaged \(the head of pack \d+ has changed\).*all but \d+ values/)]);
    expect(ledgerOf(buffer, "a")?.dropped.damaged).toBeGreaterThan(0);
    expectExact(buffer, file);
  });
});
