import { expect, test } from "vitest";
import type { Outcome } from "./acknowledgements.ts";
import { RowAccounts } from "./row-accounts.ts";
import type { Piece } from "./suspects.ts";

const piece = (row: number, from = 0, to?: number): Piece => ({ row, from, ...(to !== undefined && { to }) });
const setUp = () => {
  const settled: [number, Outcome | undefined][] = [];
  return { settled, accounts: new RowAccounts((row, outcome) => settled.push([row, outcome])) };
};

test("a row is settled once, with the end of its last piece, whatever it was split into", () => {
  const { settled, accounts } = setUp();
  accounts.open(1, 10);
  const [left, right] = [piece(1, 0, 5), piece(1, 5, 10)];
  accounts.add([left, right]);
  accounts.end([piece(1)]);
  accounts.end([left]);
  accounts.refuse(1, 2);
  expect(settled).toEqual([]);
  accounts.end([right]);
  accounts.end([right]);
  expect(settled).toEqual([[1, { delivered: 8, dropped: { refused: 2 } }]]);
});

test("what else became of the row is in its outcome; refused values go to the rows that have them", () => {
  const { settled, accounts } = setUp();
  const pieces = [piece(1, 0, 2), piece(2, 0, 3)];
  const places = new Map([
    [1, [0, 1]],
    [2, [0, 1, 2]],
  ]);
  accounts.openPieces(pieces, (row) => ({ delivered: 4, dropped: row === 1 ? { refused: 1 } : {} }));
  accounts.spread(pieces, places, 4);
  accounts.end(pieces);
  expect(settled).toEqual([
    [1, { delivered: 2, dropped: { refused: 3 } }],
    [2, { delivered: 2, dropped: { refused: 2 } }],
  ]);
});

test("a damaged row is dropped as such, one that left the file is counted there, and none is left after a clear", () => {
  const { settled, accounts } = setUp();
  for (const row of [1, 2, 3]) accounts.open(row, 5);
  accounts.damaged(1);
  accounts.end([piece(1)]);
  accounts.forget(2);
  accounts.clear();
  accounts.end([piece(3)]);
  expect(settled).toEqual([
    [1, { delivered: 0, dropped: { damaged: 5 } }],
    [2, undefined],
  ]);
});
