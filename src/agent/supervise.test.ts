import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { supervise } from "./supervise.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Work that throws each time, after so many ms; when each run began. */
function throwing(afterMs: (run: number) => number) {
  const stop = new AbortController();
  const runs: number[] = [];
  const thrown: unknown[] = [];
  const work = async () => {
    runs.push(Date.now());
    await new Promise((done) => setTimeout(done, afterMs(runs.length)));
    throw new Error(`run ${runs.length}`);
  };
  const done = supervise(work, stop.signal, (error) => void thrown.push(error), Date.now);
  return { stop, runs, thrown, done };
}

it("runs what returns once", async () => {
  let runs = 0;
  await supervise(
    async () => void runs++,
    new AbortController().signal,
    () => {},
    Date.now,
  );
  expect(runs).toBe(1);
});

it("starts what throws again: each second at first, then seldom, and never after the end", async () => {
  const { stop, runs, thrown, done } = throwing(() => 0);
  await vi.advanceTimersByTimeAsync(9500);
  expect(runs).toHaveLength(10);
  expect(thrown[0]).toEqual(new Error("run 1"));
  await vi.advanceTimersByTimeAsync(3_600_000);
  const waits = runs.slice(1).map((at, i) => at - (runs[i] ?? 0));
  expect(Math.max(...waits)).toBeLessThan(60_100);
  expect(Math.max(...waits)).toBeGreaterThan(20_000);
  const before = runs.length;
  stop.abort();
  await done;
  await vi.advanceTimersByTimeAsync(120_000);
  expect(runs).toHaveLength(before);
});

it("starts what has gone well for long again within a second, however often it has thrown before", async () => {
  const { stop, runs, done } = throwing((run) => (run <= 20 ? 0 : 61_000));
  await vi.advanceTimersByTimeAsync(1_800_000);
  const late = runs.slice(21);
  expect(late.length).toBeGreaterThan(5);
  for (const [i, at] of late.entries()) if (i > 0) expect(at - (late[i - 1] ?? 0)).toBe(62_000);
  stop.abort();
  await vi.advanceTimersByTimeAsync(61_000);
  await done;
});
