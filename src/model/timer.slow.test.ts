import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { createYielder, sleep, timerMs } from "./timer.ts";

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

describe("createYielder", () => {
  it("lets others have their turn once a slice is over, and not before", async () => {
    let nowMs = 0;
    const yieldToEventLoop = createYielder(() => nowMs);
    const turns: string[] = [];
    setImmediate(() => turns.push("others"));
    nowMs = 1.9;
    await yieldToEventLoop();
    turns.push("loop");
    nowMs = 2;
    await yieldToEventLoop();
    turns.push("loop");
    expect(turns).toEqual(["loop", "others", "loop"]);
  });

  it("gives loops that run at once a turn of the event loop each", async () => {
    const turns: string[] = [];
    const loop = async (name: string): Promise<void> => {
      // Each look at the clock is a slice later.
      let nowMs = 0;
      const yieldToEventLoop = createYielder(() => (nowMs += 10));
      for (let i = 0; i < 3; i++) {
        await yieldToEventLoop();
        turns.push(name);
      }
    };
    let isDone = false;
    const everyTurn = () => {
      turns.push("others");
      if (!isDone) setImmediate(everyTurn);
    };
    setImmediate(everyTurn);
    await Promise.all([loop("a"), loop("b"), loop("c")]);
    isDone = true;
    const between = turns
      .join(" ")
      .split("others")
      .map(
        (names) =>
          names
            .trim()
            .split(" ")
            .filter((name) => name !== "").length,
      );
    expect(Math.max(...between)).toBe(1);
    expect(
      turns
        .filter((name) => name !== "others")
        .sort()
        .join(""),
    ).toBe("aaabbbccc");
  });
});
