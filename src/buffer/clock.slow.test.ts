import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { clockStateOf } from "../model/clock.ts";
import type { NewBatch } from "./buffer.ts";
import type { BufferFile } from "./buffer-file.ts";
import { encodeReadout } from "./codec.ts";
import { markFile } from "./mark.ts";
import { openReader } from "./reader.ts";
import { A, acknowledge, append, batch, expectExact, layout, layouts, ledgerOf, NOW, open, rowIds } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { plainReadout } from "./testing/readouts.ts";

const PAGE_BYTES = 4096;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** A machine: its wall clock may be set, the time since its start goes on. `boot` is a start of it. */
function machine(wallMs: number) {
  const state = { monotonicMs: 0, setMs: wallMs, boot: "boot-1", synced: false };
  const now = () => state.setMs + state.monotonicMs;
  let seq = 0;
  return {
    state,
    now,
    options: () => ({ now, monotonicMs: () => state.monotonicMs, upMs: () => state.monotonicMs, boot: state.boot }),
    read: (): NewBatch => ({
      ...batch(++seq, 8, 2, now()),
      payload: encodeReadout(layout, { ...plainReadout(10, seq), clockSynced: state.synced }).payload,
      clockSynced: state.synced,
      bootTimeMs: state.setMs,
    }),
    /** Time goes by: the store looks every few seconds, as it does. */
    pass(buffer: BufferFile, ms: number) {
      for (const endMs = state.monotonicMs + ms; state.monotonicMs < endMs; ) {
        state.monotonicMs = Math.min(endMs, state.monotonicMs + Math.max(1000, ms / 200));
        while (buffer.maintain());
      }
    },
  };
}

function rig(wallMs: number, more: { maxAgeMs?: number } = {}) {
  const folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  const box = machine(wallMs);
  const reopened = () => open(file, { ...box.options(), onAlarm: () => {}, ...more });
  const buffer = reopened();
  buffer.setSinks([A]);
  const seen = () => {
    const reader = openReader(file);
    const rows = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    reader.close();
    return rows.map(({ id, time, correctionMs }) => ({
      id,
      time,
      state: clockStateOf({ clockSynced: false, ...(correctionMs !== undefined && { clockCorrectionMs: correctionMs }) }),
    }));
  };
  return { file, box, buffer, reopened, seen, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

describe("ages", () => {
  it("a box that starts in 1970 and is then set keeps all that it had read, and drops it when it is old by time that passed", () => {
    using at = rig(0, { maxAgeMs: DAY });
    const { box, buffer, file } = at;
    append(buffer, box.read(), box.read());
    box.pass(buffer, HOUR);
    box.state.setMs = NOW;
    box.pass(buffer, 23 * HOUR - 20 * MINUTE);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 16, dropped: {} });
    box.pass(buffer, HOUR);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 0, dropped: { too_old: 16 } });
    expectExact(buffer, file);
    buffer.close();
  });

  it("a clock that is ten years ahead for 4 s drops nothing, not at run and not at a start", () => {
    using at = rig(NOW, { maxAgeMs: DAY });
    const { box } = at;
    append(at.buffer, box.read(), box.read());
    box.pass(at.buffer, MINUTE);
    box.state.setMs += 10 * YEAR;
    box.pass(at.buffer, 4000);
    box.state.setMs -= 10 * YEAR;
    box.pass(at.buffer, 2 * HOUR);
    expect(ledgerOf(at.buffer, "a")).toMatchObject({ pending: 16, dropped: {} });
    at.buffer.close();
    box.state.setMs += 10 * YEAR;
    const next = at.reopened();
    box.pass(next, 4000);
    box.state.setMs -= 10 * YEAR;
    box.pass(next, 3 * HOUR);
    expect(ledgerOf(next, "a")).toMatchObject({ pending: 16, dropped: {} });
    box.pass(next, DAY);
    expect(ledgerOf(next, "a")).toMatchObject({ pending: 0, dropped: { too_old: 16 } });
    expectExact(next, at.file);
    next.close();
  });

  it("nothing goes by its age within a minute of a step, and all that is due goes after it", () => {
    using at = rig(NOW, { maxAgeMs: HOUR });
    const { box, buffer } = at;
    append(buffer, box.read());
    box.pass(buffer, HOUR - 10_000);
    box.state.setMs -= DAY;
    box.pass(buffer, 50_000);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 8 });
    box.pass(buffer, 30_000);
    expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 0, dropped: { too_old: 8 } });
    buffer.close();
  });

  it("time in which nothing ran counts, an hour after the start, for what was there before", () => {
    using at = rig(NOW, { maxAgeMs: DAY });
    const { box } = at;
    append(at.buffer, box.read());
    box.pass(at.buffer, HOUR);
    at.buffer.close();
    box.state.monotonicMs += 2 * DAY;
    const next = at.reopened();
    append(next, box.read());
    box.pass(next, HOUR - MINUTE);
    expect(rowIds(at.file)).toHaveLength(2);
    box.pass(next, 2 * MINUTE);
    expect(ledgerOf(next, "a")).toMatchObject({ pending: 8, dropped: { too_old: 8 } });
    expectExact(next, at.file);
    next.close();
  });

  it("the last values get too old although no more come", () => {
    using at = rig(NOW, { maxAgeMs: HOUR });
    append(at.buffer, at.box.read());
    at.box.pass(at.buffer, HOUR + MINUTE);
    expect(ledgerOf(at.buffer, "a")).toMatchObject({ pending: 0, dropped: { too_old: 8 } });
    at.buffer.close();
  });
});

describe("stamps of a clock that is not synchronised", () => {
  it("are corrected by the step, and marked so, once the clock is synchronised; those of before and after are not touched", () => {
    using at = rig(5000);
    const { box, buffer, seen } = at;
    append(buffer, box.read());
    box.pass(buffer, 10_000);
    append(buffer, box.read());
    box.state.setMs = NOW;
    box.pass(buffer, 1000);
    append(buffer, box.read());
    expect(seen().map(({ state }) => state)).toEqual(["unsynchronised", "unsynchronised", "unsynchronised"]);
    box.state.synced = true;
    append(buffer, box.read());
    expect(seen()).toEqual([
      { id: 1, time: NOW, state: "corrected" },
      { id: 2, time: NOW + 10_000, state: "corrected" },
      // It was right, which nobody knew.
      { id: 3, time: NOW + 11_000, state: "synchronised" },
      { id: 4, time: NOW + 11_000, state: "unsynchronised" },
    ]);
    buffer.close();
  });

  it("are corrected a minute after the clock was set by hand, and not by a step that was taken back", () => {
    using at = rig(NOW);
    const { box, buffer, seen } = at;
    append(buffer, box.read());
    box.state.setMs += 10 * YEAR;
    box.pass(buffer, 4000);
    append(buffer, box.read());
    box.state.setMs -= 10 * YEAR;
    box.pass(buffer, 1000);
    append(buffer, box.read());
    expect(seen().every(({ state }) => state === "unsynchronised")).toBe(true);
    box.pass(buffer, MINUTE);
    append(buffer, box.read());
    expect(seen().slice(0, 2)).toEqual([
      { id: 1, time: NOW, state: "synchronised" },
      { id: 2, time: NOW + 4000, state: "corrected" },
    ]);
    buffer.close();
  });

  it("that a sink was sent stay as they are, through the step and a restart; their neighbours are corrected", () => {
    using at = rig(0);
    const { box } = at;
    append(at.buffer, box.read(), box.read(), box.read());
    at.buffer.commit({ run: "r1", layouts: [], batches: [], acknowledgements: [], stampsUsed: [2] });
    at.buffer.close();
    const next = at.reopened();
    box.state.setMs = NOW;
    box.state.synced = true;
    next.commit({ run: "r2", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    const expected = [
      { id: 1, time: NOW, state: "corrected" },
      { id: 2, time: 0, state: "unsynchronised" },
      { id: 3, time: NOW, state: "corrected" },
    ];
    expect(at.seen().slice(0, 3)).toEqual(expected);
    next.close();
    const last = at.reopened();
    box.state.setMs += DAY;
    last.commit({ run: "r3", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    expect(at.seen().slice(0, 3)).toEqual(expected);
    last.close();
  });

  it("of an earlier start of the machine are not corrected by what is known of this one", () => {
    using at = rig(0);
    const { box } = at;
    append(at.buffer, box.read());
    at.buffer.close();
    box.state.boot = "boot-2";
    box.state.setMs = NOW;
    box.state.synced = true;
    const next = at.reopened();
    next.commit({ run: "r2", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    expect(at.seen()[0]).toEqual({ id: 1, time: 0, state: "unsynchronised" });
    next.close();
  });
});

describe("times of losses", () => {
  /** Drops a batch as refused. */
  const refuse = (buffer: BufferFile, ...ids: number[]) =>
    acknowledge(buffer, { sink: "a", ids, delivered: 0, dropped: { refused: ids.length * 8 } });
  const lossesIn = (file: string) => {
    const reader = openReader(file);
    const losses = reader.losses("a").map(({ reason, from, to, values, clock }) => [reason, from, to, values, clock]);
    reader.close();
    return losses;
  };

  it("that a wrong clock stamped are flagged, and corrected once it is set, whether values were dropped before or after that", () => {
    using at = rig(5000);
    const { box, buffer, file } = at;
    append(buffer, box.read(), box.read());
    box.pass(buffer, 10_000);
    append(buffer, box.read());
    refuse(buffer, 1, 3);
    buffer.commit({
      run: "r1",
      layouts: [],
      batches: [],
      acknowledgements: [],
      overflowOfRun: 10,
      rejectedSpans: { overflow: { from: 6000, to: 7000, fromBootTimeMs: 5000, toBootTimeMs: 5000, explorationCount: 2 } },
    });
    expect(lossesIn(file)).toEqual([
      ["refused", 5000, 15_000, 16, "unsynchronised"],
      ["overflow", 6000, 7000, 8, "unsynchronised"],
    ]);
    box.state.setMs = NOW;
    box.state.synced = true;
    append(buffer, box.read());
    expect(lossesIn(file)).toEqual([
      ["refused", NOW, NOW + 10_000, 16, "corrected"],
      ["overflow", NOW + 1000, NOW + 2000, 8, "corrected"],
    ]);
    refuse(buffer, 2, 4);
    expect(lossesIn(file)[0]).toEqual(["refused", NOW, NOW + 10_000, 32, "corrected"]);
    buffer.close();
  });

  it("of batches that a sink was sent have the stamps they had, and of an earlier start of the machine stay flagged", () => {
    using at = rig(0);
    const { box } = at;
    append(at.buffer, box.read(), box.read());
    at.buffer.commit({ run: "r1", layouts: [], batches: [], acknowledgements: [], stampsUsed: [1] });
    refuse(at.buffer, 1);
    at.buffer.close();
    box.state.boot = "boot-2";
    const next = at.reopened();
    refuse(next, 2);
    box.state.setMs = NOW;
    box.state.synced = true;
    next.commit({ run: "r2", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    expect(lossesIn(at.file)).toEqual([["refused", 0, 0, 16, "unsynchronised"]]);
    next.close();
  });

  it("that a right clock stamped are not flagged, nor those of one that turns out to have been right", () => {
    using at = rig(NOW);
    const { box, buffer, file } = at;
    append(buffer, box.read());
    refuse(buffer, 1);
    expect(lossesIn(file)).toEqual([["refused", NOW, NOW, 8, "unsynchronised"]]);
    box.state.synced = true;
    append(buffer, box.read());
    expect(lossesIn(file)).toEqual([["refused", NOW, NOW, 8, undefined]]);
    refuse(buffer, 2);
    expect(lossesIn(file)).toEqual([["refused", NOW, NOW, 16, undefined]]);
    buffer.close();
  });

  it("that end when a file was missed are flagged until a readout's clock vouches for them, and corrected where it was set", () => {
    using at = rig(NOW);
    const { box, buffer, file } = at;
    box.state.synced = true;
    append(buffer, box.read());
    buffer.close();
    rmSync(file);
    box.state.monotonicMs += HOUR;
    const next = at.reopened();
    expect(lossesIn(file)).toEqual([["lost", NOW, NOW + HOUR, null, "unsynchronised"]]);
    next.setSinks([A]);
    next.commit({ run: "r2", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    expect(lossesIn(file)).toEqual([["lost", NOW, NOW + HOUR, null, undefined]]);
    next.close();
    rmSync(file);
    box.state.boot = "boot-2";
    box.state.setMs -= DAY;
    box.state.synced = false;
    const last = at.reopened();
    last.setSinks([A]);
    box.state.setMs += DAY;
    box.state.synced = true;
    last.commit({ run: "r3", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    expect(lossesIn(file)).toEqual([["lost", NOW + HOUR, NOW + HOUR, null, "corrected"]]);
    last.close();
  });

  it("that begin with readouts of a wrong clock are flagged where their file was missed", () => {
    using at = rig(0);
    const { box, buffer, file } = at;
    append(buffer, box.read());
    buffer.close();
    rmSync(file);
    box.state.boot = "boot-2";
    box.state.setMs = NOW;
    box.state.synced = true;
    const next = at.reopened();
    next.setSinks([A]);
    next.commit({ run: "r2", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
    expect(lossesIn(file)).toEqual([["lost", 0, NOW, null, "unsynchronised"]]);
    next.close();
  });

  it("that end when a damaged file was salvaged are flagged until a readout's clock vouches for them", () => {
    using at = rig(NOW);
    const { box, buffer, file } = at;
    box.state.synced = true;
    append(buffer, ...Array.from({ length: 200 }, () => box.read()));
    buffer.close();
    const [whole, mark] = [readFileSync(file), readFileSync(markFile(file))];
    box.state.monotonicMs += HOUR;
    const endsNow = Array.from({ length: whole.length / PAGE_BYTES - 1 }, (_, page) => {
      const damaged = Buffer.from(whole);
      damaged.fill(0, (page + 1) * PAGE_BYTES, (page + 2) * PAGE_BYTES);
      writeFileSync(file, damaged);
      writeFileSync(markFile(file), mark);
      const next = open(file, { ...box.options(), onAlarm: () => {} });
      const before = lossesIn(file);
      next.commit({ run: "r2", layouts, batches: [{ ...box.read(), seq: 1 }], acknowledgements: [] });
      const after = lossesIn(file);
      next.close();
      return before.flatMap(([reason, from, to, values, clock]) =>
        reason === "damaged" && to === NOW + HOUR
          ? [{ clock, after: after.find(([, ...same]) => same[0] === from && same[1] === to && same[2] === values)?.at(-1) }]
          : [],
      );
    }).flat();
    expect(endsNow.length).toBeGreaterThan(0);
    expect(new Set(endsNow.map(({ clock, after }) => `${clock} ${after}`))).toEqual(new Set(["unsynchronised undefined"]));
  });

  it("between which a wrong clock stamped others are flagged, although those of both ends were right", () => {
    using at = rig(NOW);
    const { box, buffer, file } = at;
    box.state.synced = true;
    append(buffer, box.read());
    box.state.synced = false;
    box.pass(buffer, 1000);
    append(buffer, box.read());
    buffer.commit({ run: "r1", layouts: [], batches: [], acknowledgements: [], stampsUsed: [2] });
    box.state.synced = true;
    box.pass(buffer, 1000);
    append(buffer, box.read());
    refuse(buffer, 1, 2, 3);
    expect(lossesIn(file)).toEqual([["refused", NOW, NOW + 2000, 24, "unsynchronised"]]);
    // What comes to an open loss hides nothing of it.
    box.pass(buffer, 1000);
    append(buffer, box.read());
    refuse(buffer, 4);
    expect(lossesIn(file)).toEqual([["refused", NOW, NOW + 3000, 32, "unsynchronised"]]);
    buffer.close();
  });
});
