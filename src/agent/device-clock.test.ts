import { expect, test } from "vitest";
import { atOnce } from "../base/timer.ts";
import type { Reading } from "../model/value.ts";
import { DeviceClock } from "./device-clock.ts";

const NOW = 1_800_000_000_000;

function rig(intervalMs = 1000) {
  const clock = new DeviceClock(intervalMs);
  let atMs = 0;
  /** One readout; `offByMs`: the newest stamp, as seen from the end of the readout. */
  const read = (offByMs: number | undefined, passMs = 10_000): string | undefined => {
    atMs += passMs;
    const at = offByMs === undefined ? {} : { sourceTime: NOW + atMs + offByMs };
    const readings: readonly (Reading | undefined)[] = [
      undefined,
      { quality: "bad", fault: "stale" },
      { quality: "good", value: 1, ...at },
    ];
    atOnce(clock.watch(readings, NOW + atMs, atMs));
    return clock.warning?.text;
  };
  return { read };
}

test("a clock that is ahead is named after three looks, and no more once it is right", () => {
  const { read } = rig();
  expect([read(120_000), read(120_000), read(120_000)]).toEqual([
    undefined,
    undefined,
    expect.stringContaining("about 2 min ahead of this machine's"),
  ]);
  expect([read(-100), read(-100)]).toEqual([expect.any(String), expect.any(String)]);
  expect(read(-100)).toBeUndefined();
});

test("a stamp that moves and is behind is of a clock that is behind; one that stands still is an old value", () => {
  const behind = rig();
  for (let i = 0; i < 3; i++) behind.read(-3_600_000);
  expect(behind.read(-3_600_000)).toContain("1 h behind this machine's");
  const still = rig();
  let offByMs = -3_600_000;
  for (let i = 0; i < 10; i++, offByMs -= 10_000) expect(still.read(offByMs)).toBeUndefined();
  const ahead = rig();
  for (let i = 0; i < 3; i++) ahead.read(60_000);
  for (let offBy = -1000, i = 0; i < 3; i++, offBy -= 10_000) ahead.read(offBy);
  expect(ahead.read(-31_000)).toBeUndefined();
});

test("a stamp within the interval, small differences and readings without a stamp say nothing; readouts between two looks neither", () => {
  const slow = rig(3_600_000);
  for (let i = 0; i < 5; i++) expect(slow.read(-7_200_000)).toBeUndefined();
  const near = rig();
  for (let i = 0; i < 5; i++) expect([near.read(1500), near.read(undefined)]).toEqual([undefined, undefined]);
  const often = rig();
  for (let i = 0; i < 20; i++) expect(often.read(60_000, 1000)).toBeUndefined();
});
