import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BufferFile } from "./buffer-file.ts";
import { openReader } from "./reader.ts";
import { A, acknowledge, append, B, batch, expectExact, ledgerOf, NOW, open, rowIds, taken } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;

/** Clocks that the test moves: together, or the wall's alone. */
function clocks() {
  const time = { now: NOW, monotonic: 0 };
  return {
    options: { keepRemovedMs: DAY, maxAgeMs: 1e15, now: () => time.now, monotonicMs: () => time.monotonic },
    pass(ms: number): void {
      time.now += ms;
      time.monotonic += ms;
    },
    step(ms: number): void {
      time.now += ms;
    },
  };
}
const maintain = (buffer: BufferFile): void => {
  while (buffer.maintain());
};

describe("a sink that is removed", () => {
  it("keeps what it had pending, counted as such, and takes it up again when it returns", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file, clocks().options);
    buffer.setSinks([A]);
    append(buffer, batch(1), batch(2), batch(3));
    acknowledge(buffer, taken("a", [2], 8));
    buffer.setSinks([]);
    append(buffer, batch(4));
    maintain(buffer);
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 24, delivered: 8, pending: 16, dropped: {}, keptUntil: NOW + DAY });
    expectExact(buffer, file);
    // What was under way when it was removed.
    acknowledge(buffer, taken("a", [1], 8));
    expect(ledgerOf(buffer, "a")).toMatchObject({ delivered: 16, pending: 8 });
    buffer.setSinks([A]);
    append(buffer, batch(5));
    const { keptUntil, ...ledger } = ledgerOf(buffer, "a") ?? {};
    expect(keptUntil).toBeUndefined();
    expect(ledger).toMatchObject({ accepted: 32, delivered: 16, pending: 16, dropped: {} });
    const reader = openReader(file);
    const position = reader.position("a");
    const rows = (position?.older ?? []).flatMap(({ from, to }) => reader.read(from, to, 2 ** 20));
    reader.close();
    expect(rows.map(({ id }) => id)).toEqual([3]);
    expectExact(buffer, file);
  });

  it("is given up after its time, by the time that has passed and not by the wall clock, and its rows go", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const clock = clocks();
    using buffer = open(file, clock.options);
    buffer.setSinks([A]);
    append(buffer, batch(1));
    buffer.setSinks([]);
    clock.step(20 * DAY);
    maintain(buffer);
    clock.step(-40 * DAY);
    clock.pass(DAY - 1000);
    maintain(buffer);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 8 });
    clock.pass(2000);
    maintain(buffer);
    expect(ledgerOf(buffer, "a")).toEqual({
      sink: "a",
      accepted: 8,
      delivered: 0,
      pending: 0,
      dropped: { sink_removed: 8 },
      deliveredUnstored: 0,
      unconfirmed: 0,
      filtered: 0,
    });
    expect(rowIds(file)).toEqual([]);
    buffer.setSinks([A]);
    append(buffer, batch(2));
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 16, pending: 8 });
    expectExact(buffer, file);
  });

  it("counts its time over restarts, deaths and a clock that is wrong by years at a start", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const clock = clocks();
    const until = (): number => {
      using buffer = open(file, clock.options);
      maintain(buffer);
      return (ledgerOf(buffer, "a")?.keptUntil ?? 0) - NOW;
    };
    {
      using buffer = open(file, clock.options);
      buffer.setSinks([A]);
      append(buffer, batch(1));
      buffer.setSinks([]);
      clock.pass(2 * HOUR);
    }
    expect(until()).toBe(DAY);
    clock.pass(3 * HOUR);
    expect(until()).toBe(DAY);
    // The time while it was closed is not known where the clock went back: nothing of it is counted.
    clock.step(-10 * HOUR);
    expect(until()).toBe(DAY - 10 * HOUR);
    clock.step(10 * 365 * DAY);
    {
      using buffer = open(file, clock.options);
      maintain(buffer);
      expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 8, dropped: {} });
      clock.pass(HOUR + 1);
      maintain(buffer);
      expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 0, dropped: { sink_removed: 8 } });
    }
  });

  it("is the first to go when room is needed, oldest first, and costs no other sink a value before", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file, { ...clocks().options, maxBytes: 2 ** 20 });
    const large = (seq: number) => ({ ...batch(seq), payload: new Uint8Array(8000) });
    let seq = 0;
    buffer.setSinks([A]);
    append(buffer, ...Array.from({ length: 40 }, () => large(++seq)));
    buffer.setSinks([A, B]);
    const shared = append(buffer, large(++seq)).map(({ id }) => id);
    buffer.setSinks([B]);
    while ((ledgerOf(buffer, "a")?.dropped.sink_removed ?? 0) === 0) append(buffer, large(++seq));
    expect(ledgerOf(buffer, "b")).toMatchObject({ dropped: {} });
    expectExact(buffer, file);
    expect(rowIds(file)).toContain(shared[0]);
    while (Object.keys(ledgerOf(buffer, "b")?.dropped ?? {}).length === 0) append(buffer, large(++seq));
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 328, pending: 0, dropped: { sink_removed: 328 } });
    expect(ledgerOf(buffer, "b")).toMatchObject({ dropped: { buffer_full: expect.any(Number) } });
    expectExact(buffer, file);
    expect(buffer.bytes()).toBeLessThanOrEqual(2 ** 20);
  });

  it("is told of what went meanwhile when it returns", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file, { ...clocks().options, maxBytes: 2 ** 20 });
    const large = (seq: number) => ({ ...batch(seq), payload: new Uint8Array(8000) });
    let seq = 0;
    buffer.setSinks([A]);
    append(buffer, ...Array.from({ length: 70 }, () => large(++seq)));
    buffer.setSinks([B]);
    while ((ledgerOf(buffer, "a")?.dropped.sink_removed ?? 0) === 0) append(buffer, large(++seq));
    buffer.setSinks([A, B]);
    const reader = openReader(file);
    const losses = reader.losses("a");
    reader.close();
    expect(losses).toEqual([expect.objectContaining({ reason: "buffer_full", values: ledgerOf(buffer, "a")?.dropped.sink_removed })]);
    expect(ledgerOf(buffer, "a")?.pending).toBeGreaterThan(0);
  });

  it("starts over where it returns as one that takes other values", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file, clocks().options);
    buffer.setSinks([A]);
    append(buffer, batch(1));
    buffer.setSinks([]);
    buffer.setSinks([{ ...A, takesExploration: true }]);
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 8, pending: 0, dropped: { sink_removed: 8 } });
    expect(rowIds(file)).toEqual([]);
  });

  it("has an exact ledger also where it came and went so often that ranges are joined over what was read meanwhile", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    using buffer = open(file, clocks().options);
    let seq = 0;
    for (let n = 0; n < 30; n++) {
      buffer.setSinks([A, B]);
      append(buffer, batch(++seq));
      buffer.setSinks([B]);
      append(buffer, batch(++seq));
    }
    buffer.setSinks([A, B]);
    expect(ledgerOf(buffer, "a")).toMatchObject({ accepted: 240, pending: 240 });
    acknowledge(buffer, taken("a", [1], 8));
    expectExact(buffer, file);
    expect(ledgerOf(buffer, "a")?.accepted).toBeGreaterThan(240);
    acknowledge(buffer, taken("a", rowIds(file), 0));
    expectExact(buffer, file);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 0, dropped: {} });
  });

  it("stays bounded in number, the ones removed for longest go first", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const clock = clocks();
    using buffer = open(file, clock.options);
    let seq = 0;
    for (let n = 0; n < 120; n++) {
      buffer.setSinks([{ id: `s${n}`, takesExploration: false }]);
      append(buffer, batch(++seq));
      clock.pass(1000);
    }
    buffer.setSinks([]);
    const kept = buffer.ledger().sinks.filter(({ keptUntil }) => keptUntil !== undefined);
    expect(kept.map(({ sink }) => sink)).toEqual(Array.from({ length: 100 }, (_, i) => `s${i + 20}`));
    maintain(buffer);
    expect(rowIds(file)).toHaveLength(100);
    expectExact(buffer, file);
  });
});

describe("sinks that come and go", () => {
  type Step =
    | "reopen"
    | { readonly append: number }
    | { readonly sinks: readonly (typeof A)[] }
    | { readonly acknowledge: string; readonly picks: readonly number[] }
    | { readonly pass: number };
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 3, arbitrary: fc.record({ sinks: fc.subarray([A, B]) }) },
    {
      weight: 4,
      arbitrary: fc.record({ acknowledge: fc.constantFrom("a", "b"), picks: fc.array(fc.nat(120), { minLength: 1, maxLength: 12 }) }),
    },
    { weight: 1, arbitrary: fc.record({ pass: fc.constantFrom(HOUR, 13 * HOUR, 25 * HOUR) }) },
    { weight: 1, arbitrary: fc.constant("reopen" as const) },
  );

  it("lose nothing within the time, and the ledger is exact at every step", () => {
    let returned = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
        using folder = temporaryFolder();
        const file = join(folder.path, "buffer.db");
        const clock = clocks();
        let buffer = open(file, clock.options);
        let seq = 0;
        const ids: number[] = [];
        /** What may not be lost: accepted for a sink, not acknowledged, its time not over. */
        const waiting = new Map([A, B].map(({ id }) => [id, new Set<number>()]));
        let active: readonly string[] = [];
        for (const s of steps) {
          if (s === "reopen") {
            buffer.close();
            buffer = open(file, clock.options);
          } else if ("append" in s) {
            const done = append(buffer, ...Array.from({ length: s.append }, () => batch(++seq, 3, 1)));
            ids.push(...done.map(({ id }) => id));
            for (const id of active) for (const row of done) waiting.get(id)?.add(row.id);
          } else if ("acknowledge" in s) {
            const picked = s.picks.flatMap((pick) => ids.at(-1 - pick) ?? []);
            acknowledge(buffer, taken(s.acknowledge, picked, 0));
            for (const id of picked) waiting.get(s.acknowledge)?.delete(id);
          } else if ("pass" in s) {
            clock.pass(s.pass);
            maintain(buffer);
            for (const [id, rows] of waiting) if (!active.includes(id) && (ledgerOf(buffer, id)?.pending ?? 0) === 0) rows.clear();
          } else {
            returned += s.sinks.filter(({ id }) => !active.includes(id) && (waiting.get(id)?.size ?? 0) > 0).length;
            buffer.setSinks(s.sinks);
            active = s.sinks.map(({ id }) => id);
          }
          expectExact(buffer, file);
          const stored = new Set(rowIds(file));
          for (const [id, rows] of waiting) {
            for (const row of rows) expect(stored).toContain(row);
            expect(ledgerOf(buffer, id)?.pending ?? 0).toBeGreaterThanOrEqual(rows.size * (id === "b" ? 4 : 3));
          }
        }
        buffer.close();
      }),
      { numRuns: 40 },
    );
    expect(returned).toBeGreaterThan(0);
  }, 120_000);
});
