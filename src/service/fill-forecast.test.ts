import { expect, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { FillForecast } from "./fill-forecast.ts";

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const MINUTE = 60_000;

function forecast() {
  const lines: string[] = [];
  const log = { ...silentLog, warn: (_: object, text: string) => lines.push(text), info: (_: object, text: string) => lines.push(text) };
  const watched = new FillForecast("/var/lib/collector", log);
  let minute = 0;
  return {
    lines,
    notes: () => textsOf(watched.notes()),
    /** One sample a minute: what is free, by the minute since the beginning of these. */
    pass(minutes: number, free: (n: number) => number | undefined) {
      for (let n = 0; n < minutes; n++) watched.add({ atMs: minute++ * MINUTE, freeBytes: free(n) });
    },
  };
}

test("a disk that fills in the last hour is warned of hours before, with the time left; once room is made, that is over", () => {
  const watched = forecast();
  watched.pass(9, (n) => 4 * GIB - n * 10 * MIB);
  // Too short a time says nothing.
  expect(watched.notes()).toEqual([]);
  watched.pass(60, (n) => 4 * GIB - (9 + n) * 10 * MIB);
  expect(watched.notes()).toEqual([
    expect.stringMatching(
      /^the disk of \/var\/lib\/collector is full in about 6 h at the rate of the last hour \(3\.3 GiB free, 600\.0 MiB less each hour\)/,
    ),
  ]);
  expect(watched.lines).toHaveLength(1);
  watched.pass(61, () => 20 * GIB);
  expect([watched.notes(), watched.lines.length, watched.lines[1]]).toEqual([[], 2, "the disk does not fill up any more"]);
});

test("what fills slowly shows over a day, and a burst of an hour on a large disk is no warning", () => {
  const slow = forecast();
  slow.pass(4 * 60, (n) => 10 * GIB - n * 4 * MIB);
  expect(slow.notes()).toEqual([expect.stringMatching(/full in about 39 h at the rate of the last day/)]);
  const burst = forecast();
  burst.pass(20 * 60, () => 100 * GIB);
  burst.pass(30, (n) => 100 * GIB - n * 60 * MIB);
  expect(burst.notes()).toEqual([]);
});

test("a disk that nobody can ask about, clocks of days, and nothing that changes are no warning", () => {
  const watched = forecast();
  watched.pass(600, () => undefined);
  watched.pass(3 * 24 * 60, () => 10 * MIB);
  expect([watched.notes(), watched.lines]).toEqual([[], []]);
});
