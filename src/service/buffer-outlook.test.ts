import { expect, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { BufferOutlook, flowOf } from "./buffer-outlook.ts";

const MIB = 2 ** 20;
const HOUR_S = 3600;

/** A collector that reads so many bytes a second into a buffer that drops with 900 MiB. */
function outlook({ bytesPerS = 1000, warnBelowHours = 12, dropAtBytes = 900 * MIB, maxAgeMs = 30 * 86_400_000, spareBytes = 0 } = {}) {
  const lines: string[] = [];
  const log = { ...silentLog, warn: (_: object, text: string) => lines.push(text), info: (_: object, text: string) => lines.push(text) };
  const watched = new BufferOutlook(log, warnBelowHours * HOUR_S * 1000);
  let second = 0;
  let added = 0;
  let used = MIB;
  let delivered = 0;
  let refused = 0;
  let waitingS = 0;
  return {
    lines,
    left: () => watched.left(),
    notes: () => textsOf(watched.notes()),
    setDiskFree: (bytes: number) => watched.setDiskFree(bytes),
    /** The store counts what was added from zero again. */
    restart: () => {
      added = 0;
    },
    /** Seconds in each of which a sink takes this part of what is read. */
    pass(
      seconds: number,
      { takes = 1, refuses = 0, isOpen = true, pace = 1 }: { takes?: number; refuses?: number; isOpen?: boolean; pace?: number } = {},
    ) {
      // Long times in larger steps: samples of the last minute are a second apart, others a minute.
      const step = seconds > 1000 ? 10 : 1;
      for (let n = 0; n < seconds; n += step) {
        second += step;
        added += step * bytesPerS * pace;
        used += step * bytesPerS * pace * (1 - takes);
        delivered += step * 10 * takes;
        refused += step * 10 * takes * refuses;
        const sent = Math.floor((delivered - refused) / 2);
        waitingS = takes < 1 ? waitingS + step : 0;
        watched.add({
          atMs: second * 1000,
          fill: { usedBytes: used, dropAtBytes, spareBytes, addedBytes: added, ageLeftMs: maxAgeMs - waitingS * 1000 },
          sinks: new Map([
            [
              "a",
              flowOf(
                { accepted: second * 10, delivered: delivered - refused - sent, unconfirmed: sent, filtered: 0, dropped: { refused } },
                isOpen,
              ),
            ],
          ]),
        });
      }
    },
  };
}

test("the hours that are left are known in the first minute of an outage, at the rate of today", () => {
  const watched = outlook({ bytesPerS: 10_000 });
  watched.pass(HOUR_S);
  // 899 MiB at 10,000 bytes a second.
  expect(watched.left()).toMatchObject({ filling: false, bound: "max_bytes" });
  expect(watched.left()?.hours).toBeCloseTo(26.2, 1);
  watched.pass(30, { takes: 0, isOpen: false });
  expect(watched.left()).toMatchObject({ filling: true, bytes_per_hour: 36_000_000 });
  expect(watched.left()?.hours).toBeCloseTo(26.2, 1);
  watched.pass(HOUR_S, { takes: 0, isOpen: false });
  expect(watched.left()?.hours).toBeCloseTo(25.2, 1);
});

test("they are known in the first minute of a collector that starts in an outage", () => {
  const watched = outlook({ bytesPerS: 10_000 });
  watched.pass(15, { takes: 0, isOpen: false });
  expect(watched.left()).toMatchObject({ filling: true, hours: expect.closeTo(26.2, 0) });
});

test("a warning comes with fewer hours than the settings say, and goes with the outage", () => {
  const watched = outlook({ bytesPerS: 30_000 });
  watched.pass(HOUR_S);
  expect(watched.notes()).toEqual([]);
  watched.pass(20, { takes: 0, isOpen: false });
  expect(watched.notes()).toEqual([
    expect.stringMatching(
      /^values wait in the buffer: full in about 9 h at today's rate, then the oldest values are dropped \(1\.6 MiB of 900\.0 MiB in use, 103\.0 MiB more each hour\): .*buffer\.max_bytes makes room$/,
    ),
  ]);
  expect(watched.lines).toHaveLength(1);
  watched.pass(700);
  expect([watched.notes(), watched.lines.length, watched.lines[1]]).toEqual([[], 2, "the buffer does not fill up any more"]);
});

test("a link that takes most of what is read fills the buffer as slowly as it does, and a slow publisher does not", () => {
  const slow = outlook({ bytesPerS: 10_000 });
  slow.pass(HOUR_S, { takes: 0.9 });
  expect(slow.left()).toMatchObject({ filling: true, bytes_per_hour: expect.closeTo(3_600_000, -6) });
  const inBursts = outlook({ bytesPerS: 30_000 });
  for (let n = 0; n < 20; n++) {
    inBursts.pass(119, { takes: 0 });
    inBursts.pass(1, { takes: 120 });
  }
  expect([inBursts.notes(), inBursts.lines]).toEqual([[], []]);
});

test("values that a server refuses for good do not stay in the buffer", () => {
  const watched = outlook({ bytesPerS: 30_000 });
  watched.pass(HOUR_S);
  watched.pass(HOUR_S, { refuses: 0.5, isOpen: false });
  expect([watched.left()?.filling, watched.notes(), watched.lines]).toEqual([false, [], []]);
});

test("an age or a disk that ends before the bound of bytes is what is left", () => {
  const aged = outlook({ maxAgeMs: 2 * HOUR_S * 1000 });
  aged.pass(HOUR_S, { takes: 0, isOpen: false });
  expect(aged.left()).toMatchObject({ bound: "max_age", hours: 1 });
  expect(aged.notes()[0]).toMatch(
    /the oldest values reach buffer\.max_age in about 1 h, then they are dropped .*buffer\.max_age keeps them longer$/,
  );
  const full = outlook({ bytesPerS: 10_000 });
  full.setDiskFree(36_000_000);
  full.pass(60, { takes: 0, isOpen: false });
  expect(full.left()).toMatchObject({ bound: "disk", hours: 1 });
  expect(full.notes()[0]).toMatch(/the disk is full in about 1 h at today's rate, then nothing is stored .*make room on the disk/);
});

test("a disk has room for what fits in the file as it is, too", () => {
  const emptied = outlook({ bytesPerS: 10_000, spareBytes: 36_000_000 });
  emptied.setDiskFree(36_000_000);
  emptied.pass(60, { takes: 0, isOpen: false });
  expect(emptied.left()).toMatchObject({ bound: "disk", hours: 2 });
});

test("a store that starts again, and a shift that reads less, change nothing in the rate of the day", () => {
  const watched = outlook({ bytesPerS: 10_000 });
  watched.pass(5 * HOUR_S);
  watched.restart();
  watched.pass(2 * HOUR_S, { pace: 0.1 });
  // Of seven hours: five at the whole pace.
  expect(watched.left()?.bytes_per_hour).toBeGreaterThan(25_000_000);
});

test("nothing that is read, and no sink, say nothing", () => {
  const watched = outlook({ bytesPerS: 0 });
  watched.pass(120, { takes: 0, isOpen: false });
  expect([watched.left(), watched.notes()]).toEqual([undefined, []]);
});
