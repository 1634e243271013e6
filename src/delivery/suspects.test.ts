import { describe, expect, test } from "vitest";
import type { Job } from "./delivery-queue.ts";
import { type Piece, type Suspect, Suspects } from "./suspects.ts";

const job = (...ids: readonly number[]): Job => ({
  group: {
    layout: 1,
    rows: ids.map((id) => ({ id, layout: 1, time: id, count: 1, explorationCount: 0, payload: new Uint8Array(3) })),
    bytes: 3 * ids.length,
  },
  backlog: true,
  generation: 0,
});
const ONE: readonly Piece[] = [{ row: 1, from: 0, to: 1 }];
const refused = (suspects: Suspects, pieces: readonly Piece[] = ONE) => suspects.addRefused({ layout: 1, backlog: true, pieces });
const next = (suspects: Suspects, nowMs: number): Suspect => {
  const suspect = suspects.next(nowMs, true);
  if (!suspect) throw new Error(`none is due at ${nowMs}`);
  suspects.begin(suspect);
  return suspect;
};

describe("what is under way when the connection is lost", () => {
  test("once is not suspected; twice is; what has arrived between is not", () => {
    const suspects = new Suspects();
    suspects.lostTogether([job(1, 2), job(3, 4)], []);
    expect([job(1, 2), job(3, 4)].map((one) => suspects.isSuspected(one))).toEqual([false, false]);
    suspects.passed(job(3, 4));
    suspects.lostTogether([job(1, 2), job(3, 4)], []);
    expect([job(1, 2), job(3, 4)].map((one) => suspects.isSuspected(one))).toEqual([true, false]);
  });

  test("is written alone, then in smaller messages; what then arrives tells how large messages may be, for a minute and longer each time", () => {
    const suspects = new Suspects();
    let nowMs = 0;
    for (const lastsMs of [60_000, 120_000, 240_000]) {
      suspects.addJob(job(1, 2));
      const sizes: (number | undefined)[] = [];
      for (let losses = 0; losses < 3; losses++) {
        const suspect = next(suspects, nowMs);
        expect(suspect.needsQuiet).toBe(true);
        sizes.push(suspect.maxMessageBytes);
        if (losses < 2) expect(suspects.failed(suspect, [[], []], true, nowMs)).toEqual({ type: "kept" });
        else suspects.arrived(suspect, nowMs);
      }
      expect(sizes).toEqual([undefined, 16_384, 1024]);
      expect(suspects.size).toBe(0);
      nowMs += lastsMs;
      expect([suspects.maxMessageBytes(nowMs - 1), suspects.maxMessageBytes(nowMs)]).toEqual([1024, undefined]);
    }
  });

  test("whose half alone arrives tells nothing of sizes", () => {
    const suspects = new Suspects();
    suspects.addJob(job(1, 2));
    for (let losses = 0; losses < 2; losses++) suspects.failed(next(suspects, losses), undefined, true, losses);
    const halves = [[{ row: 1, from: 0 }], [{ row: 2, from: 0 }]];
    expect(suspects.failed(next(suspects, 2), halves, true, 2)).toEqual({ type: "split" });
    const first = next(suspects, 3);
    expect(first.pieces).toEqual(halves[0]);
    suspects.arrived(first, 3);
    expect(next(suspects, 4).pieces).toEqual(halves[1]);
    expect(suspects.maxMessageBytes(5)).toBeUndefined();
  });
});

describe("a single value that is refused", () => {
  test("each time alone while others pass between is dropped at the third", () => {
    const suspects = new Suspects();
    refused(suspects);
    const verdicts = [];
    for (let nowMs = 0; nowMs < 3000; nowMs += 1000) {
      verdicts.push(suspects.failed(next(suspects, nowMs), undefined, false, nowMs));
      suspects.passed(job(9));
      expect(suspects.next(nowMs + 999, true)).toBeUndefined();
    }
    expect(verdicts).toEqual([{ type: "kept" }, { type: "kept" }, { type: "dropped", failures: 3 }]);
    expect(suspects.size).toBe(0);
  });

  test("while nothing else passes is never dropped, and is tried once a minute in the end", () => {
    const suspects = new Suspects();
    refused(suspects);
    let nowMs = 0;
    const waits: number[] = [];
    for (let i = 0; i < 20; i++) {
      expect(suspects.failed(next(suspects, nowMs), undefined, false, nowMs)).toEqual({ type: "kept" });
      const dueMs = suspects.nextDueMs() ?? 0;
      waits.push(dueMs - nowMs);
      nowMs = dueMs;
    }
    expect([waits[0], waits.at(-1)]).toEqual([1000, 60_000]);
    expect(suspects.isOverwhelmed()).toBe(false);
    suspects.arrived(next(suspects, nowMs), nowMs);
    expect(suspects.size).toBe(0);
  });
});

test("a message is taken apart so often at most, and a broker that refuses everything is given a rest", () => {
  const suspects = new Suspects();
  refused(suspects);
  let tries = 0;
  while (!suspects.isOverwhelmed()) {
    const suspect = suspects.next(0, true);
    if (!suspect) break;
    tries++;
    suspects.failed(suspect, [ONE, ONE], false, 0);
  }
  expect(tries).toBeLessThan(70);
  suspects.opened();
  expect(suspects.isOverwhelmed()).toBe(false);
});

test("what was under way with others needs to be alone, and keeps its count", () => {
  const suspects = new Suspects();
  refused(suspects);
  suspects.failed(next(suspects, 0), undefined, false, 0);
  suspects.lostTogether([job(5)], [next(suspects, 1000)]);
  expect(suspects.next(1000, false)).toBeUndefined();
  expect(next(suspects, 1000)).toMatchObject({ needsQuiet: true, failures: 1 });
});
