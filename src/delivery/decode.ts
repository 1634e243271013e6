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
import { filterReadout, type SinkFilter } from "./sink-filter.ts";

export interface Decoded {
  /** Undefined: its layout is not known, and nothing in it can be read. */
  readonly batch: SinkBatch | undefined;
  /** By row, if the whole batch is taken. What cannot be read shows here once the readouts have been gone over. */
  readonly outcomes: readonly Outcome[];
  /** By readout of the batch: its row in the group. Known of those that the last iteration came to. */
  readonly rowsRead: readonly number[];
}

/** Rules for the readouts of one sink. */
export interface DecodeOptions {
  readonly takesExploration: boolean;
  readonly filter: SinkFilter;
  readonly names: Names;
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

/**
 * A job's rows as the sink gets them, or only `pieces` of them, whose places are those of the batch's layout. What cannot be read is left out
 * and counted as damaged; what the filter leaves out is counted as that.
 */
export function decodeJob(
  { group, backlog, inOrder = false }: Omit<Job, "generation"> & Partial<Job>,
  stored: Layout | undefined,
  { takesExploration, filter, names }: DecodeOptions,
  pieces?: readonly Piece[],
): Decoded {
  const { rows } = group;
  const outcomes = rows.map((row) => outcomeOf(row, takesExploration, stored === undefined));
  const rowsRead: number[] = [];
  if (!stored) return { batch: undefined, outcomes, rowsRead };
  const filtered = filter.of(stored);
  if (filtered === null) return { batch: undefined, outcomes: outcomes.map(leftOut), rowsRead };
  const layout = filtered?.layout ?? stored;
  const isCounted = (place: number): boolean => takesExploration || stored.variables[place]?.exploration === false;
  const readouts = {
    *[Symbol.iterator](): Generator<Readout> {
      const scratch = scratches.lease(stored.variables.length);
      rowsRead.length = 0;
      try {
        for (const [i, row] of rows.entries()) {
          let readout: Readout;
          try {
            readout = corrected(decodeReadout(stored, row.payload, scratch), row);
          } catch {
            outcomes[i] = outcomeOf(row, takesExploration, true);
            continue;
          }
          if (filtered) {
            const { readout: taken, left } = filterReadout(readout, filtered, isCounted);
            outcomes[i] = withFiltered(outcomeOf(row, takesExploration, false), left);
            if (!taken) continue;
            readout = taken;
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
  const part = `${pieces ? JSON.stringify(pieces, ["row", "from", "to"]) : ""}${filtered ? filter.mark : ""}`;
  const id = `${life}-${Math.abs(first)}-${Math.abs(last)}${part === "" ? "" : `.${digestOf(part)}`}`;
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
const digestOf = (part: string): string => createHash("sha256").update(part).digest("hex").slice(0, 8);

function outcomeOf({ count, explorationCount }: StoredBatch, takesExploration: boolean, damaged: boolean): Outcome {
  const values = count + (takesExploration ? explorationCount : 0);
  return damaged ? { delivered: 0, dropped: { damaged: values } } : { delivered: values, dropped: {} };
}

const withFiltered = ({ delivered, dropped }: Outcome, values: number): Outcome => ({
  delivered: Math.max(0, delivered - values),
  ...(values > 0 && { filtered: Math.min(values, delivered) }),
  dropped,
});

/** None of it is for the sink. */
const leftOut = (outcome: Outcome): Outcome => withFiltered(outcome, outcome.delivered);

/** Spreads what was refused over the rows: only the sums count. */
export function withRefused(outcomes: readonly Outcome[], refused: number): readonly Outcome[] {
  let rest = refused;
  return outcomes.map((outcome) => {
    const taken = Math.min(rest, outcome.delivered);
    rest -= taken;
    return taken === 0 ? outcome : { ...outcome, delivered: outcome.delivered - taken, dropped: { ...outcome.dropped, refused: taken } };
  });
}
