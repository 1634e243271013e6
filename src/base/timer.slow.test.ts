import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { Slices, sleep, timerMs } from "./timer.ts";

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

/** Its time goes by with each look at it. */
const lookTakes = (ms: number): (() => number) => {
  let nowMs = 0;
  return () => (nowMs += ms);
};

/** How many steps loops take between two turns of the others, in order; the timers have their turn with each `others`. */
const betweenOthers = (turns: readonly string[]): readonly string[][] =>
  turns
    .join(" ")
    .split("others")
    .map((names) => names.split(" ").filter((name) => name !== ""));

describe("Slices", () => {
  /** Notes `others` in each turn of the event loop until it is ended. */
  function noteTurns() {
    const turns: string[] = [];
    let isDone = false;
    const everyTurn = () => {
      turns.push("others");
      if (!isDone) setImmediate(everyTurn);
    };
    setImmediate(everyTurn);
    const end = () => {
      isDone = true;
      return betweenOthers(turns);
    };
    return { turns, end };
  }

  it("let others have their turn once a slice is over, and not before", async () => {
    let nowMs = 0;
    const yieldToEventLoop = new Slices(() => nowMs).yielder();
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

  it("give loops that run at once a turn of the event loop each", async () => {
    const slices = new Slices(lookTakes(10));
    const { turns, end } = noteTurns();
    const loop = async (name: string): Promise<void> => {
      const yieldToEventLoop = slices.yielder();
      for (let i = 0; i < 3; i++) {
        await yieldToEventLoop();
        turns.push(name);
      }
    };
    await Promise.all([loop("a"), loop("b"), loop("c")]);
    const between = end();
    expect(Math.max(...between.map((names) => names.length))).toBe(1);
    expect(between.flat().sort().join("")).toBe("aaabbbccc");
  });

  it("hold what follows a loop in its turn to the same slice", async () => {
    const slices = new Slices(lookTakes(0.5));
    const { turns, end } = noteTurns();
    for (let i = 0; i < 20; i++) {
      const yieldToEventLoop = slices.yielder();
      turns.push("step");
      await yieldToEventLoop();
    }
    expect(Math.max(...end().map((names) => names.length))).toBeLessThanOrEqual(4);
  });

  it("give no second slice to a loop that a timer began, before the timers had their turn", async () => {
    const slices = new Slices(lookTakes(10));
    const turns: string[] = [];
    await new Promise((resolve) => setTimeout(resolve, 1));
    // The check phase of this turn, and that of the next one, behind its timers.
    setImmediate(() => {
      turns.push("this turn");
      setImmediate(() => turns.push("next turn"));
    });
    const yieldToEventLoop = slices.yielder();
    await yieldToEventLoop();
    turns.push("loop");
    expect(turns).toEqual(["this turn", "next turn", "loop"]);
  });

  it("resume a loop although others begin in every turn", async () => {
    const slices = new Slices(lookTakes(10));
    let isDone = false;
    let begun = 0;
    const everyTurn = () => {
      void slices.yielder()();
      if (!isDone && begun++ < 1000) setImmediate(everyTurn);
    };
    const yieldToEventLoop = slices.yielder();
    everyTurn();
    for (let i = 0; i < 3; i++) await yieldToEventLoop();
    isDone = true;
    expect(begun).toBeLessThan(1000);
  });
});
