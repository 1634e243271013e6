import { createHash } from "node:crypto";
import type { StoredBatch } from "../buffer/buffer.ts";
import { decodeReadout } from "../buffer/codec.ts";
import type { Layout } from "../model/layout.ts";
import type { Readout } from "../model/value.ts";
import type { SinkBatch } from "../sinks/sink.ts";
import type { Outcome } from "./acknowledgements.ts";
import type { Job } from "./delivery-queue.ts";
import type { Piece } from "./isolation/pieces.ts";
import { createScratches } from "./scratches.ts";

export interface Decoded {
  /** Undefined: its layout is not known, and nothing in it can be read. */
  readonly batch: SinkBatch | undefined;
  /** By row, if the whole batch is taken. What cannot be read shows here once the readouts have been gone over. */
  readonly outcomes: readonly Outcome[];
  /** By readout of the batch: its row in the group. Known of those that the last iteration came to. */
  readonly rowsRead: readonly number[];
}

/** What a batch's id begins with. */
export interface Names {
  /** Names the start of the store since which batches have this id: an id with it stands for one content, also in copies of the file. */
  readonly startOf: (id: number) => string;
  /** Distinguishes lives of the delivery: the ids of unstored rows restart with each process. */
  readonly life: string;
}

/** Of this thread. */
const scratches = createScratches();

/** A job's rows as the sink gets them, or only `pieces` of them. What cannot be read is left out and counted as damaged. */
export function decodeJob(
  { group, backlog, inOrder = false }: Omit<Job, "generation"> & Partial<Job>,
  layout: Layout | undefined,
  takesExploration: boolean,
  names: Names,
  pieces?: readonly Piece[],
): Decoded {
  const { rows } = group;
  const outcomes = rows.map((row) => outcomeOf(row, takesExploration, layout === undefined));
  const rowsRead: number[] = [];
  if (!layout) return { batch: undefined, outcomes, rowsRead };
  const readouts = {
    *[Symbol.iterator](): Generator<Readout> {
      const scratch = scratches.lease(layout.variables.length);
      rowsRead.length = 0;
      try {
        for (const [i, row] of rows.entries()) {
          let readout: Readout;
          try {
            readout = corrected(decodeReadout(layout, row.payload, scratch), row);
          } catch {
            outcomes[i] = outcomeOf(row, takesExploration, true);
            continue;
          }
          rowsRead.push(i);
          yield pieces
            ? piecesOf(
                readout,
                pieces.filter((piece) => piece.row === row.id),
              )
            : readout;
        }
      } finally {
        scratches.giveBack(scratch);
      }
    },
  };
  const first = rows[0]?.id ?? 0;
  const last = rows.at(-1)?.id ?? 0;
  // That of the last one: what the file held when it was given is all that can be before it.
  const life = first < 0 ? `${names.life.slice(0, 8)}u` : names.startOf(last).slice(0, 8);
  const id = `${life}-${Math.abs(first)}-${Math.abs(last)}${pieces ? `.${digestOf(pieces)}` : ""}`;
  return { batch: { id, layout, readouts, backlog, inOrder }, outcomes, rowsRead };
}

const corrected = (readout: Readout, { correctionMs }: StoredBatch): Readout =>
  correctionMs === undefined ? readout : { ...readout, time: readout.time + correctionMs, clockCorrectionMs: correctionMs };

function piecesOf(readout: Readout, pieces: readonly Piece[]): Readout {
  if (pieces.some((piece) => piece.from === 0 && piece.to === undefined)) return readout;
  const isIn = (place: number) => pieces.some(({ from, to = Number.POSITIVE_INFINITY }) => place >= from && place < to);
  return { ...readout, readings: readout.readings.map((reading, place) => (isIn(place) ? reading : undefined)) };
}

/** An identifier has one content, however the rows are taken apart. */
const digestOf = (pieces: readonly Piece[]): string =>
  createHash("sha256")
    .update(JSON.stringify(pieces, ["row", "from", "to"]))
    .digest("hex")
    .slice(0, 8);

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
