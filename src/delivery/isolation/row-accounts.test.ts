import { expect, test } from "vitest";
import type { Outcome } from "../acknowledgements.ts";
import type { Counted } from "./pieces.ts";
import { endPieces, openPieces, type RowAccounts, refusePieces } from "./row-accounts.ts";

const piece = (row: number, from: number, to: number): Counted => ({ row, from, to, values: to - from });
const setUp = () => {
  const rows: RowAccounts = new Map();
  const settled: [number, Outcome | undefined][] = [];
  const end = (pieces: readonly Counted[], rest: readonly Counted[] = []) =>
    endPieces(rows, pieces, rest, (row, outcome) => settled.push([row, outcome]));
  return { rows, settled, end };
};

test("a row is settled once, with the end of its last piece, whatever it was split into", () => {
  const { rows, settled, end } = setUp();
  const [whole, left, right] = [piece(1, 0, 10), piece(1, 0, 5), piece(1, 5, 10)];
  openPieces(rows, [whole], () => ({ delivered: 10, dropped: {} }));
  end([whole], [left, right]);
  end([left]);
  refusePieces(rows, [right], 2);
  expect(settled).toEqual([]);
  end([right]);
  end([right]);
  expect(settled).toEqual([[1, { delivered: 8, dropped: { refused: 2 } }]]);
});

test("what else became of the row is in its outcome; refused values go to the rows that have them", () => {
  const { rows, settled, end } = setUp();
  const pieces = [piece(1, 0, 2), piece(2, 0, 3)];
  openPieces(rows, pieces, (row) => ({ delivered: 4, dropped: row === 1 ? { refused: 1 } : {} }));
  refusePieces(rows, pieces, 4);
  end(pieces);
  expect(settled).toEqual([
    [1, { delivered: 2, dropped: { refused: 3 } }],
    [2, { delivered: 2, dropped: { refused: 2 } }],
  ]);
});

test("a damaged row is dropped as such", () => {
  const { rows, settled, end } = setUp();
  openPieces(rows, [piece(1, 0, 5)], () => ({ delivered: 5, dropped: {} }));
  for (const account of rows.values()) account.isDamaged = true;
  end([piece(1, 0, 5)]);
  expect(settled).toEqual([[1, { delivered: 0, dropped: { damaged: 5 } }]]);
});
