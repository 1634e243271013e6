import { expect, test } from "vitest";
import { AcknowledgementTracker, joinSettled } from "./acknowledgements.ts";

const delivered = (values: number) => ({ delivered: values, dropped: {} });

test("rows are acknowledged from the front, whatever order they settle in", () => {
  const tracker = new AcknowledgementTracker();
  for (const id of [1, 2, 3, 4]) tracker.add(id);
  tracker.settle(2, delivered(5));
  tracker.settle(3, { delivered: 1, dropped: { refused: 2 } });
  expect(tracker.takeSettled()).toBeUndefined();
  tracker.settle(1, { delivered: 3, dropped: { refused: 1, damaged: 4 } });
  expect(tracker.takeSettled()).toEqual({ ids: [1, 2, 3], delivered: 9, dropped: { refused: 3, damaged: 4 }, droppedIds: [1, 3] });
  expect(tracker.takeSettled()).toBeUndefined();
});

test("a removed row holds up no other, and settling it later has no effect", () => {
  const tracker = new AcknowledgementTracker();
  for (const id of [1, 2]) tracker.add(id);
  tracker.remove(1);
  tracker.settle(1, delivered(1));
  tracker.settle(2, delivered(1));
  expect(tracker.takeSettled()?.ids).toEqual([2]);
});

test("emptied, it tells apart what is settled and what is not", () => {
  const tracker = new AcknowledgementTracker();
  for (const id of [1, 2, 3]) tracker.add(id);
  tracker.settle(2, delivered(7));
  expect(tracker.takeAll()).toEqual({ settled: { ids: [2], delivered: 7, dropped: {} }, unsettled: [1, 3] });
  expect(tracker.takeAll()).toEqual({ settled: undefined, unsettled: [] });
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

test("rows behind a few unsettled ranges are taken over their heads, no more", () => {
  const tracker = new AcknowledgementTracker();
  for (let id = 1; id <= 12; id++) tracker.add(id);
  for (const id of [3, 4, 6, 8, 9, 11]) tracker.settle(id, delivered(1));
  expect(tracker.takeSettledBehind(0)).toBeUndefined();
  expect(tracker.takeSettledBehind(2)?.ids).toEqual([3, 4, 6]);
  expect(tracker.takeSettledBehind(2)).toBeUndefined();
  expect(tracker.takeSettledBehind(4)?.ids).toEqual([8, 9, 11]);
  for (const id of [1, 2, 5, 7, 10]) tracker.settle(id, delivered(1));
  expect(tracker.takeSettled()?.ids).toEqual([1, 2, 5, 7, 10]);
});
