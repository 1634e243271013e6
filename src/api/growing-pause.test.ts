import { expect, test } from "vitest";
import { type GrowingPause, longerPause, noPause } from "./growing-pause.ts";

test("a pause is a minute at first, and doubles up to an hour each time that it was in vain", () => {
  let pause: GrowingPause | undefined;
  const minutes = Array.from({ length: 8 }, () => {
    pause = longerPause(pause, pause?.untilMs ?? 0);
    return pause.ms / 60_000;
  });
  expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
});

test("an answer within a pause changes nothing", () => {
  const first = longerPause(undefined, 1000);
  expect(first).toEqual({ untilMs: 61_000, ms: 60_000 });
  expect(longerPause(first, 60_999)).toBe(first);
  expect(longerPause(first, 61_000)).toEqual({ untilMs: 181_000, ms: 120_000 });
});

test("no pause is followed by the first one", () => {
  expect(longerPause(noPause(1000), 1000)).toEqual(longerPause(undefined, 1000));
});
