import { describe, expect, it } from "vitest";
import { Deadline, Deadlines } from "./deadline.ts";
import { sleep } from "./timer.ts";

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

describe("Deadlines", () => {
  it("are each due in their own time over one timer, in whatever order they begin and end", async () => {
    const deadlines = new Deadlines();
    const began = performance.now();
    const due: [number, number][] = [];
    const lengthsMs = [400, 20, 150, 20, 1100];
    for (const ms of lengthsMs) deadlines.add(ms, () => due.push([ms, performance.now() - began]));
    const cancelled = deadlines.add(100, () => due.push([0, 0]));
    setTimeout(() => cancelled.cancel(), 30);
    await sleep(300);
    deadlines.add(10, () => due.push([310, performance.now() - began]));
    await sleep(1200);
    expect(due.map(([ms]) => ms)).toEqual([20, 20, 150, 310, 400, 1100]);
    for (const [ms, tookMs] of due) expect(tookMs).toBeGreaterThanOrEqual(ms);
  });

  it("give what began in the last slice before the thread stood still no more than its own length", async () => {
    const deadlines = new Deadlines();
    deadlines.add(4000, () => {});
    await sleep(50);
    const took = new Promise<number>((done) => {
      const began = performance.now();
      deadlines.add(2000, () => done(performance.now() - began));
    });
    const until = performance.now() + 1500;
    while (performance.now() < until);
    const ms = await took;
    expect(ms).toBeGreaterThanOrEqual(2000);
    expect(ms).toBeLessThan(3 * 3500);
    deadlines.stop();
  });

  it("keep no timer of their own once stopped", async () => {
    const deadlines = new Deadlines();
    let due = 0;
    deadlines.add(10, () => due++);
    deadlines.stop();
    await sleep(50);
    expect(due).toBe(0);
  });
});
