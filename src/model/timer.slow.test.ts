import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { createYielder, Deadline, sleep, timerMs } from "./timer.ts";

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

describe("Deadline", () => {
  /** The thread does nothing else for so long. */
  const block = (ms: number) => {
    const until = performance.now() + ms;
    while (performance.now() < until);
  };
  const dueAfter = (ms: number, meanwhile: (deadline: Deadline) => void = () => {}): Promise<number> =>
    new Promise((done) => {
      const began = performance.now();
      meanwhile(new Deadline(ms, () => done(performance.now() - began)));
    });

  it("is due once, not before its time, also above a slice and with fractions", async () => {
    expect(await dueAfter(0)).toBeGreaterThanOrEqual(0);
    expect(await dueAfter(20.5)).toBeGreaterThanOrEqual(20);
    expect(await dueAfter(1100)).toBeGreaterThanOrEqual(1100);
  });

  it("is never due once it is cancelled, also twice and before it could be", async () => {
    let due = 0;
    const deadline = new Deadline(10, () => due++);
    deadline.cancel();
    deadline.cancel();
    deadline.extend();
    await sleep(50);
    expect(due).toBe(0);
  });

  it("counts again from each extension, and not once it is due", async () => {
    const ms = await dueAfter(300, (deadline) => setTimeout(() => deadline.extend(), 200));
    expect(ms).toBeGreaterThanOrEqual(500);
    let due = 0;
    const deadline = new Deadline(1, () => due++);
    await sleep(30);
    deadline.extend();
    await sleep(30);
    expect(due).toBe(1);
  });

  it("lets the loop look at its sockets after the thread stood still", async () => {
    const seen: string[] = [];
    const { port1, port2 } = new MessageChannel();
    port2.on("message", () => seen.push("message"));
    const due = new Promise<void>((done) => {
      new Deadline(30, () => {
        seen.push("due");
        done();
      });
    });
    await sleep(5);
    port1.postMessage("what came while the thread stood still");
    block(300);
    await due;
    port1.close();
    expect(seen).toEqual(["message", "due"]);
  });

  it("gives back the time in which the thread stood still, to within a quarter of its length", async () => {
    expect(await dueAfter(1200, () => setTimeout(block, 100, 2000))).toBeGreaterThanOrEqual(2100 + 800);
  });

  it("is due all the same where the thread is always late", async () => {
    let stop = false;
    const busy = () => {
      if (stop) return;
      block(60);
      setImmediate(busy);
    };
    busy();
    const ms = await dueAfter(10);
    stop = true;
    expect(ms).toBeLessThan(3 * 21 * 100);
  });
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
