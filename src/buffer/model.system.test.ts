import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { BufferFile } from "./buffer-file.ts";
import { encodeReadout, layoutKey } from "./codec.ts";
import { openBuffer } from "./open.ts";
import { openReader } from "./reader.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { ledgerFaults } from "./testing/ledger.ts";
import { plainLayout, plainReadout } from "./testing/readouts.ts";

const layout = plainLayout(3);
const layouts = [{ key: layoutKey(layout), layout }];
const SINK = { id: "a", takesExploration: false };

/** What the buffer should hold, as an array: rows in order of their ids. */
interface Model {
  rows: { id: number; values: number; atMs: number; time: number; payload: Uint8Array }[];
  seq: number;
  accepted: number;
  delivered: number;
  unconfirmed: number;
  filtered: number;
  buffer_full: number;
  too_old: number;
  nowMs: number;
  monotonicMs: number;
  maxBytes: number;
  maxAgeMs: number;
}
interface Real {
  readonly file: string;
  buffer: BufferFile;
}
type Command = fc.Command<Model, Real>;

const open = (file: string, model: Model): BufferFile =>
  openBuffer(file, {
    maxBytes: model.maxBytes,
    maxAgeMs: model.maxAgeMs,
    now: () => model.nowMs,
    monotonicMs: () => model.monotonicMs,
    packing: { afterMs: 0, blockBytes: 4000, sliceMs: 0 },
    onAlarm: ({ text }) => {
      throw new Error(text);
    },
  });

/** Over all runs: a test that never drops shows nothing of dropping. */
const seen = { buffer_full: 0, too_old: 0, packed: 0 };

/** Rows that are in packs at this moment. */
function packedRows(file: string): number {
  const db = new Database(file, { readonly: true });
  const rows = db.prepare<[], number>("SELECT total(rows) FROM pack").pluck().get() ?? 0;
  db.close();
  return rows;
}

/** Takes what was dropped out of the model: it has to be the oldest, for a reason that holds, and counted to the value. */
function settle(model: Model, real: Real): void {
  const reader = openReader(real.file);
  const read = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const ids = new Set(read.map(({ id }) => id));
  const losses = reader.losses("a");
  const gone = model.rows.filter(({ id }) => !ids.has(id));
  const firstKept = Math.min(...ids);
  for (const { id } of gone) expect(id).toBeLessThan(firstKept);
  model.rows = model.rows.filter(({ id }) => ids.has(id));
  expect(read.map(({ id, count, time, payload }) => [id, count, time, Buffer.from(payload)])).toEqual(
    model.rows.map(({ id, values, time, payload }) => [id, values, time, Buffer.from(payload)]),
  );
  // A part of them, by one read after the other.
  const [from, to] = [read[read.length >> 2]?.id ?? 0, read[(3 * read.length) >> 2]?.id ?? 0];
  const pieces: number[] = [];
  for (let at = from; at < to; ) {
    const part = reader.read(at, to, 3000).map(({ id }) => id);
    if (part.length === 0) break;
    pieces.push(...part);
    at = (part.at(-1) ?? to) + 1;
  }
  expect(pieces).toEqual([...ids].filter((id) => id >= from && id < to));
  const [ledger] = real.buffer.ledger().sinks;
  const dropped = { buffer_full: ledger?.dropped.buffer_full ?? 0, too_old: ledger?.dropped.too_old ?? 0 };
  const newly = dropped.buffer_full - model.buffer_full + dropped.too_old - model.too_old;
  expect(newly).toBe(gone.reduce((sum, { values }) => sum + values, 0));
  if (dropped.too_old > model.too_old) expect(gone.some(({ atMs }) => atMs <= model.monotonicMs - model.maxAgeMs)).toBe(true);
  for (const reason of ["buffer_full", "too_old"] as const) seen[reason] += dropped[reason] - model[reason];
  Object.assign(model, dropped);
  const pending = model.rows.reduce((sum, { values }) => sum + values, 0);
  expect(ledger).toMatchObject({
    accepted: model.accepted,
    delivered: model.delivered,
    unconfirmed: model.unconfirmed,
    filtered: model.filtered,
    pending,
  });
  expect(ledgerFaults(real.buffer, real.file, () => false)).toEqual([]);
  reader.close();
  // Nothing was told, so the losses hold all that was dropped.
  for (const reason of ["buffer_full", "too_old"] as const)
    expect(losses.find((loss) => loss.reason === reason)?.values ?? 0).toBe(dropped[reason]);
  expect(real.buffer.bytes()).toBeLessThanOrEqual(model.maxBytes);
}

const command = (name: string, run: (model: Model, real: Real) => void): Command => ({
  check: () => true,
  run(model, real) {
    run(model, real);
    settle(model, real);
  },
  toString: () => name,
});

const append = fc.array(fc.record({ values: fc.nat(5), bytes: fc.nat(9000) }), { minLength: 6, maxLength: 12 }).map((batches) =>
  command(`append ${JSON.stringify(batches)}`, (model, { buffer }) => {
    const atMs = model.monotonicMs;
    const committed = buffer.commit({
      run: "r",
      layouts,
      batches: batches.map(({ values, bytes }) => ({
        seq: ++model.seq,
        layoutKey: layoutKey(layout),
        time: model.nowMs,
        count: values,
        explorationCount: 1,
        // Half of them as readouts are.
        payload:
          bytes % 2 === 0
            ? new Uint8Array(bytes).fill(model.seq)
            : encodeReadout(layout, { ...plainReadout(3, model.seq), time: model.nowMs + (bytes % 5) }).payload,
      })),
      acknowledgements: [],
    });
    expect(committed).toHaveLength(batches.length);
    for (const { id, count, time, payload } of committed) {
      expect(id).toBeGreaterThan(model.rows.at(-1)?.id ?? 0);
      model.rows.push({ id, values: count, atMs, time, payload });
      model.accepted += count;
    }
  }),
);
const acknowledge = fc.tuple(fc.array(fc.nat(30), { maxLength: 8 }), fc.boolean(), fc.nat(9)).map(([picks, isUnconfirmed, filtered]) =>
  command(`acknowledge ${picks.join()}${isUnconfirmed ? " unconfirmed" : ""} filtered ${filtered}`, (model, { buffer }) => {
    // Also such as are there no longer, or not yet.
    const ids = picks.map((pick) => model.rows[pick]?.id ?? 10_000_000 + pick);
    const taken = model.rows.filter(({ id }) => ids.includes(id));
    model.rows = model.rows.filter(({ id }) => !ids.includes(id));
    const all = taken.reduce((sum, { values }) => sum + values, 0);
    const left = Math.min(filtered, all);
    model.filtered += left;
    model[isUnconfirmed ? "unconfirmed" : "delivered"] += all - left;
    const acknowledgement = { sink: "a", ids, delivered: 0, filtered, dropped: {}, ...(isUnconfirmed && { isUnconfirmed }) };
    buffer.commit({ run: "r", layouts: [], batches: [], acknowledgements: [acknowledgement] });
  }),
);
const trim = fc.constant(
  command("trim", (_, { buffer }) => {
    while (buffer.maintain());
  }),
);
const pack = fc.integer({ min: 1, max: 60 }).map((steps) =>
  command(`pack ${steps}`, (_, { buffer, file }) => {
    for (let step = 0; step < steps; step++) buffer.pack();
    seen.packed += packedRows(file);
  }),
);
const clock = fc.integer({ min: -5000, max: 5000 }).map((ms) =>
  command(`clock ${ms}`, (model) => {
    model.nowMs += ms;
  }),
);
const pass = fc.integer({ min: 1, max: 70_000 }).map((ms) =>
  command(`pass ${ms}`, (model) => {
    model.nowMs += ms;
    model.monotonicMs += ms;
  }),
);
const reopen = fc.record({ maxBytes: fc.constantFrom(2 ** 20, 2 ** 21), maxAgeMs: fc.constantFrom(1000, 4000, 1e9) }).map((limits) =>
  command(`reopen ${JSON.stringify(limits)}`, (model, real) => {
    real.buffer.close();
    Object.assign(model, limits);
    real.buffer = open(real.file, model);
    while (real.buffer.maintain());
  }),
);

it("holds what an array holds: append, pack, acknowledge, trim, reopen with other bounds, time passes, the clock is set", () => {
  fc.assert(
    fc.property(
      fc.commands([append, append, append, append, pack, pack, acknowledge, trim, clock, pass, reopen], { maxCommands: 60, size: "max" }),
      (commands) => {
        using folder = temporaryFolder();
        const file = join(folder.path, "buffer.db");
        let real: Real | undefined;
        try {
          fc.modelRun(() => {
            const model: Model = {
              rows: [],
              seq: 0,
              accepted: 0,
              delivered: 0,
              unconfirmed: 0,
              filtered: 0,
              buffer_full: 0,
              too_old: 0,
              nowMs: 1_800_000_000_000,
              monotonicMs: 0,
              maxBytes: 2 ** 20,
              maxAgeMs: 4000,
            };
            real = { file, buffer: open(file, model) };
            real.buffer.setSinks([SINK]);
            return { model, real };
          }, commands);
        } finally {
          real?.buffer.close();
        }
      },
    ),
    { numRuns: 15, endOnFailure: true },
  );
  expect(seen.buffer_full + seen.too_old).toBeGreaterThan(0);
  expect(seen.packed).toBeGreaterThan(100);
}, 60_000);
