import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Heaps } from "./heap.ts";

const SETTLED_MS = 20_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const STARTED_MS = 10_000;
const SAVER = ["--memory-saver-mode", "--heap-growing-percent=0"];

function begun() {
  const flags: string[] = [];
  const heaps = new Heaps((flag) => flags.push(flag));
  heaps.begin();
  return { flags, heaps };
}

/** Its start is over. */
function recorded() {
  const { flags, heaps } = begun();
  vi.advanceTimersByTime(STARTED_MS);
  expect(flags.splice(0)).toEqual(SAVER);
  return { flags, heaps };
}

test("V8 has no flag but its own while threads start with a small configuration", async () => {
  const { flags, heaps } = begun();
  await heaps.whileFilling(async () => heaps.fit({ sources: 10, variables: 10_000 }));
  vi.advanceTimersByTime(STARTED_MS - 1);
  expect(flags).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(flags).toEqual(SAVER);
});

test("a large configuration does not wait for the start to be over", () => {
  const { flags, heaps } = begun();
  heaps.fit({ sources: 1000, variables: 10_000 });
  expect(flags.splice(0)).toEqual(SAVER);
  vi.advanceTimersByTime(SETTLED_MS);
  expect(flags).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
});

test("a process that does not begin as the service, such as a verb, has heaps as Node has them", async () => {
  const flags: string[] = [];
  const heaps = new Heaps((flag) => flags.push(flag));
  await heaps.whileFilling(async () => {});
  vi.advanceTimersByTime(STARTED_MS * 10);
  expect(flags).toEqual([]);
});

test("a small configuration leaves the memory saver at work, a large one bounds the growth, and back", () => {
  const { flags, heaps } = recorded();
  heaps.fit({ sources: 10, variables: 10_000 });
  expect(flags).toEqual([]);
  for (const load of [
    { sources: 1000, variables: 10_000 },
    { sources: 1, variables: 100_000 },
  ])
    heaps.fit(load);
  vi.advanceTimersByTime(SETTLED_MS);
  expect(flags.splice(0)).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
  heaps.fit({ sources: 1, variables: 10 });
  expect(flags).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
});

test("the memory reducer works for a minute after the start, and never again", () => {
  const { flags } = recorded();
  vi.advanceTimersByTime(59_000 - STARTED_MS);
  expect(flags).toEqual([]);
  vi.advanceTimersByTime(1000);
  expect(flags).toEqual(["--gc-memory-reducer-start-delay-ms=2147483647"]);
});

test("where a worker needs its heap all grow freely, whatever is configured after", () => {
  const { flags, heaps } = recorded();
  heaps.fit({ sources: 1000, variables: 10_000 });
  vi.advanceTimersByTime(SETTLED_MS);
  flags.length = 0;
  heaps.free();
  heaps.free();
  heaps.fit({ sources: 1, variables: 1 });
  heaps.fit({ sources: 5000, variables: 1 });
  expect(flags).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=0"]);
});

test("while a configuration is taken in they grow by more, however it ends", async () => {
  const { flags, heaps } = recorded();
  const both = Promise.all([
    heaps.whileFilling(async () => heaps.fit({ sources: 1000, variables: 1 })),
    heaps.whileFilling(() => Promise.reject(new Error("on purpose"))).catch(() => {}),
  ]);
  expect(flags.splice(0)).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=50"]);
  await both;
  expect(flags.splice(0)).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
  vi.advanceTimersByTime(SETTLED_MS);
  expect(flags.splice(0)).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
  heaps.fit({ sources: 1, variables: 1 });
  expect(flags).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
});

test("a large configuration that was taken in is followed by a time in which they are compacted; a pull that brings nothing is not", async () => {
  const { flags, heaps } = recorded();
  await heaps.whileFilling(async () => heaps.fit({ sources: 1000, variables: 1 }));
  vi.advanceTimersByTime(SETTLED_MS / 2);
  flags.length = 0;
  await heaps.whileFilling(async () => {});
  expect(flags.splice(0)).toEqual([
    "--no-memory-saver-mode",
    "--heap-growing-percent=50",
    "--memory-saver-mode",
    "--heap-growing-percent=0",
  ]);
  vi.advanceTimersByTime(SETTLED_MS / 2 - 1);
  expect(flags.splice(0)).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(flags.splice(0)).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
  await heaps.whileFilling(async () => {});
  expect(flags).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=50", "--no-memory-saver-mode", "--heap-growing-percent=30"]);
});

test("a change of a few sources among many is followed by none", () => {
  const { flags, heaps } = recorded();
  heaps.fit({ sources: 1000, variables: 10_000 });
  vi.advanceTimersByTime(SETTLED_MS);
  flags.length = 0;
  heaps.fit({ sources: 1001, variables: 10_010 });
  heaps.fit({ sources: 900, variables: 9000 });
  expect(flags).toEqual([]);
});

test("many small additions are followed by that time as one large one is", () => {
  const { flags, heaps } = recorded();
  heaps.fit({ sources: 1000, variables: 0 });
  vi.advanceTimersByTime(SETTLED_MS);
  flags.length = 0;
  heaps.fit({ sources: 800, variables: 0 });
  for (const sources of [820, 840, 860, 880]) heaps.fit({ sources, variables: 0 });
  expect(flags.splice(0)).toEqual([]);
  heaps.fit({ sources: 900, variables: 0 });
  expect(flags.splice(0)).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
  vi.advanceTimersByTime(SETTLED_MS);
  expect(flags).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
});

test("one that is long in being taken in is followed by that time too", async () => {
  const { flags, heaps } = recorded();
  const { promise, resolve } = Promise.withResolvers<void>();
  const filling = heaps.whileFilling(async () => {
    heaps.fit({ sources: 1000, variables: 1 });
    await promise;
  });
  vi.advanceTimersByTime(SETTLED_MS * 3);
  flags.length = 0;
  resolve();
  await filling;
  expect(flags.splice(0)).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
  vi.advanceTimersByTime(SETTLED_MS);
  expect(flags).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
});

test("taking in bounds no heap that a worker needs", async () => {
  const { flags, heaps } = recorded();
  heaps.free();
  flags.length = 0;
  await heaps.whileFilling(async () => heaps.fit({ sources: 1000, variables: 1 }));
  expect(flags).toEqual([]);
});
