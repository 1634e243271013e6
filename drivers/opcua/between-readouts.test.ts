import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BetweenReadouts, type Piece } from "./between-readouts.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Work of so many pieces, each of 100 ms. */
function worker(pieces: number, rest = 1) {
  const began: number[] = [];
  const next = (): Piece | undefined => {
    if (began.length >= pieces) return undefined;
    const run = async () => {
      began.push(performance.now());
      await new Promise<void>((done) => setTimeout(done, 100));
    };
    return { run, rest };
  };
  return { began, aside: new BetweenReadouts(next) };
}

it("begins nothing while a readout is under way, and pauses as long as it has worked", async () => {
  const { began, aside } = worker(3);
  const from = performance.now();
  aside.began();
  await vi.advanceTimersByTimeAsync(500);
  expect(began).toEqual([]);
  aside.ended(true);
  await vi.advanceTimersByTimeAsync(1000);
  expect(began.map((ms) => Math.round((ms - from) / 10))).toEqual([52, 72, 92]);
});

it("begins nothing more in a readout that began beside a piece, and goes on behind it", async () => {
  const { began, aside } = worker(2);
  aside.began();
  aside.ended(true);
  await vi.advanceTimersByTimeAsync(50);
  aside.began();
  await vi.advanceTimersByTimeAsync(600);
  expect(began).toHaveLength(1);
  aside.ended(false);
  await vi.advanceTimersByTimeAsync(100);
  expect(began).toHaveLength(2);
});

it("waits between the requests of one readout for its end, but not for ever", async () => {
  const { began, aside } = worker(1);
  for (let i = 0; i < 105; i++) {
    aside.began();
    await vi.advanceTimersByTimeAsync(5);
    aside.ended(true);
    await vi.advanceTimersByTimeAsync(5);
    if (i < 95) expect(began).toEqual([]);
  }
  expect(began).toHaveLength(1);
});

it("works at once where a readout waits for it, no longer than that does", async () => {
  const { began, aside } = worker(10);
  const hurried = aside.hurry(350);
  await vi.advanceTimersByTimeAsync(349);
  expect(began).toHaveLength(4);
  await vi.advanceTimersByTimeAsync(1);
  expect(await hurried).toBe(true);
  aside.stop();
  await vi.advanceTimersByTimeAsync(2000);
  expect(began).toHaveLength(4);
});

it("says where there was nothing to do", async () => {
  expect(await worker(0).aside.hurry(1000)).toBe(false);
});
