import type { Outcome } from "../acknowledgements.ts";
import type { Counted, Piece } from "./pieces.ts";

/** A held row, until each of its pieces has arrived or is dropped. Values, but for `pieces`. */
export interface RowAccount {
  readonly all: number;
  pieces: number;
  refused: number;
  isDamaged: boolean;
  /** Values that the filter of the sink leaves out. */
  filtered: number;
}

/** The values of held rows, by row. Each row is settled once, when none of its pieces is left. */
export type RowAccounts = Map<number, RowAccount>;

/** `outcome` undefined: the row has left the file, where it is counted. */
export type Settle = (row: number, outcome: Outcome | undefined) => void;

/** Pieces of rows that are held from now on. `outcomeOf` tells the values of a row that is not known yet, as if its pieces had arrived. */
export function openPieces(rows: RowAccounts, pieces: readonly Piece[], outcomeOf: (row: number) => Outcome | undefined): void {
  for (const { row } of pieces) {
    const account = rows.get(row) ?? accountOf(outcomeOf(row));
    account.pieces++;
    rows.set(row, account);
  }
}

/** `pieces` have arrived or are dropped, except `rest`, which is tried as pieces of its own. */
export function endPieces(rows: RowAccounts, pieces: readonly Piece[], rest: readonly Piece[], settle: Settle): void {
  for (const { row } of rest) {
    const account = rows.get(row);
    if (account) account.pieces++;
  }
  for (const { row } of pieces) {
    const account = rows.get(row);
    if (!account || --account.pieces > 0) continue;
    rows.delete(row);
    settle(row, outcomeOf(account));
  }
}

/** Books refused values to the rows of the pieces, as many as each has. */
export function refusePieces(rows: RowAccounts, pieces: readonly Counted[], refused: number): void {
  let rest = refused;
  for (const { row, values } of pieces) {
    const taken = Math.min(rest, values);
    const account = rows.get(row);
    if (account) account.refused += taken;
    rest -= taken;
  }
}

function accountOf(outcome: Outcome | undefined): RowAccount {
  const refused = outcome?.dropped.refused ?? 0;
  const filtered = outcome?.filtered ?? 0;
  return { all: (outcome?.delivered ?? 0) + refused + filtered, pieces: 0, refused, isDamaged: false, filtered };
}

function outcomeOf({ all, refused, isDamaged, filtered }: RowAccount): Outcome {
  if (isDamaged) return { delivered: 0, dropped: { damaged: all } };
  const left = Math.min(filtered, all);
  const dropped = Math.min(refused, all - left);
  return { delivered: all - left - dropped, ...(left > 0 && { filtered: left }), dropped: dropped === 0 ? {} : { refused: dropped } };
}
