import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Position, StoredBatch } from "../buffer/buffer.ts";
import { isPending } from "../buffer/position.ts";
import { acknowledge as acknowledgePosition } from "../buffer/testing/acknowledge.ts";
import { createFlow, type Flow, type Job } from "./delivery-queue.ts";

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

/** A flow on a file that holds the rows 1..n. */
function setUp(
  more: { readonly keepsAll?: boolean; readonly inOrder?: boolean; readonly intervalMs?: number; readonly maxLiveBytes?: number } = {},
) {
  let rows: StoredBatch[] = [];
  let position: Position = { older: [], live: 1 };
  let unstored = 0;
  const flow = createFlow({
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
    flow,
    position: () => position,
    unstored: () => unstored,
    commit(count: number): readonly StoredBatch[] {
      const fresh = Array.from({ length: count }, (_, i) => row(rows.length + i + 1));
      rows = [...rows, ...fresh];
      return fresh;
    },
    attach: () => flow.attach(position, rows.length + 1),
    nextId: () => rows.length + 1,
  };
}
const settleAll = (flow: Flow, inFlight = 8): number[] => {
  const written: number[] = [];
  for (let job = flow.next(Number.POSITIVE_INFINITY, inFlight); job; job = flow.next(Number.POSITIVE_INFINITY, inFlight)) {
    written.push(...idsOf(job));
    flow.settle(job, done(job));
  }
  return written;
};

describe("live and older rows", () => {
  test("live first, one in four for the older ones, each in order", () => {
    const { flow, commit, attach } = setUp();
    commit(20);
    attach();
    flow.open();
    flow.take(commit(10), 0);
    const lanes: string[] = [];
    const ids = { live: [] as number[], older: [] as number[] };
    for (let job = flow.next(1e6, 2); job; job = flow.next(1e6, 2)) {
      lanes.push(job.backlog ? "o" : "L");
      ids[job.backlog ? "older" : "live"].push(...idsOf(job));
      flow.settle(job, done(job));
    }
    expect(lanes.join("").slice(0, 13)).toBe("LLLoLLLoLLLoL");
    expect(ids.live).toEqual([...ids.live].sort((a, b) => a - b));
    expect(ids.older).toEqual([...ids.older].sort((a, b) => a - b));
    expect([ids.live.length, ids.older.length]).toEqual([10, 20]);
  });

  test("older ones take half of what is under way at most", () => {
    const { flow, commit, attach } = setUp();
    commit(30);
    attach();
    flow.open();
    const jobs = [flow.next(0, 4), flow.next(0, 4), flow.next(0, 4)];
    expect(jobs.map((job) => job?.backlog)).toEqual([true, true, undefined]);
    flow.take(commit(1), 0);
    expect(flow.next(1e6, 4)?.backlog).toBe(false);
  });

  test("a window of one write serves both", () => {
    const { flow, commit, attach } = setUp();
    commit(10);
    attach();
    flow.open();
    flow.take(commit(10), 0);
    expect(settleAll(flow, 1).sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });
});

describe("in order", () => {
  test("what is committed waits behind the older ones, which take all that may be under way; then it is live", () => {
    const { flow, commit, attach, nextId, position } = setUp({ inOrder: true });
    commit(30);
    attach();
    flow.open();
    const older = Array.from({ length: 6 }, () => flow.next(0, 4)).filter((job) => job !== undefined);
    expect(older.map(({ backlog }) => backlog)).toEqual([true, true, true, true]);
    flow.take(commit(6), 0);
    for (const job of older) flow.settle(job, done(job));
    const rest: Job[] = [];
    for (let job = flow.next(0, 4); job; job = flow.next(0, 4)) {
      rest.push(job);
      flow.settle(job, done(job));
    }
    expect(rest.every(({ backlog }) => backlog)).toBe(true);
    expect(position()).toEqual({ older: [], live: nextId() });
    flow.take(commit(1), 0);
    expect(flow.next(1e6, 4)).toMatchObject({ backlog: false });
  });

  test("ids that were committed and did not come are waited for", () => {
    const { flow, commit, attach, nextId } = setUp({ inOrder: true, intervalMs: 1e9 });
    attach();
    flow.open();
    flow.take(commit(3), 0);
    const from = nextId();
    commit(3);
    flow.addOlder({ from, to: nextId() });
    flow.take(commit(3), 0);
    const written: number[] = [];
    for (let job = flow.next(0, 8); job; job = flow.next(0, 8)) {
      written.push(...idsOf(job));
      flow.settle(job, done(job));
    }
    for (let source = 0; source < SOURCES; source++) {
      const own = written.filter((id) => id % SOURCES === source);
      expect(own).toEqual([...own].sort((a, b) => a - b));
    }
    expect(written.length).toBe(9);
  });
});

test("what exceeds the memory is left to the file, and comes from there", () => {
  const { flow, commit, attach, position, nextId } = setUp({ maxLiveBytes: 100, intervalMs: 1e9 });
  attach();
  flow.open();
  flow.take(commit(25), 0);
  const first = flow.next(0, 8);
  expect(first?.backlog).toBe(true);
  if (first) flow.settle(first, done(first));
  settleAll(flow);
  expect(position()).toEqual({ older: [], live: nextId() });
});

test("a sink of current values reads nothing and acknowledges nothing", () => {
  const { flow, commit, position } = setUp({ keepsAll: false });
  expect(flow.isAttached()).toBe(true);
  flow.take(commit(5), 0);
  flow.open();
  flow.take(commit(5), 0);
  expect(settleAll(flow)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
  expect(position()).toEqual({ older: [], live: 1 });
});

test("a sink of current values gets the last row of each source at each opening, until the file is another one", () => {
  const { flow, commit } = setUp({ keepsAll: false });
  flow.take(commit(5), 0);
  flow.takeUnstored([{ ...row(1), id: -1 }], 0);
  for (let opening = 0; opening < 2; opening++) {
    flow.open();
    expect(settleAll(flow)).toEqual([3, 5, -1]);
    flow.close();
  }
  flow.detach();
  flow.open();
  expect(settleAll(flow)).toEqual([]);
});

test("a sink of current values that does not keep up gets the last row of each source all the same", () => {
  const { flow, commit } = setUp({ keepsAll: false, maxLiveBytes: 50 });
  flow.open();
  const [first, ...rows] = commit(30);
  if (first) flow.take([first], 0);
  flow.take(
    rows.filter(({ layout }) => layout !== first?.layout),
    0,
  );
  const written = settleAll(flow);
  expect(written).toEqual(expect.arrayContaining([1, 29, 30]));
  expect(written.length).toBeLessThanOrEqual(5);
  expect(settleAll(flow)).toEqual([]);
});

test("what is kept for an opening is bounded in bytes", () => {
  const { flow, commit } = setUp({ keepsAll: false, maxLiveBytes: 20 });
  flow.take(commit(9), 0);
  flow.open();
  expect(settleAll(flow)).toEqual([8, 9]);
});

test("a job from before a loss settles nothing", () => {
  const { flow, commit, attach, position } = setUp();
  attach();
  flow.open();
  flow.take(commit(1), 0);
  const job = flow.next(1e6, 8);
  flow.close();
  if (job) flow.settle(job, done(job));
  expect(position()).toEqual({ older: [], live: 1 });
  flow.open();
  expect(settleAll(flow)).toEqual([1]);
});

type Step = { readonly do: "commit" | "next" | "settle" | "lose" | "restart" | "skip"; readonly n: number };
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom("commit", "commit", "next", "next", "next", "settle", "settle", "lose", "restart", "skip"),
  n: fc.integer({ min: 1, max: 12 }),
});

test.each([false, true])("whatever happens (in order: %s): all is written at least once, and in the end nothing is pending", (inOrder) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const { flow, commit, attach, position, nextId } = setUp({ inOrder, maxLiveBytes: 200, intervalMs: 300 });
      const written = new Set<number>();
      /** By source, in the order of their first beginning. */
      const begun = Array.from({ length: SOURCES }, () => new Set<number>());
      const begin = (ids: readonly number[]): void => {
        for (const id of ids) begun[id % SOURCES]?.add(id);
      };
      let jobs: Job[] = [];
      let nowMs = 0;
      attach();
      flow.open();
      for (const { do: what, n } of steps) {
        nowMs += 100;
        if (what === "commit") flow.take(commit(n), nowMs);
        else if (what === "skip") {
          const from = nextId();
          commit(n);
          flow.addOlder({ from, to: nextId() });
        } else if (what === "next") {
          const job = flow.next(nowMs, 8);
          if (job) jobs.push(job);
          begin(idsOf(job));
        } else if (what === "settle") {
          const [job] = jobs.splice(n % Math.max(1, jobs.length), 1);
          if (!job) continue;
          for (const id of idsOf(job)) written.add(id);
          flow.settle(job, done(job));
        } else if (what === "lose") {
          flow.close();
          if (n > 6) flow.take(commit(2), nowMs);
          flow.open();
        } else {
          jobs = [];
          attach();
        }
        expect(position().older.length).toBeLessThanOrEqual(16);
      }
      for (const job of jobs) {
        for (const id of idsOf(job)) written.add(id);
        flow.settle(job, done(job));
      }
      for (const id of settleAll(flow)) {
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
    const { flow, commit, attach, position, unstored } = setUp();
    attach();
    flow.open();
    flow.take(commit(2), 0);
    flow.takeUnstored([unstoredRow(1), unstoredRow(2)], 0);
    const before = position();
    const jobs = [];
    for (let job = flow.next(Number.POSITIVE_INFINITY, 8); job; job = flow.next(Number.POSITIVE_INFINITY, 8)) jobs.push(job);
    expect(jobs.flatMap(idsOf).sort((a, b) => a - b)).toEqual([-2, -1, 1, 2]);
    for (const job of jobs.filter((one) => idsOf(one).some((id) => id < 0))) flow.settle(job, done(job));
    expect(unstored()).toBe(2);
    expect(position()).toEqual(before);
  });

  test("are let go where they find no room or the sink is closed, and never asked of the file", () => {
    const { flow, attach, unstored } = setUp({ maxLiveBytes: 25 });
    attach();
    flow.takeUnstored([unstoredRow(1)], 0);
    flow.open();
    flow.takeUnstored([unstoredRow(2), unstoredRow(3), unstoredRow(4)], 0);
    expect(settleAll(flow)).toEqual([-2, -3]);
    flow.takeUnstored([unstoredRow(5)], 0);
    flow.close();
    flow.open();
    expect(settleAll(flow)).toEqual([]);
    expect(unstored()).toBe(2);
  });

  test("do not come back as older rows when there are too many live ones", () => {
    const { flow, commit, attach } = setUp({ maxLiveBytes: 25 });
    attach();
    flow.open();
    flow.takeUnstored([unstoredRow(1)], 0);
    flow.take(commit(2), 0);
    expect(settleAll(flow)).toEqual([-1, 1, 2]);
  });
});

describe("held rows", () => {
  const flowOf = () => {
    const set = setUp();
    set.attach();
    set.flow.open();
    return set;
  };
  const jobsOf = (flow: Flow): Job[] => {
    const jobs: Job[] = [];
    for (let job = flow.next(Number.POSITIVE_INFINITY, 100); job; job = flow.next(Number.POSITIVE_INFINITY, 100)) jobs.push(job);
    return jobs;
  };

  test("stay pending while those behind them are acknowledged, over closes too, and do not come again", () => {
    const { flow, commit, position, nextId } = flowOf();
    flow.take(commit(9), 0);
    const [first, ...others] = jobsOf(flow);
    if (!first) throw new Error("nothing to write");
    flow.hold(first);
    for (const job of others) flow.settle(job, done(job));
    const pending = () => Array.from({ length: nextId() - 1 }, (_, i) => i + 1).filter((id) => isPending(position(), id));
    expect(pending()).toEqual(idsOf(first));
    flow.close();
    flow.open();
    expect(jobsOf(flow)).toEqual([]);
    expect(flow.readHeld(idsOf(first)[0] ?? 0)?.id).toBe(idsOf(first)[0]);
    for (const id of idsOf(first)) flow.settleHeld(id, { delivered: 0, dropped: { refused: 1 } });
    expect(pending()).toEqual([]);
    expect(flow.isHeld(idsOf(first)[0] ?? 0)).toBe(false);
  });

  test("that are more ranges than the file keeps hold back what is done between them, and no longer than they are held", () => {
    const { flow, commit, position, nextId } = flowOf();
    const rows = commit(90);
    const held: number[] = [];
    for (const [i, one] of rows.entries()) {
      flow.take([one], 0);
      for (const job of jobsOf(flow)) {
        if (i % 3 !== 0) flow.settle(job, done(job));
        else {
          flow.hold(job);
          held.push(...idsOf(job));
        }
      }
    }
    const isDone = (id: number) => !isPending(position(), id);
    expect(position().older.length).toBeLessThanOrEqual(16);
    expect(isDone(2)).toBe(true);
    expect(isDone(89)).toBe(false);
    flow.close();
    flow.open();
    expect(jobsOf(flow)).toEqual([]);
    for (const id of held) flow.settleHeld(id, { delivered: 1, dropped: {} });
    expect(Array.from({ length: nextId() - 1 }, (_, i) => i + 1).every(isDone)).toBe(true);
  });

  test("come again where the file is attached anew", () => {
    const { flow, commit, attach } = flowOf();
    flow.take(commit(3), 0);
    for (const job of jobsOf(flow)) flow.hold(job);
    attach();
    flow.open();
    expect(jobsOf(flow).flatMap(idsOf).sort()).toEqual([1, 2, 3]);
    expect(flow.isHeld(1)).toBe(false);
  });
});
