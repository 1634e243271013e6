import { decodeReadout } from "../buffer/codec.ts";
import type { Layout } from "../model/layout.ts";
import type { Readout } from "../model/value.ts";
import type { Job } from "./flow.ts";
import type { Outcome } from "./lane.ts";
import type { SinkBatch } from "./sink.ts";

export interface Decoded {
  /** Undefined: nothing in it can be read. */
  readonly batch: SinkBatch | undefined;
  /** By row, if the whole batch is taken. */
  readonly outcomes: readonly Outcome[];
}

/** What a batch's id begins with. */
export interface Names {
  /** Distinguishes lives of the file. */
  readonly epoch: string;
  /** Distinguishes lives of the delivery: the ids of unstored rows begin anew with each process. */
  readonly life: string;
}

/** A job's rows as the sink gets them. What cannot be read is counted as damaged. */
export function decodeJob({ group, backlog }: Job, layout: Layout | undefined, takesExploration: boolean, names: Names): Decoded {
  const readouts: Readout[] = [];
  const outcomes = group.rows.map((row): Outcome => {
    const values = row.count + (takesExploration ? row.explorationCount : 0);
    try {
      if (!layout) return { delivered: 0, dropped: { damaged: values } };
      readouts.push(decodeReadout(layout, row.payload));
      return { delivered: values, dropped: {} };
    } catch {
      return { delivered: 0, dropped: { damaged: values } };
    }
  });
  const first = group.rows[0]?.id ?? 0;
  const last = group.rows.at(-1)?.id ?? 0;
  const life = first < 0 ? `${names.life.slice(0, 8)}u` : names.epoch.slice(0, 8);
  const id = `${life}-${Math.abs(first)}-${Math.abs(last)}`;
  return { batch: layout && readouts.length > 0 ? { id, layout, readouts, backlog } : undefined, outcomes };
}

/** Spreads what was refused over the rows: only the sums count. */
export function withRefused(outcomes: readonly Outcome[], refused: number): readonly Outcome[] {
  let rest = refused;
  return outcomes.map((outcome) => {
    const taken = Math.min(rest, outcome.delivered);
    rest -= taken;
    return taken === 0 ? outcome : { delivered: outcome.delivered - taken, dropped: { ...outcome.dropped, refused: taken } };
  });
}
