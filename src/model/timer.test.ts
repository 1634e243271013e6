import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { sleep, timerMs } from "./timer.ts";

describe("sleep", () => {
  it("ends at once when stopped, also above what setTimeout can hold", async () => {
    const stop = new AbortController();
    const slept = sleep(2 ** 40, stop.signal);
    stop.abort();
    expect(await slept).toBe(false);
    expect(await sleep(5, stop.signal)).toBe(false);
  });

  it("does not fire at once above 2^31 ms", async () => {
    const stop = new AbortController();
    const first = await Promise.race([
      sleep(2 ** 31 + 5, stop.signal).then(() => "slept"),
      sleep(30, stop.signal).then(() => "still waiting"),
    ]);
    stop.abort();
    expect(first).toBe("still waiting");
  });

  it("waits no shorter than asked for, and leaves no listener behind", async () => {
    const { signal } = new AbortController();
    const began = performance.now();
    expect(await sleep(20.5, signal)).toBe(true);
    expect(performance.now() - began).toBeGreaterThanOrEqual(20);
    expect(await sleep(1)).toBe(true);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

it("timerMs gives setTimeout no delay that it would fire at once for", () => {
  expect(timerMs(3000)).toBe(3000);
  expect(timerMs(30 * 86_400_000)).toBe(2 ** 31 - 1);
});
