import type { StoredBatch } from "../buffer/buffer.ts";
import { decodeReadout } from "../buffer/codec.ts";
import type { Layout } from "../model/layout.ts";
import type { Readout } from "../model/value.ts";
import type { Job } from "./flow.ts";
import type { Outcome } from "./lane.ts";
import { createScratches } from "./scratches.ts";
import type { SinkBatch } from "./sink.ts";

export interface Decoded {
  /** Undefined: its layout is not known, and nothing in it can be read. */
  readonly batch: SinkBatch | undefined;
  /** By row, if the whole batch is taken. What cannot be read shows here once the readouts have been gone over. */
  readonly outcomes: readonly Outcome[];
}

/** What a batch's id begins with. */
export interface Names {
  /** Distinguishes lives of the file. */
  readonly epoch: string;
  /** Distinguishes lives of the delivery: the ids of unstored rows begin anew with each process. */
  readonly life: string;
}

/** Of this thread. */
const scratches = createScratches();

/** A job's rows as the sink gets them. What cannot be read is left out and counted as damaged. */
export function decodeJob(
  { group, backlog, inOrder = false }: Job,
  layout: Layout | undefined,
  takesExploration: boolean,
  names: Names,
): Decoded {
  const { rows } = group;
  const outcomes = rows.map((row) => outcomeOf(row, takesExploration, layout === undefined));
  if (!layout) return { batch: undefined, outcomes };
  const readouts = {
    *[Symbol.iterator](): Generator<Readout> {
      const scratch = scratches.lease(layout.variables.length);
      try {
        for (const [i, row] of rows.entries()) {
          let readout: Readout;
          try {
            readout = decodeReadout(layout, row.payload, scratch);
          } catch {
            outcomes[i] = outcomeOf(row, takesExploration, true);
            continue;
          }
          yield readout;
        }
      } finally {
        scratches.giveBack(scratch);
      }
    },
  };
  const first = rows[0]?.id ?? 0;
  const last = rows.at(-1)?.id ?? 0;
  const life = first < 0 ? `${names.life.slice(0, 8)}u` : names.epoch.slice(0, 8);
  return { batch: { id: `${life}-${Math.abs(first)}-${Math.abs(last)}`, layout, readouts, backlog, inOrder }, outcomes };
}

function outcomeOf({ count, explorationCount }: StoredBatch, takesExploration: boolean, damaged: boolean): Outcome {
  const values = count + (takesExploration ? explorationCount : 0);
  return damaged ? { delivered: 0, dropped: { damaged: values } } : { delivered: values, dropped: {} };
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
