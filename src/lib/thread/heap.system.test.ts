import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";

const WORKER = new URL("./host.ts", import.meta.url).href;
const HEAPS = new URL("../heap.ts", import.meta.url).href;

/** In a process of its own, because the switch is the whole process': how large a heap becomes before it is collected, MiB. */
function grownTo(needsHeap: boolean): number {
  const inside = `
    import { parentPort } from "node:worker_threads";
    import v8 from "node:v8";
    const kept = Array.from({ length: 200_000 }, (_, i) => ({ i, text: String(i) }));
    let most = 0;
    for (let round = 0; round < 60; round++) {
      globalThis.old = Array.from({ length: 30_000 }, (_, i) => ({ i }));
      most = Math.max(most, v8.getHeapStatistics().used_heap_size);
    }
    parentPort.postMessage(kept.length === 200_000 ? most / 2 ** 20 : 0);
    parentPort.on("message", () => parentPort.close());`;
  const outside = `
    import { mock } from "node:test";
    import { SupervisedWorker } from ${JSON.stringify(WORKER)};
    import { heaps } from ${JSON.stringify(HEAPS)};
    mock.timers.enable({ apis: ["setTimeout"] });
    heaps.begin();
    mock.timers.tick(10_000);
    mock.timers.reset();
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const entry = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(inside)}));
    const worker = new SupervisedWorker({ entry, name: "heap", workerData: null, log, needsHeap: ${needsHeap}, onMessage(mib) { console.log(mib); void worker.stop(5000); } });`;
  return Number(execFileSync(process.execPath, ["--input-type=module", "-e", outside], { encoding: "utf8" }));
}

it("a worker that needs it has a heap that may grow, the others one that is kept small", () => {
  const [small, free] = [grownTo(false), grownTo(true)];
  console.log(`heap of the worker grew to ${small.toFixed(0)} MiB kept small, ${free.toFixed(0)} MiB free`);
  expect(small).toBeGreaterThan(0);
  expect(free).toBeGreaterThan(small * 1.2);
});
