import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Nap } from "./timer.ts";

describe("a nap", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** True: the wait is over. */
  function begun(nap: Nap, ms: number): () => boolean {
    let isOver = false;
    void nap.sleep(ms).then(() => {
      isOver = true;
    });
    return () => isOver;
  }

  it("lasts so long, not less by a fraction", async () => {
    const isOver = begun(new Nap(), 99.2);
    await vi.advanceTimersByTimeAsync(99);
    expect(isOver()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver()).toBe(true);
  });

  it.each([0, -5])("of %d ms still yields to the event loop", async (ms) => {
    const isOver = begun(new Nap(), ms);
    await Promise.resolve();
    expect(isOver()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver()).toBe(true);
  });

  it("lasts longer than a timer can", async () => {
    const days = 86_400_000;
    const isOver = begun(new Nap(), 60 * days);
    await vi.advanceTimersByTimeAsync(59 * days);
    expect(isOver()).toBe(false);
    await vi.advanceTimersByTimeAsync(days);
    expect(isOver()).toBe(true);
  });

  it("is ended by waking, and leaves no timer", async () => {
    const nap = new Nap();
    const isOver = begun(nap, 1000);
    nap.wake();
    await Promise.resolve();
    expect(isOver()).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that nobody takes is not woken: the next one lasts its time", async () => {
    const nap = new Nap();
    nap.wake();
    const isOver = begun(nap, 100);
    await vi.advanceTimersByTimeAsync(99);
    expect(isOver()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver()).toBe(true);
  });
});
