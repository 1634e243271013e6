import { expect, test } from "vitest";
import { Heaps } from "./heap.ts";

function recorded() {
  const flags: string[] = [];
  return { flags, heaps: new Heaps((flag) => flags.push(flag)) };
}

test("a small configuration leaves the memory saver at work, a large one bounds the growth, and back", () => {
  const { flags, heaps } = recorded();
  heaps.fit({ sources: 10, variables: 10_000 });
  expect(flags).toEqual([]);
  for (const load of [
    { sources: 1000, variables: 10_000 },
    { sources: 1, variables: 100_000 },
  ])
    heaps.fit(load);
  expect(flags.splice(0)).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
  heaps.fit({ sources: 1, variables: 10 });
  expect(flags).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
});

test("where a worker needs its heap all grow freely, whatever is configured after", () => {
  const { flags, heaps } = recorded();
  heaps.fit({ sources: 1000, variables: 10_000 });
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
  expect(flags.splice(0)).toEqual(["--no-memory-saver-mode", "--heap-growing-percent=30"]);
  heaps.fit({ sources: 1, variables: 1 });
  expect(flags).toEqual(["--memory-saver-mode", "--heap-growing-percent=0"]);
});

test("taking in bounds no heap that a worker needs", async () => {
  const { flags, heaps } = recorded();
  heaps.free();
  flags.length = 0;
  await heaps.whileFilling(async () => heaps.fit({ sources: 1000, variables: 1 }));
  expect(flags).toEqual([]);
});
