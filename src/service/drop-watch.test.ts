import { expect, test } from "vitest";
import type { DropReason } from "../buffer/buffer.ts";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { DropWatch } from "./drop-watch.ts";

const BOUNDS = { maxBytes: 2 ** 20, maxAgeMs: 30 * 86_400_000, keepRemovedMs: 86_400_000 };

function watch() {
  const lines: string[] = [];
  const to = (level: string) => (_: object, text: string) => lines.push(`${level}: ${text}`);
  const drops = new DropWatch({ ...silentLog, error: to("error"), warn: to("warn"), info: to("info") });
  let hour = 0;
  return {
    lines,
    notes: () => textsOf(drops.notes()),
    look(pending: number, dropped: Partial<Record<DropReason, number>>, hours = 1) {
      hour += hours;
      const iso = new Date(Date.UTC(2026, 10, 26, hour)).toISOString();
      drops.look([{ uuid: "a", name: "broker", pending, dropped }], BOUNDS, { monotonicMs: hour * 3_600_000, iso });
    },
  };
}

test("the first value that is thrown away is told, with since when, how many and which setting; then how many by now, until the sink takes them", () => {
  const { look, lines, notes } = watch();
  look(1000, { buffer_full: 40 });
  // Those of an earlier run were told in it.
  expect([lines, notes()]).toEqual([[], []]);
  look(1000, { buffer_full: 104 });
  expect(lines).toEqual([
    "error: the buffer is full: the oldest values of broker are thrown away since 2026-11-26T02:00:00.000Z, 64 so far (buffer_full), and will never be delivered; buffer.max_bytes (1.0 MiB) makes room, collector status says why the data sink does not take them",
  ]);
  look(1100, { buffer_full: 104 });
  look(1000, { buffer_full: 240 });
  expect(notes()).toEqual([expect.stringMatching(/since 2026-11-26T02:00:00\.000Z, 200 so far/)]);
  expect(lines).toHaveLength(1);
  look(400, { buffer_full: 240 });
  expect(notes()).toEqual([]);
  expect(lines.slice(1)).toEqual([
    "info: the buffer drops no more values of broker: 200 were dropped from 2026-11-26T02:00:00.000Z on (buffer_full)",
  ]);
});

test("a file that was lost counts from the beginning, and so does what is told", () => {
  const { look, lines, notes } = watch();
  look(1000, { buffer_full: 40 });
  look(1000, { buffer_full: 140 });
  look(1000, {});
  expect(notes()).toEqual([]);
  look(1000, { buffer_full: 5 });
  expect(notes()).toEqual([expect.stringMatching(/, 5 so far \(buffer_full\)/)]);
  expect(lines).toHaveLength(2);
});

test("values that get too old name the setting of the age, and are over after a long time without any", () => {
  const { look, lines, notes } = watch();
  look(10, {});
  look(10, { too_old: 3 });
  expect(notes()).toEqual([expect.stringMatching(/^values are too old for the buffer: .*3 so far \(too_old\).*buffer\.max_age \(30 d\)/)]);
  look(10, { too_old: 3 }, 9);
  expect([notes().length, lines.length]).toEqual([0, 2]);
});

test("what nobody came back for is told in the log, and is no alarm", () => {
  const { look, lines, notes } = watch();
  look(50, {});
  look(0, { sink_removed: 50 });
  expect(lines).toEqual([
    expect.stringMatching(
      /^warn: values of broker .* 50 so far \(sink_removed\): the data sink was removed, and buffer\.keep_removed \(1 d\)/,
    ),
  ]);
  expect(notes()).toEqual([]);
});

test("what a sink refuses is its own to tell", () => {
  const { look, lines } = watch();
  look(50, {});
  look(0, { refused: 20, damaged: 30 });
  expect(lines).toEqual([]);
});
