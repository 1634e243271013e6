import type { Refusal, SinkBatch } from "../../sinks/sink.ts";

/** Arithmetic of the values that are written apart. Pure. */

/** Values of one row: those of the variables from <= place < to; without `to` all that follow. */
export interface Piece {
  readonly row: number;
  readonly from: number;
  readonly to?: number;
}

export interface Counted extends Piece {
  readonly values: number;
}

/** By row: the places of its values, rising. */
export type Places = ReadonlyMap<number, readonly number[]>;

/** Refusals of one write that are kept apart; more of them count as one. */
const MAX_REFUSALS = 16;

const endOf = ({ to = Number.POSITIVE_INFINITY }: Piece): number => to;

/** The contents of each refused message. `rowOf` names the row of a readout of the batch; `width` is the number of its variables. */
export function piecesOfRefusals(
  refusals: readonly Pick<Refusal, "parts">[],
  rowOf: (readout: number) => number | undefined,
  width: number,
): readonly (readonly Piece[])[] {
  const lists = refusals.map(({ parts }) =>
    parts.flatMap(({ readout, from, to }): Piece[] => {
      const row = rowOf(readout);
      if (row === undefined) return [];
      return [from === 0 && to >= width ? { row, from } : { row, from, to }];
    }),
  );
  return (lists.length > MAX_REFUSALS ? [lists.flat()] : lists).map(joined).filter((pieces) => pieces.length > 0);
}

/** Rising; adjoining pieces of one row are joined. */
function joined(pieces: readonly Piece[]): readonly Piece[] {
  const result: Piece[] = [];
  for (const piece of [...pieces].sort((a, b) => a.row - b.row || a.from - b.from)) {
    const last = result.at(-1);
    if (!last || last.row !== piece.row || endOf(last) < piece.from) result.push(piece);
    else if (endOf(last) < endOf(piece))
      result[result.length - 1] = { row: last.row, from: last.from, ...(piece.to !== undefined && { to: piece.to }) };
  }
  return result;
}

/** The values in both. */
export function intersection(some: readonly Piece[], others: readonly Piece[]): readonly Piece[] {
  return some.flatMap((one) =>
    others.flatMap((other): Piece[] => {
      const from = Math.max(one.from, other.from);
      const to = Math.min(endOf(one), endOf(other));
      if (one.row !== other.row || from >= to) return [];
      return [{ row: one.row, from, ...(to !== Number.POSITIVE_INFINITY && { to }) }];
    }),
  );
}

export function placesOf(
  batch: SinkBatch,
  rowOf: (readout: number) => number | undefined,
  takesExploration: boolean,
): Map<number, readonly number[]> {
  const places = new Map<number, readonly number[]>();
  let number = 0;
  for (const { readings } of batch.readouts) {
    const row = rowOf(number++);
    if (row === undefined) continue;
    const found: number[] = [];
    for (const [place, reading] of readings.entries())
      if (reading !== undefined && (takesExploration || batch.layout.variables[place]?.exploration === false)) found.push(place);
    places.set(row, found);
  }
  return places;
}

const placesIn = (piece: Piece, places: Places): readonly number[] =>
  places.get(piece.row)?.filter((place) => place >= piece.from && place < endOf(piece)) ?? [];

export const counted = (pieces: readonly Piece[], places: Places): readonly Counted[] =>
  pieces.map((piece) => ({ ...piece, values: placesIn(piece, places).length }));

export const valuesIn = (pieces: readonly Counted[]): number => pieces.reduce((sum, { values }) => sum + values, 0);

/** Two halves, each with a value; undefined: there is one value at most. */
export function split(pieces: readonly Counted[], places: Places): readonly [readonly Counted[], readonly Counted[]] | undefined {
  const filled = pieces.filter(({ values }) => values > 0);
  const [first] = filled;
  if (!first) return undefined;
  const half = filled.length >> 1;
  if (half > 0) return [filled.slice(0, half), filled.slice(half)];
  const inside = placesIn(first, places);
  const values = inside.length >> 1;
  const middle = inside[values];
  if (inside.length < 2 || middle === undefined) return undefined;
  return [[{ row: first.row, from: first.from, to: middle, values }], [{ ...first, from: middle, values: inside.length - values }]];
}
