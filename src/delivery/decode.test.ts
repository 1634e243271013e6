import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StoredBatch } from "../buffer/buffer.ts";
import { decodeReadout, encodeReadout } from "../buffer/codec.ts";
import { layoutAndReadout, plainLayout, plainReadout } from "../buffer/testing/readouts.ts";
import type { Layout } from "../model/layout.ts";
import type { Readout } from "../model/value.ts";
import { copyReadout, type SinkBatch } from "../sinks/sink.ts";
import { decodeJob } from "./decode.ts";
import { SinkFilter } from "./sink-filter.ts";

const names = { startOf: () => "epoch-of-the-file", life: "life-of-the-delivery" };
const options = { takesExploration: false, filter: new SinkFilter({}), names };

function rowsOf(layout: Layout, readouts: readonly Readout[]): StoredBatch[] {
  return readouts.map((readout, i) => ({ id: i + 1, layout: 1, time: readout.time, ...encodeReadout(layout, readout) }));
}

function decoded(layout: Layout, rows: readonly StoredBatch[]) {
  const { batch, outcomes } = decodeJob({ group: { layout: 1, rows, bytes: 0 }, backlog: false, generation: 0 }, layout, options);
  if (!batch) throw new Error("there is a layout");
  return { batch, outcomes };
}

const copies = ({ readouts }: SinkBatch): Readout[] => Array.from(readouts, copyReadout);

describe("decodeJob", () => {
  it("fills the same readings again, also for the next batch, and leaves a copy alone", () => {
    const layout = plainLayout(4);
    const readouts = [plainReadout(4, 1), plainReadout(4, 100)];
    const { batch } = decoded(layout, rowsOf(layout, readouts));
    const seen = new Set<unknown>();
    for (const { readings } of batch.readouts) seen.add(readings[0]);
    for (const { readings } of batch.readouts) seen.add(readings[0]);
    expect(seen.size).toBe(1);
    expect(copies(batch)).toEqual(readouts);
  });

  it("gives back what a writer left in the middle", () => {
    const layout = plainLayout(4);
    const { batch } = decoded(layout, rowsOf(layout, [plainReadout(4, 1), plainReadout(4, 100)]));
    const first = () => {
      for (const { readings } of batch.readouts) return readings[0];
      return undefined;
    };
    expect(first()).toBe(first());
    expect(copies(batch)).toHaveLength(2);
  });

  it("leaves out a row that cannot be read and counts it as damaged, each time it is gone over", () => {
    const layout = plainLayout(4);
    const rows = rowsOf(layout, [plainReadout(4, 1), plainReadout(4, 2), plainReadout(4, 3)]);
    rows[1] = { ...(rows[1] as StoredBatch), payload: new Uint8Array() };
    const { batch, outcomes } = decoded(layout, rows);
    for (let pass = 0; pass < 2; pass++) {
      expect(copies(batch)).toEqual([plainReadout(4, 1), plainReadout(4, 3)]);
      expect(outcomes).toEqual([
        { delivered: 4, dropped: {} },
        { delivered: 0, dropped: { damaged: 4 } },
        { delivered: 4, dropped: {} },
      ]);
    }
  });

  // Last: what it leaves in the pool of scratches is any.
  it("gives each of several writers at once readouts of its own", () => {
    const jobs = fc.array(layoutAndReadout, { minLength: 2, maxLength: 5 });
    const turns = fc.array(fc.nat(), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(jobs, turns, (given, order) => {
        const open = given.map(({ layout, readout }) => {
          const { batch } = decoded(layout, rowsOf(layout, [readout, { ...readout, time: 1 }, { ...readout, time: 2 }]));
          return {
            layout,
            rows: rowsOf(layout, [readout]),
            iterator: batch.readouts[Symbol.iterator](),
            current: undefined as Readout | undefined,
          };
        });
        for (const turn of order) {
          const one = open[turn % open.length];
          if (!one) continue;
          const { value, done } = one.iterator.next();
          one.current = done ? undefined : value;
          for (const { layout, rows, current } of open)
            if (current) expect(current.readings).toEqual(decodeReadout(layout, rows[0]?.payload ?? new Uint8Array()).readings);
        }
        for (const { iterator } of open) iterator.return?.();
      }),
    );
  });
});
