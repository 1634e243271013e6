import { describe, expect, test } from "vitest";
import { type Counted, counted, intersection, type Piece, piecesOfRefusals, split, valuesIn } from "./pieces.ts";

const refusal = (...parts: readonly (readonly [number, number, number])[]) => ({
  detail: "no",
  parts: parts.map(([readout, from, to]) => ({ readout, from, to })),
});
const rowOf = (readout: number): number | undefined => [10, 11, 12][readout];

describe("pieces of refusals", () => {
  test("whole readouts have no end, borders inside one go, what no row is known of is left out", () => {
    expect(piecesOfRefusals([refusal([0, 0, 4], [1, 0, 2], [1, 2, 3], [7, 0, 4])], rowOf, 4)).toEqual([
      [
        { row: 10, from: 0 },
        { row: 11, from: 0, to: 3 },
      ],
    ]);
  });

  test("many of one write are one", () => {
    const many = Array.from({ length: 17 }, (_, i) => refusal([0, i, i + 1]));
    expect(piecesOfRefusals(many, rowOf, 100)).toEqual([[{ row: 10, from: 0, to: 17 }]]);
    expect(piecesOfRefusals(many.slice(1), rowOf, 100)).toHaveLength(16);
  });
});

test("the intersection is what lies in both", () => {
  const some: readonly Piece[] = [
    { row: 1, from: 2 },
    { row: 2, from: 0, to: 4 },
  ];
  expect(
    intersection(some, [
      { row: 1, from: 0, to: 5 },
      { row: 2, from: 4 },
      { row: 3, from: 0 },
    ]),
  ).toEqual([{ row: 1, from: 2, to: 5 }]);
});

test("halves have the same values, none is empty, and one value has none", () => {
  const places = new Map([
    [1, [0, 5, 9]],
    [2, []],
    [3, [1]],
  ]);
  const queue: (readonly Counted[])[] = [
    counted(
      [1, 2, 3].map((row) => ({ row, from: 0 })),
      places,
    ),
  ];
  const single: (readonly Counted[])[] = [];
  for (let pieces = queue.shift(); pieces; pieces = queue.shift()) {
    const halves = split(pieces, places);
    if (!halves) single.push(pieces);
    else {
      expect(halves.map((half) => valuesIn(half) > 0)).toEqual([true, true]);
      expect(halves.flat()).toEqual(counted(halves.flat(), places));
      expect(valuesIn(halves.flat())).toBe(valuesIn(pieces));
      queue.push(...halves);
    }
  }
  expect(single.map(valuesIn)).toEqual([1, 1, 1, 1]);
});
