import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { StoredBatch } from "../buffer/buffer.ts";
import { encodeReadout } from "../buffer/codec.ts";
import { temporaryFolder } from "../buffer/testing/folder.ts";
import { plainLayout, plainReadout } from "../buffer/testing/readouts.ts";
import { decodeJob } from "./decode.ts";
import { SinkFilter } from "./sink-filter.ts";
import { UsedStamps } from "./used-stamps.ts";

const layout = plainLayout(2);
const names = { startOf: (id: number) => (id < 10 ? "first-start" : "other-start"), life: "life" };
const options = { takesExploration: false, filter: new SinkFilter({}), names };

function row(id: number, clockSynced: boolean, correctionMs?: number): StoredBatch {
  const { payload } = encodeReadout(layout, { ...plainReadout(2, id, 1000), clockSynced });
  return { id, layout: 1, time: 1000 + (correctionMs ?? 0), count: 2, explorationCount: 0, payload, correctionMs };
}

const stampsOf = (rows: readonly StoredBatch[]) => {
  const { batch } = decodeJob({ group: { layout: 1, rows, bytes: 0 }, backlog: true }, layout, options);
  return [...(batch?.readouts ?? [])].map(({ time, clockCorrectionMs }) => [time, clockCorrectionMs]);
};

test("a batch that was sent uncorrected is sent again so, and one that was not is sent corrected", () => {
  const used = new UsedStamps();
  expect(used.sending([row(1, false), row(2, true), row(-3, false)]).used).toEqual([1]);
  expect(used.sending([row(1, false), row(4, false, 0)]).used).toEqual([]);
  const again = used.restored([row(1, false, 5000), row(3, false, 5000)]);
  expect(again.map(({ time }) => time)).toEqual([1000, 6000]);
  expect(stampsOf(again)).toEqual([
    [1000, undefined],
    [6000, 5000],
  ]);
});

test("a sink that read rows before a correction sends them as another was sent them: corrected or not, whoever comes first", () => {
  const used = new UsedStamps();
  // The broker was away while the clock was set, and has rows in memory; the platform read them afterwards.
  expect(stampsOf(used.sending([row(1, false, 5000), row(2, false, 5000)]).rows)).toEqual([
    [6000, 5000],
    [6000, 5000],
  ]);
  const late = used.sending([row(1, false), row(2, false), row(3, false), row(4, true)]);
  expect(late.used).toEqual([3]);
  expect(late.rows.map(({ time }) => time)).toEqual([6000, 6000, 1000, 1000]);
  expect(stampsOf(late.rows)).toEqual([
    [6000, 5000],
    [6000, 5000],
    [1000, undefined],
    [1000, undefined],
  ]);
  // The other way round: what the broker has sent by now goes to the platform so, although it read it corrected.
  expect(used.sending([row(3, false, 5000), row(5, false, 7000)]).rows.map(({ time }) => time)).toEqual([1000, 8000]);
  expect(used.sending([row(5, false)])).toMatchObject({ used: [], rows: [{ id: 5, time: 8000, correctionMs: 7000 }] });
});

test("what was sent uncorrected is known after a kill that the store did not learn of it before, of the same life of the file", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  const killed = new UsedStamps();
  killed.use(file, "epoch-1");
  killed.sending([row(1, false), row(2, false)]);
  killed.sending(Array.from({ length: 100 }, (_, i) => row(10 + 2 * i, false)));
  killed.sending(Array.from({ length: 100 }, (_, i) => row(11 + 2 * i, false)));
  const timesFor = (epoch: string) => {
    const next = new UsedStamps();
    next.use(file, epoch);
    return next.restored([1, 2, 3, 209, 210].map((id) => row(id, false, 5000))).map(({ time }) => time);
  };
  expect(timesFor("epoch-1")).toEqual([1000, 1000, 6000, 1000, 6000]);
  expect(timesFor("epoch-2")).toEqual([6000, 6000, 6000, 6000, 6000]);
  const note = readFileSync(`${file}.sent`, "utf8");
  for (const damaged of ["", "{", "null", note.replace('"from":1', '"from":"1"'), note.slice(0, 20)]) {
    writeFileSync(`${file}.sent`, damaged);
    expect(timesFor("epoch-1")[0]).toBe(6000);
  }
});

test("an identifier has the start since which its last batch was numbered", () => {
  const idOf = (...ids: number[]) =>
    decodeJob({ group: { layout: 1, rows: ids.map((id) => row(id, true)), bytes: 0 }, backlog: true }, layout, options).batch?.id;
  expect([idOf(1, 2), idOf(9, 10), idOf(10)]).toEqual(["first-st-1-2", "other-st-9-10", "other-st-10-10"]);
});
