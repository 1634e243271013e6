import Database from "better-sqlite3";
import { expect } from "vitest";
import type { Acknowledgement, NewBatch, SinkLedger } from "../buffer.ts";
import type { BufferFile } from "../buffer-file.ts";
import { encodeReadout, layoutKey } from "../codec.ts";
import { type BufferOptions, openBuffer } from "../open.ts";
import { ledgerFaults } from "./ledger.ts";
import { plainLayout, plainReadout } from "./readouts.ts";

/** One layout of ten variables, two sinks of which `b` takes EXPLORATION, and what a test does with a file most often. */

export const NOW = 1_800_000_000_000;
export const layout = plainLayout(10);
export const layouts = [{ key: layoutKey(layout), layout }];
export const A = { id: "a", takesExploration: false };
export const B = { id: "b", takesExploration: true };

export function batch(seq: number, count = 8, explorationCount = 2, timeMs = NOW): NewBatch {
  return {
    seq,
    layoutKey: layoutKey(layout),
    time: timeMs,
    count,
    explorationCount,
    payload: encodeReadout(layout, plainReadout(10, seq)).payload,
  };
}

export function open(file: string, options: Partial<BufferOptions> = {}): BufferFile & Disposable {
  const buffer = openBuffer(file, {
    maxBytes: 2 ** 30,
    maxAgeMs: 86_400_000,
    now: () => NOW,
    onAlarm: ({ text }) => {
      throw new Error(text);
    },
    ...options,
  });
  return Object.assign(buffer, { [Symbol.dispose]: () => buffer.close() });
}

export const append = (buffer: BufferFile, ...batches: NewBatch[]) => buffer.commit({ run: "r1", layouts, batches, acknowledgements: [] });
export const acknowledge = (buffer: BufferFile, ...acknowledgements: Acknowledgement[]) =>
  buffer.commit({ run: "r1", layouts: [], batches: [], acknowledgements });
export const taken = (sink: string, ids: number[], delivered: number): Acknowledgement => ({
  sink,
  ids,
  delivered,
  dropped: {},
});
export const ledgerOf = (buffer: BufferFile, sink: string): SinkLedger | undefined =>
  buffer.ledger().sinks.find((entry) => entry.sink === sink);
export const rowIds = (file: string): number[] => {
  const db = new Database(file, { readonly: true });
  const ids = db.prepare<[], number>("SELECT id FROM batch ORDER BY id").pluck().all();
  db.close();
  return ids;
};

/** The ledger's equation, its pending counted over the rows of the file. */
export const expectExact = (buffer: BufferFile, file: string): void =>
  expect(ledgerFaults(buffer, file, (sink) => sink === B.id)).toEqual([]);
