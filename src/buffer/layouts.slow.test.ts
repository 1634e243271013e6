import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import type { Layout } from "../model/layout.ts";
import type { BufferFile } from "./buffer-file.ts";
import { encodeReadout, layoutKey } from "./codec.ts";
import { openBuffer } from "./open.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { plainLayout, plainReadout } from "./testing/readouts.ts";

const NOW = 1_800_000_000_000;
const VARIABLES = 800;
const MAX_BYTES = 4 * 2 ** 20;

const open = (file: string, maxBytes = 2 ** 30): BufferFile =>
  openBuffer(file, { maxBytes, maxAgeMs: 1e9, now: () => NOW, onAlarm: () => {} });

/** As the configuration of a source changes: a comment more. */
function version(n: number): Layout {
  const layout = plainLayout(VARIABLES);
  return { ...layout, variables: layout.variables.map((variable) => ({ ...variable, comment: `version ${n}` })) };
}

const layoutsIn = (file: string): number => {
  const db = new Database(file, { readonly: true });
  const count = db.prepare<[], number>("SELECT count(*) FROM layout").pluck().get();
  db.close();
  return count ?? 0;
};

function append(buffer: BufferFile, seq: number, layout: Layout): number {
  const readout = encodeReadout(layout, plainReadout(VARIABLES, seq, NOW));
  const key = layoutKey(layout);
  const batches = [{ seq, layoutKey: key, time: NOW, ...readout }];
  return buffer.commit({ run: "r", layouts: [{ key, layout }], batches, acknowledgements: [] })[0]?.id ?? 0;
}
const acknowledge = (buffer: BufferFile, ids: readonly number[]) =>
  buffer.commit({
    run: "r",
    layouts: [],
    batches: [],
    acknowledgements: [{ sink: "a", ids, delivered: ids.length * VARIABLES, dropped: {} }],
  });
const maintain = (buffer: BufferFile): void => {
  for (let step = 0; step < 1000 && buffer.maintain(); step++);
};

test("layouts that nothing names any more give their room back, and values go on without end", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  const buffer = open(file, MAX_BYTES);
  buffer.setSinks([{ id: "a", takesExploration: false }]);
  for (let seq = 1; seq <= 100; seq++) {
    acknowledge(buffer, [append(buffer, seq, version(seq))]);
    maintain(buffer);
  }
  expect(buffer.ledger().sinks[0]).toMatchObject({ accepted: 100 * VARIABLES, delivered: 100 * VARIABLES, pending: 0, dropped: {} });
  expect(layoutsIn(file)).toBeLessThan(20);
  expect(statSync(file).size).toBeLessThan(MAX_BYTES);
  buffer.close();
});

test("those that rows name stay, over a reopen too, and what is named again is there again", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  let buffer = open(file);
  buffer.setSinks([{ id: "a", takesExploration: false }]);
  const kept = append(buffer, 1, version(1));
  for (let seq = 2; seq <= 12; seq++) acknowledge(buffer, [append(buffer, seq, version(seq))]);
  maintain(buffer);
  expect(buffer.layout(1)).toEqual(version(1));
  buffer.close();
  buffer = open(file);
  for (let seq = 13; seq <= 24; seq++) acknowledge(buffer, [append(buffer, seq, version(seq))]);
  maintain(buffer);
  expect(buffer.layout(1)).toEqual(version(1));
  acknowledge(buffer, [kept]);
  maintain(buffer);
  expect(buffer.layout(1)).toBeUndefined();
  expect(layoutsIn(file)).toBeLessThan(12);
  expect(append(buffer, 25, version(1))).toBeGreaterThan(0);
  maintain(buffer);
  expect(buffer.ledger().sinks[0]).toMatchObject({ pending: VARIABLES });
  buffer.close();
});
