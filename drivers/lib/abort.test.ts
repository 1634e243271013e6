import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { bounded, stoppedWhile } from "./abort.ts";

const bound = (signal: AbortSignal, timeoutMs = 60_000) => ({
  signal,
  timeoutMs,
  onTimeout: () => new Error("too late"),
  onAbort: () => new Error("stopped"),
});
const never = new Promise<never>(() => {});

describe("bounded", () => {
  it("settles with the work and leaves no listener", async () => {
    const { signal } = new AbortController();
    expect(await bounded(Promise.resolve(7), bound(signal))).toBe(7);
    await expect(bounded(Promise.reject(new Error("its own")), bound(signal))).rejects.toThrow("its own");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("gives up when the time runs out, and leaves no listener", async () => {
    const { signal } = new AbortController();
    await expect(bounded(never, bound(signal, 10))).rejects.toThrow("too late");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("gives the work its time again with each progress", async () => {
    const { signal } = new AbortController();
    const began = performance.now();
    const progressing = bounded(never, {
      ...bound(signal, 200),
      onBegin(extend) {
        setTimeout(extend, 150);
        setTimeout(extend, 300);
      },
    });
    await expect(progressing).rejects.toThrow("too late");
    expect(performance.now() - began).toBeGreaterThanOrEqual(490);
  });

  it("gives up when the signal aborts, also where it already has", async () => {
    const stop = new AbortController();
    const work = bounded(never, bound(stop.signal));
    stop.abort();
    await expect(work).rejects.toThrow("stopped");
    await expect(bounded(never, bound(stop.signal))).rejects.toThrow("stopped");
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });

  it("ignores work that fails after it gave up", async () => {
    let fail: (error: Error) => void = () => {};
    const work = new Promise<never>((_, reject) => {
      fail = reject;
    });
    await expect(bounded(work, bound(new AbortController().signal, 1))).rejects.toThrow("too late");
    fail(new Error("an unhandled rejection would fail the run"));
    await new Promise((turn) => setImmediate(turn));
  });
});

it("says what was under way, and keeps the signal's reason as the cause", () => {
  const error = stoppedWhile("connecting to plc:502", AbortSignal.abort("shutdown"));
  expect(error).toMatchObject({ reason: { type: "TIMEOUT" }, cause: "shutdown" });
  expect(error.message).toContain("connecting to plc:502");
});
