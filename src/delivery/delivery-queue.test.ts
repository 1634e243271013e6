import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Position, StoredBatch } from "../buffer/buffer.ts";
import { isPending } from "../buffer/position.ts";
import { acknowledge as acknowledgePosition } from "../buffer/testing/acknowledge.ts";
import { DeliveryQueue, type DeliveryQueueOptions, type Job } from "./delivery-queue.ts";

const SOURCES = 3;
const row = (id: number): StoredBatch => ({
  id,
  layout: id % SOURCES,
  time: id * 100,
  count: 1,
  explorationCount: 0,
  payload: new Uint8Array(10),
});
const idsOf = (job: Job | undefined): number[] => job?.group.rows.map(({ id }) => id) ?? [];
const done = (job: Job) => job.group.rows.map(() => ({ delivered: 1, dropped: {} }));

/** A queue on a file that holds the rows 1..n. */
function setUp(more: Partial<DeliveryQueueOptions> = {}) {
  let rows: StoredBatch[] = [];
  let position: Position = { older: [], live: 1 };
  let unstored = 0;
  const queue = new DeliveryQueue({
    keepsAll: true,
    inOrder: false,
    intervalMs: 100,
    maxBytes: 1000,
    maxReadouts: 100,
    maxLiveBytes: 1000,
    maxReadBytes: 50,
    keyOf: ({ layout }) => `${layout}`,
    read: (from, to, maxBytes) => rows.filter(({ id }) => id >= from && id < to).slice(0, Math.max(1, Math.floor(maxBytes / 10))),
    acknowledge({ ids }) {
      for (const id of ids) expect(isPending(position, id)).toBe(true);
      position = acknowledgePosition(position, ids);
    },
    deliveredUnstored(values) {
      unstored += values;
    },
    ...more,
  });
  return {
    queue,
    position: () => position,
    unstored: () => unstored,
    commit(count: number): readonly StoredBatch[] {
      const fresh = Array.from({ length: count }, (_, i) => row(rows.length + i + 1));
      rows = [...rows, ...fresh];
      return fresh;
    },
    attach: () => queue.attach({ position, nextId: rows.length + 1 }),
    nextId: () => rows.length + 1,
  };
}
const settleAll = (queue: DeliveryQueue, inFlight = 8): number[] => {
  const written: number[] = [];
  for (let job = queue.next(Number.POSITIVE_INFINITY, inFlight); job; job = queue.next(Number.POSITIVE_INFINITY, inFlight)) {
    written.push(...idsOf(job));
    queue.settle(job, done(job));
  }
  return written;
};

describe("live and older rows", () => {
  test("live first, one in four for the older ones, each in order", () => {
    const { queue, commit, attach } = setUp();
    commit(20);
    attach();
    queue.open();
    queue.take(commit(10), 0);
    const lanes: string[] = [];
    const ids = { live: [] as number[], older: [] as number[] };
    for (let job = queue.next(1e6, 2); job; job = queue.next(1e6, 2)) {
      lanes.push(job.backlog ? "o" : "L");
      ids[job.backlog ? "older" : "live"].push(...idsOf(job));
      queue.settle(job, done(job));
    }
    expect(lanes.join("").slice(0, 13)).toBe("LLLoLLLoLLLoL");
    expect(ids.live).toEqual([...ids.live].sort((a, b) => a - b));
    expect(ids.older).toEqual([...ids.older].sort((a, b) => a - b));
    expect([ids.live.length, ids.older.length]).toEqual([10, 20]);
  });

  test("older ones take half of what is under way at most", () => {
    const { queue, commit, attach } = setUp();
    commit(30);
    attach();
    queue.open();
    const jobs = [queue.next(0, 4), queue.next(0, 4), queue.next(0, 4)];
    expect(jobs.map((job) => job?.backlog)).toEqual([true, true, undefined]);
    queue.take(commit(1), 0);
    expect(queue.next(1e6, 4)?.backlog).toBe(false);
  });

  test("a window of one write serves both", () => {
    const { queue, commit, attach } = setUp();
    commit(10);
    attach();
    queue.open();
    queue.take(commit(10), 0);
    expect(settleAll(queue, 1).sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });
});

describe("what a sink takes of older ones", () => {
  const WRITTEN_BYTES = 100;
  const setUpOlder = (maxOlderBytes?: number) => {
    const set = setUp({
      intervalMs: 10_000,
      maxReadBytes: 1000,
      writtenBytesOf: () => WRITTEN_BYTES,
      ...(maxOlderBytes && { maxOlderBytes }),
    });
    set.commit(60);
    set.attach();
    set.queue.open();
    return set;
  };

  test("a group is as large as it may be when it is written, not when it was read", () => {
    const { queue, position, nextId } = setUpOlder();
    const sizes: number[] = [];
    const written: number[] = [];
    // The link carries more with each write.
    for (let bytes = WRITTEN_BYTES / 2; ; bytes *= 2) {
      const job = queue.next(0, 8, { writes: 4, bytes });
      if (!job) break;
      sizes.push(job.group.rows.length);
      expect(job.group.writtenBytes).toBe(job.group.rows.length * WRITTEN_BYTES);
      expect(job.group.bytes).toBe(job.group.rows.length * 10);
      written.push(...idsOf(job));
      queue.settle(job, done(job));
    }
    // Of 20 rows each in the three sources.
    expect(sizes).toEqual([1, 1, 2, 4, 8, 4, 20, 20]);
    for (const source of [0, 1, 2]) {
      const ofSource = written.filter((id) => id % SOURCES === source);
      expect(ofSource).toEqual([...ofSource].sort((a, b) => a - b));
    }
    expect(position()).toEqual({ older: [], live: nextId() });
  });

  test("so many writes, whatever waits of newer ones, which have the others", () => {
    const { queue, commit } = setUpOlder();
    queue.take(commit(30), 0);
    const jobs = Array.from({ length: 12 }, (_, n) => queue.next(1e6 + n * 1000, 12, { writes: 2, bytes: WRITTEN_BYTES }));
    expect(jobs.filter((job) => job?.backlog)).toHaveLength(2);
  });

  test("bytes of which newer ones have a part, however large the groups", () => {
    const { queue, commit } = setUpOlder(2.5 * WRITTEN_BYTES);
    const older = { writes: 50, bytes: WRITTEN_BYTES };
    const jobs = Array.from({ length: 5 }, () => queue.next(0, 100, older)).filter((job) => job !== undefined);
    expect(jobs).toHaveLength(3);
    queue.take(commit(1), 0);
    expect(queue.next(1e6, 100, older)?.backlog).toBe(false);
    for (const job of jobs.slice(0, 1)) queue.settle(job, done(job));
    expect(queue.next(1e6, 100, older)?.backlog).toBe(true);
    queue.close();
    queue.open();
    // Nothing is under way any more.
    expect(Array.from({ length: 5 }, () => queue.next(1e6, 100, older)).filter((job) => job !== undefined)).toHaveLength(3);
  });
});

describe("in order", () => {
  test("what is committed waits behind the older ones, which take all that may be under way; then it is live", () => {
    const { queue, commit, attach, nextId, position } = setUp({ inOrder: true });
    commit(30);
    attach();
    queue.open();
    const older = Array.from({ length: 6 }, () => queue.next(0, 4)).filter((job) => job !== undefined);
    expect(older.map(({ backlog }) => backlog)).toEqual([true, true, true, true]);
    queue.take(commit(6), 0);
    for (const job of older) queue.settle(job, done(job));
    const rest: Job[] = [];
    for (let job = queue.next(0, 4); job; job = queue.next(0, 4)) {
      rest.push(job);
      queue.settle(job, done(job));
    }
    expect(rest.every(({ backlog }) => backlog)).toBe(true);
    expect(position()).toEqual({ older: [], live: nextId() });
    queue.take(commit(1), 0);
    expect(queue.next(1e6, 4)).toMatchObject({ backlog: false });
  });

  test("ids that were committed and did not come are waited for", () => {
    const { queue, commit, attach, nextId } = setUp({ inOrder: true, intervalMs: 1e9 });
    attach();
    queue.open();
    queue.take(commit(3), 0);
    commit(3);
    queue.advance(nextId());
    queue.take(commit(3), 0);
    const written: number[] = [];
    for (let job = queue.next(0, 8); job; job = queue.next(0, 8)) {
      written.push(...idsOf(job));
      queue.settle(job, done(job));
    }
    for (let source = 0; source < SOURCES; source++) {
      const own = written.filter((id) => id % SOURCES === source);
      expect(own).toEqual([...own].sort((a, b) => a - b));
    }
    expect(written.length).toBe(9);
  });
});

test("what exceeds the memory is left to the file, and comes from there", () => {
  const { queue, commit, attach, position, nextId } = setUp({ maxLiveBytes: 100, intervalMs: 1e9 });
  attach();
  queue.open();
  queue.take(commit(25), 0);
  const first = queue.next(0, 8);
  expect(first?.backlog).toBe(true);
  if (first) queue.settle(first, done(first));
  settleAll(queue);
  expect(position()).toEqual({ older: [], live: nextId() });
});

test("a sink of current values reads nothing and acknowledges nothing", () => {
  const { queue, commit, position } = setUp({ keepsAll: false });
  expect(queue.isAttached()).toBe(true);
  queue.take(commit(5), 0);
  queue.open();
  queue.take(commit(5), 0);
  expect(settleAll(queue)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
  expect(position()).toEqual({ older: [], live: 1 });
});

test("a sink of current values gets the last row of each source at each opening, until the file is another one", () => {
  const { queue, commit } = setUp({ keepsAll: false });
  queue.take(commit(5), 0);
  queue.takeUnstored([{ ...row(1), id: -1 }], 0);
  for (let opening = 0; opening < 2; opening++) {
    queue.open();
    expect(settleAll(queue)).toEqual([3, 5, -1]);
    queue.close();
  }
  queue.detach();
  queue.open();
  expect(settleAll(queue)).toEqual([]);
});

test("a sink of current values that does not keep up gets the last row of each source all the same", () => {
  const { queue, commit } = setUp({ keepsAll: false, maxLiveBytes: 50 });
  queue.open();
  const [first, ...rows] = commit(30);
  if (first) queue.take([first], 0);
  queue.take(
    rows.filter(({ layout }) => layout !== first?.layout),
    0,
  );
  const written = settleAll(queue);
  expect(written).toEqual(expect.arrayContaining([1, 29, 30]));
  expect(written.length).toBeLessThanOrEqual(5);
  expect(settleAll(queue)).toEqual([]);
});

test("what is kept for an opening is bounded in bytes", () => {
  const { queue, commit } = setUp({ keepsAll: false, maxLiveBytes: 10 });
  queue.take(commit(9), 0);
  queue.open();
  expect([...queue.keptBack]).toEqual([["1", 10]]);
  expect(settleAll(queue)).toEqual([8, 9]);
  queue.take(commit(1), 0);
  expect(settleAll(queue)).toEqual([10]);
  expect([...queue.keptBack]).toEqual([]);
});

const sized = (id: number, bytes: number): StoredBatch => ({ ...row(id), payload: new Uint8Array(bytes) });

describe("a readout larger than the bound of memory", () => {
  test.each([
    ["in one commit with another source", [sized(1, 66), sized(2, 1)]],
    ["behind another source", [sized(1, 1), sized(2, 66)]],
    ["beside one that is as large", [sized(1, 52), sized(2, 52)]],
  ])("reaches a sink of current values: %s", (_, rows) => {
    const { queue } = setUp({ keepsAll: false, maxLiveBytes: 60 });
    queue.open();
    queue.take(rows, 0);
    expect(settleAll(queue).sort()).toEqual([1, 2]);
    queue.close();
    queue.open();
    expect(settleAll(queue).sort()).toEqual([1, 2]);
  });

  test.each([true, false])("reaches a sink while the file takes nothing (whole history: %s)", (keepsAll) => {
    const { queue, attach } = setUp({ keepsAll, maxLiveBytes: 60 });
    attach();
    queue.open();
    queue.takeUnstored([sized(-1, 66)], 0);
    expect(settleAll(queue)).toEqual([-1]);
  });

  test("the newest of each source that finds no room is named until the source is written again", () => {
    const { queue } = setUp({ keepsAll: false, maxLiveBytes: 60 });
    queue.open();
    queue.take([sized(1, 52), sized(2, 52), sized(3, 52)], 0);
    expect([...queue.keptBack]).toEqual([["1", 52]]);
    expect(settleAll(queue)).toEqual([2, 3]);
    queue.take([sized(4, 52)], 0);
    expect([settleAll(queue), queue.keptBack.size]).toEqual([[4], 0]);
    queue.take([sized(5, 52), sized(6, 52), sized(7, 52)], 0);
    queue.retainSources(new Set(["0", "1"]));
    expect(queue.keptBack.size).toBe(0);
  });

  test("and what is stored afterwards ends it, also while the sink is closed or takes older ones first", () => {
    const { queue, attach, commit } = setUp({ maxLiveBytes: 60, inOrder: true });
    attach();
    queue.open();
    queue.takeUnstored([sized(-1, 66), { ...sized(-2, 10), layout: 1 }], 0);
    expect([...queue.keptBack]).toEqual([["1", 10]]);
    queue.close();
    queue.take(commit(1), 0);
    expect(queue.keptBack.size).toBe(0);
  });

  test("of a sink of the whole history what no file takes and finds no room is named", () => {
    const { queue, attach } = setUp({ maxLiveBytes: 60 });
    attach();
    queue.open();
    queue.takeUnstored([sized(-1, 66), sized(-2, 10)], 0);
    expect([...queue.keptBack]).toEqual([["-2", 10]]);
    expect(settleAll(queue)).toEqual([-1]);
  });
});

test("a job from before a loss settles nothing", () => {
  const { queue, commit, attach, position } = setUp();
  attach();
  queue.open();
  queue.take(commit(1), 0);
  const job = queue.next(1e6, 8);
  queue.close();
  if (job) queue.settle(job, done(job));
  expect(position()).toEqual({ older: [], live: 1 });
  queue.open();
  expect(settleAll(queue)).toEqual([1]);
});

type Step = { readonly do: "commit" | "next" | "settle" | "lose" | "restart" | "skip"; readonly n: number };
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom("commit", "commit", "next", "next", "next", "settle", "settle", "lose", "restart", "skip"),
  n: fc.integer({ min: 1, max: 12 }),
});

test.each([false, true])("whatever happens (in order: %s): all is written at least once, and in the end nothing is pending", (inOrder) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const { queue, commit, attach, position, nextId } = setUp({ inOrder, maxLiveBytes: 200, intervalMs: 300 });
      const written = new Set<number>();
      /** By source, in the order of their first beginning. */
      const begun = Array.from({ length: SOURCES }, () => new Set<number>());
      const begin = (ids: readonly number[]): void => {
        for (const id of ids) begun[id % SOURCES]?.add(id);
      };
      let jobs: Job[] = [];
      let nowMs = 0;
      attach();
      queue.open();
      for (const { do: what, n } of steps) {
        nowMs += 100;
        if (what === "commit") queue.take(commit(n), nowMs);
        else if (what === "skip") {
          commit(n);
          // Without it the next rows that come show what is missing before them.
          if (n % 2 === 0) queue.advance(nextId());
        } else if (what === "next") {
          const job = queue.next(nowMs, 8);
          if (job) jobs.push(job);
          begin(idsOf(job));
        } else if (what === "settle") {
          const [job] = jobs.splice(n % Math.max(1, jobs.length), 1);
          if (!job) continue;
          for (const id of idsOf(job)) written.add(id);
          queue.settle(job, done(job));
        } else if (what === "lose") {
          queue.close();
          if (n > 6) queue.take(commit(2), nowMs);
          queue.open();
        } else {
          jobs = [];
          attach();
        }
        expect(position().older.length).toBeLessThanOrEqual(16);
      }
      queue.advance(nextId());
      for (const job of jobs) {
        for (const id of idsOf(job)) written.add(id);
        queue.settle(job, done(job));
      }
      for (const id of settleAll(queue)) {
        begin([id]);
        written.add(id);
      }
      if (inOrder) for (const ids of begun) expect([...ids]).toEqual([...ids].sort((a, b) => a - b));
      expect(position()).toEqual({ older: [], live: nextId() });
      expect(written.size).toBe(nextId() - 1);
    }),
    { numRuns: 500 },
  );
});

describe("unstored rows", () => {
  const unstoredRow = (seq: number): StoredBatch => ({ ...row(seq), id: -seq, layout: -1 });

  test("go among the live ones, are counted apart and acknowledged never", () => {
    const { queue, commit, attach, position, unstored } = setUp();
    attach();
    queue.open();
    queue.take(commit(2), 0);
    queue.takeUnstored([unstoredRow(1), unstoredRow(2)], 0);
    const before = position();
    const jobs = [];
    for (let job = queue.next(Number.POSITIVE_INFINITY, 8); job; job = queue.next(Number.POSITIVE_INFINITY, 8)) jobs.push(job);
    expect(jobs.flatMap(idsOf).sort((a, b) => a - b)).toEqual([-2, -1, 1, 2]);
    for (const job of jobs.filter((one) => idsOf(one).some((id) => id < 0))) queue.settle(job, done(job));
    expect(unstored()).toBe(2);
    expect(position()).toEqual(before);
  });

  test("are dropped where they find no room or the sink is closed, and never asked of the file", () => {
    const { queue, attach, unstored } = setUp({ maxLiveBytes: 25 });
    attach();
    queue.takeUnstored([unstoredRow(1)], 0);
    queue.open();
    queue.takeUnstored([unstoredRow(2), unstoredRow(3), unstoredRow(4)], 0);
    expect(settleAll(queue)).toEqual([-2, -3]);
    queue.takeUnstored([unstoredRow(5)], 0);
    queue.close();
    queue.open();
    expect(settleAll(queue)).toEqual([]);
    expect(unstored()).toBe(2);
  });

  test("do not come back as older rows when there are too many live ones", () => {
    const { queue, commit, attach } = setUp({ maxLiveBytes: 25 });
    attach();
    queue.open();
    queue.takeUnstored([unstoredRow(1)], 0);
    queue.take(commit(2), 0);
    expect(settleAll(queue)).toEqual([-1, 1, 2]);
  });
});

describe("held rows", () => {
  const flowOf = () => {
    const set = setUp();
    set.attach();
    set.queue.open();
    return set;
  };
  const jobsOf = (queue: DeliveryQueue): Job[] => {
    const jobs: Job[] = [];
    for (let job = queue.next(Number.POSITIVE_INFINITY, 100); job; job = queue.next(Number.POSITIVE_INFINITY, 100)) jobs.push(job);
    return jobs;
  };

  test("stay pending while those behind them are acknowledged, over closes too, and do not come again", () => {
    const { queue, commit, position, nextId } = flowOf();
    queue.take(commit(9), 0);
    const [first, ...others] = jobsOf(queue);
    if (!first) throw new Error("nothing to write");
    queue.settle(first, []);
    for (const job of others) queue.settle(job, done(job));
    const pending = () => Array.from({ length: nextId() - 1 }, (_, i) => i + 1).filter((id) => isPending(position(), id));
    expect(pending()).toEqual(idsOf(first));
    queue.close();
    queue.open();
    expect(jobsOf(queue)).toEqual([]);
    expect(queue.readHeld(idsOf(first)[0] ?? 0)?.id).toBe(idsOf(first)[0]);
    for (const id of idsOf(first)) queue.settleHeld(id, { delivered: 0, dropped: { refused: 1 } });
    expect(pending()).toEqual([]);
  });

  test("that are more ranges than the file keeps hold back what is done between them, and no longer than they are held", () => {
    const { queue, commit, position, nextId } = flowOf();
    const rows = commit(90);
    const held: number[] = [];
    for (const [i, one] of rows.entries()) {
      queue.take([one], 0);
      for (const job of jobsOf(queue)) {
        if (i % 3 !== 0) queue.settle(job, done(job));
        else {
          queue.settle(job, []);
          held.push(...idsOf(job));
        }
      }
    }
    const isDone = (id: number) => !isPending(position(), id);
    expect(position().older.length).toBeLessThanOrEqual(16);
    expect(isDone(2)).toBe(true);
    expect(isDone(89)).toBe(false);
    queue.close();
    queue.open();
    expect(jobsOf(queue)).toEqual([]);
    for (const id of held) queue.settleHeld(id, { delivered: 1, dropped: {} });
    expect(Array.from({ length: nextId() - 1 }, (_, i) => i + 1).every(isDone)).toBe(true);
  });

  test("come again where the file is attached again", () => {
    const { queue, commit, attach } = flowOf();
    queue.take(commit(3), 0);
    for (const job of jobsOf(queue)) queue.settle(job, []);
    attach();
    queue.open();
    expect(jobsOf(queue).flatMap(idsOf).sort()).toEqual([1, 2, 3]);
  });
});

describe("a source whose rows stay under way", () => {
  test("holds up the acknowledgement of the others for a second, not until it is done", () => {
    const { queue, commit, attach, position } = setUp();
    attach();
    queue.open();
    let slow: Job | undefined;
    let nowMs = 0;
    for (let i = 0; i < 60; i++) {
      queue.take(commit(1), nowMs);
      nowMs += 200;
      for (let job = queue.next(nowMs, 8); job; job = queue.next(nowMs, 8))
        if (idsOf(job).includes(1)) slow = job;
        else queue.settle(job, done(job));
    }
    queue.next(nowMs + 1000, 8);
    const pending = Array.from({ length: 60 }, (_, i) => i + 1).filter((id) => isPending(position(), id));
    expect(pending).toEqual([1]);
    expect(slow).toBeDefined();
    if (slow) queue.settle(slow, done(slow));
    expect(position().older).toEqual([]);
  });

  test("not for longer where nothing else comes: the queue says when it is to be asked again", () => {
    const { queue, commit, attach, position } = setUp();
    attach();
    queue.open();
    queue.take(commit(9), 0);
    const jobs: Job[] = [];
    for (let job = queue.next(1000, 8); job; job = queue.next(1000, 8)) jobs.push(job);
    expect(queue.nextDueMs()).toBeUndefined();
    for (const job of jobs) if (!idsOf(job).includes(1)) queue.settle(job, done(job));
    expect(queue.nextDueMs()).toBe(2000);
    expect(queue.next(2000, 8)).toBeUndefined();
    expect(position().older).toEqual([{ from: 1, to: 2 }]);
    expect(queue.nextDueMs()).toBeUndefined();
  });

  test("and is delivered once more after a loss, without the others", () => {
    const { queue, commit, attach, position } = setUp();
    attach();
    queue.open();
    queue.take(commit(30), 0);
    for (let job = queue.next(1e6, 8); job; job = queue.next(1e6, 8)) if (!idsOf(job).includes(1)) queue.settle(job, done(job));
    queue.next(2e6, 8);
    queue.close();
    queue.open();
    expect(settleAll(queue)).toEqual([1]);
    expect(position().older).toEqual([]);
  });
});

test("live groups that wait for longer than an interval are written with those of the same source, in order, and one by one when none waits", () => {
  const { queue, commit, attach, position } = setUp({ maxLiveBytes: 10_000 });
  attach();
  queue.open();
  const groups: number[][] = [];
  const write = (nowMs: number) => {
    const job = queue.next(nowMs, 8);
    if (!job) return;
    groups.push(idsOf(job));
    queue.settle(job, done(job));
  };
  // The server takes one write in 400 ms, and each of the three sources has one in 300 ms.
  for (let i = 0; i < 60; i++) {
    queue.take(commit(1), i * 100);
    if (i % 4 === 3) write(i * 100);
  }
  for (let n = 0; n < 60; n++) write(6200 + n);
  expect(groups.slice(0, 2).map(({ length }) => length)).toEqual([1, 1]);
  expect(Math.max(...groups.map(({ length }) => length))).toBeGreaterThan(3);
  expect(groups.length).toBeLessThan(40);
  for (const source of [0, 1, 2]) {
    const ofSource = groups.flat().filter((id) => id % SOURCES === source);
    expect(ofSource).toEqual([...ofSource].sort((a, b) => a - b));
  }
  expect(groups.flat()).toHaveLength(60);
  expect(position()).toEqual({ older: [], live: 61 });
  queue.take(commit(3), 9000);
  const before = groups.length;
  for (let n = 0; n < 3; n++) write(9500 + n);
  expect(groups.slice(before).map(({ length }) => length)).toEqual([1, 1, 1]);
});

describe("what is committed", () => {
  test("ids between rows that come are read from the file, also where nothing names them", () => {
    const { queue, commit, attach, position, nextId } = setUp();
    attach();
    queue.open();
    queue.take(commit(2), 0);
    commit(3);
    queue.take(commit(2), 0);
    const [first, , third] = commit(3);
    queue.take([first, third] as StoredBatch[], 0);
    expect(settleAll(queue).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(position()).toEqual({ older: [], live: nextId() });
  });

  test("a row that comes is not written twice where it was named before", () => {
    const { queue, commit, attach } = setUp();
    attach();
    queue.open();
    const rows = commit(3);
    queue.advance(3);
    queue.take(rows, 0);
    expect(settleAll(queue).toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
  });
});
