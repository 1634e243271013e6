import type { Outcome } from "./acknowledgements.ts";
import { valuesIn } from "./pieces.ts";
import type { Piece } from "./suspects.ts";

/** A held row, until each of its pieces has arrived or is dropped. Values, but for `pieces`. */
interface Account {
  readonly all: number;
  pieces: number;
  refused: number;
  isDamaged: boolean;
}

/** What becomes of the values of held rows, which are tried in pieces. `settle` gets each row once, when none of its pieces is left. */
export class RowAccounts {
  readonly #settle: (row: number, outcome: Outcome | undefined) => void;
  readonly #accounts = new Map<number, Account>();

  constructor(settle: (row: number, outcome: Outcome | undefined) => void) {
    this.#settle = settle;
  }

  /** A row of so many values, of which nothing has arrived yet, in one piece. */
  open(row: number, values: number): void {
    this.#accounts.set(row, { all: values, pieces: 1, refused: 0, isDamaged: false });
  }

  /** A piece of each, of rows of which other values have arrived or are refused: `outcomeOf` says how many. */
  openPieces(pieces: readonly Piece[], outcomeOf: (row: number) => Outcome | undefined): void {
    for (const { row } of pieces) {
      const account = this.#accounts.get(row) ?? accountOf(outcomeOf(row));
      account.pieces++;
      this.#accounts.set(row, account);
    }
  }

  /** There are these pieces in addition. */
  add(pieces: readonly Piece[]): void {
    for (const { row } of pieces) {
      const account = this.#accounts.get(row);
      if (account) account.pieces++;
    }
  }

  /** These pieces have arrived, are dropped, or are replaced by others that were added before. */
  end(pieces: readonly Piece[]): void {
    for (const { row } of pieces) {
      const account = this.#accounts.get(row);
      if (!account || --account.pieces > 0) continue;
      this.#accounts.delete(row);
      this.#settle(row, outcomeOf(account));
    }
  }

  refuse(row: number, values: number): void {
    const account = this.#accounts.get(row);
    if (account) account.refused += values;
  }

  /** Books refused values to the rows of the pieces, as many as each has. */
  spread(pieces: readonly Piece[], places: ReadonlyMap<number, readonly number[]>, refused: number): void {
    let rest = refused;
    for (const piece of pieces) {
      const taken = Math.min(rest, valuesIn([piece], places));
      this.refuse(piece.row, taken);
      rest -= taken;
    }
  }

  damaged(row: number): void {
    const account = this.#accounts.get(row);
    if (account) account.isDamaged = true;
  }

  /** A row that was dropped from the file meanwhile is counted there. */
  forget(row: number): void {
    this.#accounts.delete(row);
    this.#settle(row, undefined);
  }

  clear(): void {
    this.#accounts.clear();
  }
}

function accountOf(outcome: Outcome | undefined): Account {
  const refused = outcome?.dropped.refused ?? 0;
  return { all: (outcome?.delivered ?? 0) + refused, pieces: 0, refused, isDamaged: false };
}

function outcomeOf({ all, refused, isDamaged }: Account): Outcome {
  if (isDamaged) return { delivered: 0, dropped: { damaged: all } };
  const dropped = Math.min(refused, all);
  return { delivered: all - dropped, dropped: dropped === 0 ? {} : { refused: dropped } };
}
