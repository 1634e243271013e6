import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NewBatch } from "./buffer.ts";
import { decodeReadout } from "./codec.ts";
import { openReader } from "./reader.ts";
import { A, acknowledge, append, B, batch, expectExact, layout, layouts, ledgerOf, NOW, open, rowIds, taken } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { plainReadout } from "./testing/readouts.ts";

describe("buffer file", () => {
  it("keeps what was committed, with ids, positions and ledger, over a reopen", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "state", "buffer.db");
    let epoch = "";
    {
      using buffer = open(file);
      buffer.setSinks([A, B]);
      expect(append(buffer, batch(1), batch(2), batch(3)).map(({ id }) => id)).toEqual([1, 2, 3]);
      acknowledge(buffer, taken("a", [1, 2], 16));
      epoch = buffer.epoch;
    }
    using buffer = open(file);
    expect(buffer.epoch).toBe(epoch);
    expect(buffer.lastSeq("r1")).toBe(3);
    expect(buffer.lastSeq("r2")).toBe(0);
    expect(buffer.ledger().sinks).toEqual([
      { sink: "a", accepted: 24, delivered: 16, unconfirmed: 0, filtered: 0, pending: 8, dropped: {}, deliveredUnstored: 0 },
      { sink: "b", accepted: 30, delivered: 0, unconfirmed: 0, filtered: 0, pending: 30, dropped: {}, deliveredUnstored: 0 },
    ]);
    const reader = openReader(file);
    expect(reader.position("a")).toEqual({ older: [], live: 3 });
    expect(reader.position("b")).toEqual({ older: [], live: 1 });
    expect(reader.position("c")).toBeUndefined();
    expect([reader.epoch(), reader.place("a")?.nextId]).toEqual([epoch, 4]);
    const rows = reader.read(1, 4, 2 ** 20);
    expect(rows.map((row) => row.id)).toEqual([1, 2, 3]);
    expect(reader.layout(rows[0]?.layout ?? -1)).toEqual(layout);
    expect(rows.map((row) => decodeReadout(layout, row.payload))).toEqual([1, 2, 3].map((seq) => plainReadout(10, seq)));
    expect(reader.read(2, 4, 1).map((row) => row.id)).toEqual([2]);
    expect(reader.read(9, 20, 1)).toEqual([]);
    reader.close();
    expectExact(buffer, file);
  });

  it("stores a batch once that is posted again after a crash between commit and answer", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    {
      using buffer = open(file);
      buffer.setSinks([A]);
      append(buffer, batch(1), batch(2));
    }
    using buffer = open(file);
    expect(append(buffer, batch(1), batch(2), batch(3)).map(({ id }) => id)).toEqual([3]);
    expect(append(buffer, batch(3))).toEqual([]);
    expect(ledgerOf(buffer, "a")?.accepted).toBe(24);
    expect(buffer.commit({ run: "r2", layouts, batches: [batch(1)], acknowledgements: [] }).map(({ id }) => id)).toEqual([4]);
    expect(rowIds(file)).toEqual([1, 2, 3, 4]);
  });

  it("deletes a row once no sink waits for it, and uses no id again", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    {
      using buffer = open(file);
      buffer.setSinks([A, B]);
      append(buffer, batch(1), batch(2), batch(3));
      acknowledge(buffer, taken("a", [1, 2, 3], 24));
      expect(rowIds(file)).toEqual([1, 2, 3]);
      acknowledge(buffer, taken("b", [3, 1], 20));
      expect(rowIds(file)).toEqual([2]);
      acknowledge(buffer, taken("b", [2], 10));
      expect(rowIds(file)).toEqual([]);
    }
    using buffer = open(file);
    expect(append(buffer, batch(4)).map(({ id }) => id)).toEqual([4]);
    expectExact(buffer, file);
  });

  it("keeps the ledger exact whatever is acknowledged: twice, unknown, not given yet, too many values", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, batch(1), batch(2));
    acknowledge(buffer, taken("a", [2, 2], 8), taken("a", [2], 8), taken("nobody", [1], 8), taken("a", [3, 99], 16));
    expect(ledgerOf(buffer, "a")).toMatchObject({ delivered: 8, pending: 8 });
    append(buffer, batch(3));
    expect(ledgerOf(buffer, "a")).toMatchObject({ delivered: 8, pending: 16 });
    acknowledge(buffer, { sink: "a", ids: [1, 3], delivered: 1000, dropped: { refused: 3 } });
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 24, delivered: 21, pending: 0, dropped: { refused: 3 } });
    expectExact(buffer, file);
  });

  it("stays exact when acknowledgements leave more ranges than a position holds", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, ...Array.from({ length: 80 }, (_, i) => batch(i + 1)));
    acknowledge(
      buffer,
      taken(
        "a",
        Array.from({ length: 40 }, (_, i) => 2 * i + 1),
        320,
      ),
    );
    expectExact(buffer, file);
    acknowledge(buffer, taken("a", rowIds(file), 0));
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 640, delivered: 640, pending: 0 });
    expect(rowIds(file)).toEqual([]);
  });

  it("counts what a removed sink had pending, frees its rows, and starts a new one at the live edge", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, batch(1), batch(2));
    acknowledge(buffer, taken("a", [1], 8));
    buffer.setSinks([B]);
    expect(ledgerOf(buffer, "a")).toEqual({
      sink: "a",
      accepted: 16,
      delivered: 8,
      unconfirmed: 0,
      filtered: 0,
      pending: 0,
      dropped: { sink_removed: 8 },
      deliveredUnstored: 0,
    });
    expect(ledgerOf(buffer, "b")).toEqual({
      sink: "b",
      accepted: 0,
      delivered: 0,
      unconfirmed: 0,
      filtered: 0,
      pending: 0,
      dropped: {},
      deliveredUnstored: 0,
    });
    expect(rowIds(file)).toEqual([]);
    append(buffer, batch(3));
    buffer.setSinks([A, B]);
    append(buffer, batch(4));
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 24, pending: 8 });
    expect(ledgerOf(buffer, "b")).toMatchObject({ accepted: 20, pending: 20 });
    expectExact(buffer, file);
  });

  it("stores nothing without a sink, answers all the same, and gives no id of such a batch to a stored one", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    let last = 0;
    {
      using buffer = open(file);
      append(buffer, batch(1), batch(2));
      const written = statSync(`${file}-wal`).size;
      for (let seq = 3; seq < 500; seq++) last = append(buffer, batch(seq)).at(-1)?.id ?? 0;
      expect(statSync(`${file}-wal`).size).toBe(written);
      expect(buffer.lastSeq("r1")).toBe(499);
    }
    using buffer = open(file);
    expect(rowIds(file)).toEqual([]);
    buffer.setSinks([A]);
    const [first] = append(buffer, batch(500));
    expect(first?.id).toBeGreaterThan(last);
    expect(rowIds(file)).toEqual([first?.id]);
    expectExact(buffer, file);
  });

  it("leaves everything as it was when a commit fails", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, batch(1));
    const before = buffer.ledger();
    expect(() => append(buffer, batch(2), { ...batch(3), layoutKey: "unknown" })).toThrow(
      "batch 3 names the layout unknown, which has to be sent before it",
    );
    expect(buffer.ledger()).toEqual(before);
    expect(buffer.lastSeq("r1")).toBe(1);
    expect(append(buffer, batch(2)).map(({ id }) => id)).toEqual([2]);
    expectExact(buffer, file);
  });

  it("drops the oldest when full and counts it for each sink that waited", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const maxBytes = 400_000;
    using buffer = open(file, { maxBytes });
    buffer.setSinks([A, B]);
    const large = (seq: number): NewBatch => ({ ...batch(seq), payload: new Uint8Array(2000).fill(seq) });
    for (let seq = 1; seq <= 1000; seq += 10) {
      append(buffer, ...Array.from({ length: 10 }, (_, i) => large(seq + i)));
      if (seq === 11) acknowledge(buffer, taken("b", [1, 2, 3], 30));
    }
    expect(buffer.bytes()).toBeLessThanOrEqual(maxBytes);
    const kept = rowIds(file);
    expect(kept.at(-1)).toBe(1000);
    expect(kept.length).toBeGreaterThan(30);
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 8000, delivered: 0, dropped: { buffer_full: 8000 - 8 * kept.length } });
    expect(ledgerOf(buffer, "b")).toMatchObject({
      accepted: 10_000,
      delivered: 30,
      dropped: { buffer_full: 10_000 - 30 - 10 * kept.length },
    });
    expectExact(buffer, file);
  });

  it("drops what is too old, in bounded steps", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    let monotonicMs = 0;
    using buffer = open(file, { maxAgeMs: 2000, now: () => NOW + monotonicMs, monotonicMs: () => monotonicMs });
    buffer.setSinks([A]);
    for (; monotonicMs < 2000; monotonicMs += 500) {
      append(buffer, ...Array.from({ length: 50 }, (_, i) => batch(monotonicMs / 10 + i + 1)));
      expect(buffer.maintain()).toBe(false);
    }
    monotonicMs = 3001;
    let steps = 0;
    while (buffer.maintain()) steps++;
    expect(steps).toBeGreaterThan(1);
    expect(rowIds(file)[0]).toBe(151);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 400, dropped: { too_old: 1200 } });
    expectExact(buffer, file);
  });

  it("keeps to bounds that change while it is open, in bounded steps", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    let monotonicMs = 0;
    using buffer = open(file, { monotonicMs: () => monotonicMs });
    buffer.setSinks([A]);
    const large = (seq: number): NewBatch => ({ ...batch(seq, 8, 2, NOW + seq), payload: new Uint8Array(2000).fill(seq) });
    for (let seq = 1; seq <= 1000; seq += 10) append(buffer, ...Array.from({ length: 10 }, (_, i) => large(seq + i)));
    expect(buffer.bytes()).toBeGreaterThan(1_000_000);
    buffer.setBounds({ maxBytes: 400_000, maxAgeMs: 1e12 });
    let steps = 0;
    while (buffer.maintain()) steps++;
    expect(steps).toBeGreaterThan(1);
    expect(buffer.bytes()).toBeLessThanOrEqual(400_000);
    const kept = rowIds(file).length;
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 8 * kept, dropped: { buffer_full: 8000 - 8 * kept } });
    monotonicMs = 1500;
    append(buffer, ...Array.from({ length: 10 }, (_, i) => large(1001 + i)));
    buffer.setBounds({ maxBytes: 2 ** 30, maxAgeMs: 2000 });
    while (buffer.maintain());
    monotonicMs = 2000;
    while (buffer.maintain());
    expect(rowIds(file)[0]).toBe(1001);
    for (let seq = 1011; seq <= 1400; seq += 10) append(buffer, ...Array.from({ length: 10 }, (_, i) => large(seq + i)));
    expect(buffer.bytes()).toBeGreaterThan(400_000);
    expectExact(buffer, file);
  });

  it("gives a row whose bytes have changed as one that decodes to nothing", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, batch(1), batch(2));
    const db = new Database(file);
    db.exec("UPDATE batch SET n = 7 WHERE id = 1");
    db.close();
    const reader = openReader(file);
    const [first, second] = reader.read(0, 10, 2 ** 20);
    expect(() => decodeReadout(layout, first?.payload ?? new Uint8Array(1))).toThrow("damaged payload: 1 bytes expected, 0 left");
    expect(decodeReadout(layout, second?.payload ?? new Uint8Array())).toEqual(plainReadout(10, 2));
    reader.close();
  });
});

describe("buffer file against a model", () => {
  interface ModelSink {
    pending: Set<number>;
    delivered: number;
    dropped: number;
  }
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ append: fc.array(fc.record({ n: fc.nat(5), x: fc.nat(3) }), { maxLength: 6 }) }) },
    { weight: 4, arbitrary: fc.record({ acknowledge: fc.constantFrom("a", "b"), picks: fc.array(fc.nat(40), { maxLength: 8 }) }) },
    { weight: 1, arbitrary: fc.constant("reopen" as const) },
    { weight: 1, arbitrary: fc.record({ sinks: fc.subarray([A, B]) }) },
  );

  it("does what sets of ids do: append, acknowledge, reopen, sinks come and go", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        using folder = temporaryFolder();
        const file = join(folder.path, "buffer.db");
        const batches: { n: number; x: number }[] = [];
        const sinks = new Map<string, ModelSink>();
        const worth = (sink: string, id: number): number => (batches[id]?.n ?? 0) + (sink === "b" ? (batches[id]?.x ?? 0) : 0);
        const idOf = new Map<number, number>();
        let buffer = open(file);
        let seq = 0;
        for (const s of steps) {
          if (s === "reopen") {
            buffer.close();
            buffer = open(file);
          } else if ("append" in s) {
            const firstSeq = seq;
            const done = append(buffer, ...s.append.map(({ n, x }) => batch(++seq, n, x)));
            expect(done).toHaveLength(s.append.length);
            done.forEach((row, i) => {
              batches[firstSeq + i] = s.append[i] ?? { n: 0, x: 0 };
              idOf.set(firstSeq + i, row.id);
              for (const sink of sinks.values()) sink.pending.add(firstSeq + i);
            });
          } else if ("acknowledge" in s) {
            const sink = sinks.get(s.acknowledge);
            acknowledge(
              buffer,
              taken(
                s.acknowledge,
                s.picks.map((pick) => idOf.get(pick) ?? 1_000_000 + pick),
                0,
              ),
            );
            for (const pick of s.picks) if (sink?.pending.delete(pick)) sink.delivered += worth(s.acknowledge, pick);
          } else {
            buffer.setSinks(s.sinks);
            for (const id of sinks.keys()) if (!s.sinks.some((sink) => sink.id === id)) sinks.delete(id);
            for (const { id } of s.sinks) {
              const before = ledgerOf(buffer, id);
              if (!sinks.has(id))
                sinks.set(id, { pending: new Set(), delivered: before?.delivered ?? 0, dropped: before?.dropped.sink_removed ?? 0 });
            }
          }
          for (const [id, sink] of sinks) {
            const pending = [...sink.pending].reduce((sum, index) => sum + worth(id, index), 0);
            expect(ledgerOf(buffer, id)).toMatchObject({
              delivered: sink.delivered,
              pending,
              accepted: sink.delivered + pending + sink.dropped,
            });
          }
          const waitedFor = new Set([...sinks.values()].flatMap((sink) => [...sink.pending].map((index) => idOf.get(index))));
          expect(rowIds(file)).toEqual([...waitedFor].sort((a, b) => Number(a) - Number(b)));
          expectExact(buffer, file);
        }
        buffer.close();
      }),
      { numRuns: 25 },
    );
  });
});
