import { expect, test } from "vitest";
import { createLane, joinSettled } from "./acknowledgements.ts";

const delivered = (values: number) => ({ delivered: values, dropped: {} });

test("rows are acknowledged from the front, whatever order they settle in", () => {
  const lane = createLane();
  for (const id of [1, 2, 3, 4]) lane.add(id);
  lane.settle(2, delivered(5));
  lane.settle(3, { delivered: 1, dropped: { refused: 2 } });
  expect(lane.takeSettled()).toBeUndefined();
  lane.settle(1, { delivered: 3, dropped: { refused: 1, damaged: 4 } });
  expect(lane.takeSettled()).toEqual({ ids: [1, 2, 3], delivered: 9, dropped: { refused: 3, damaged: 4 } });
  expect(lane.takeSettled()).toBeUndefined();
});

test("a row that goes another way holds up nobody, and settling it later means nothing", () => {
  const lane = createLane();
  for (const id of [1, 2]) lane.add(id);
  lane.remove(1);
  lane.settle(1, delivered(1));
  lane.settle(2, delivered(1));
  expect(lane.takeSettled()?.ids).toEqual([2]);
});

test("emptied, it tells apart what is settled and what is not", () => {
  const lane = createLane();
  for (const id of [1, 2, 3]) lane.add(id);
  lane.settle(2, delivered(7));
  expect(lane.takeAll()).toEqual({ settled: { ids: [2], delivered: 7, dropped: {} }, unsettled: [1, 3] });
  expect(lane.takeAll()).toEqual({ settled: undefined, unsettled: [] });
});

test("two acknowledgements are one", () => {
  expect(
    joinSettled({ ids: [1], delivered: 1, dropped: { refused: 1 } }, { ids: [2], delivered: 2, dropped: { refused: 1, damaged: 3 } }),
  ).toEqual({
    ids: [1, 2],
    delivered: 3,
    dropped: { refused: 2, damaged: 3 },
  });
});
