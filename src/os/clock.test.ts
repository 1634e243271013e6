import { expect, onTestFinished, test, vi } from "vitest";
import { bootTimeOf, type ClockJump } from "../model/clock.ts";
import { startClock } from "./clock.ts";

const START_MS = 1_800_000_000_000;
const BOOT_MS = 60_000;

function rig(onJump?: (jump: ClockJump) => void) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  const stop = new AbortController();
  onTestFinished(() => {
    stop.abort();
    vi.useRealTimers();
  });
  const state = { set: 0, suspendedMs: 0, isSynced: false, asked: 0, heldMs: 0 };
  let passedMs = 0;
  const clock = startClock(
    stop.signal,
    {
      wallMs() {
        passedMs += state.heldMs;
        state.heldMs = 0;
        return START_MS + passedMs + state.set + state.suspendedMs;
      },
      monotonicMs: () => START_MS + passedMs,
      uptimeMs: () => BOOT_MS + passedMs + state.suspendedMs,
      askSynced(answer) {
        state.asked++;
        answer(state.isSynced);
      },
    },
    onJump,
  );
  const pass = (ms: number): void => {
    for (const endMs = passedMs + ms; passedMs < endMs; vi.advanceTimersByTime(500)) passedMs += 500;
  };
  return { clock, state, pass };
}

test("a clock that is set moves the time of the machine's start by as much", () => {
  const { clock, state, pass } = rig();
  const before = bootTimeOf(clock);
  pass(10_000);
  expect(bootTimeOf(clock)).toBe(before);
  state.set = -3_600_000;
  pass(1000);
  expect(bootTimeOf(clock) - before).toBe(-3_600_000);
});

test("a jump is kept with its time and how far; a correction and a machine that was suspended are none", () => {
  const { clock, state, pass } = rig();
  state.set = 200;
  pass(2000);
  state.suspendedMs = 7_200_000;
  pass(2000);
  expect(clock.lastJump?.()).toBeUndefined();
  state.set = -3_600_000;
  pass(1000);
  expect(clock.lastJump?.()).toEqual({ atMs: clock.epochMs(), byMs: -3_600_200 });
  state.set += 60_000;
  state.suspendedMs += 5_000_000;
  pass(1000);
  expect(clock.lastJump?.()?.byMs).toBe(60_000);
});

test("a thread that stood still while it looked at the clocks has seen no step", () => {
  const { clock, state, pass } = rig();
  const before = bootTimeOf(clock);
  const { asked } = state;
  state.heldMs = 5000;
  pass(8000);
  expect([bootTimeOf(clock), clock.lastJump?.(), state.asked, state.heldMs]).toEqual([before, undefined, asked, 0]);
  state.set = -60_000;
  state.heldMs = 5000;
  pass(8000);
  expect([clock.lastJump?.()?.byMs, state.asked]).toEqual([-60_000, asked + 1]);
});

test("a machine that was suspended was not set: its start stays where it was", () => {
  const { clock, state, pass } = rig();
  const before = bootTimeOf(clock);
  const time = clock.epochMs();
  state.suspendedMs = 7_200_000;
  pass(1000);
  expect(clock.epochMs() - time).toBe(7_201_000);
  expect(bootTimeOf(clock)).toBe(before);
});

test("a step is followed by the question whether the clock is synchronised, at once and once more", () => {
  const { clock, state, pass } = rig();
  expect([clock.synced(), state.asked]).toEqual([false, 1]);
  state.set = 1e12;
  pass(1000);
  expect([clock.synced(), state.asked]).toEqual([false, 2]);
  state.isSynced = true;
  pass(5000);
  expect([clock.synced(), state.asked]).toEqual([true, 3]);
});

test("each jump is told of once", () => {
  const jumps: number[] = [];
  const { state, pass } = rig(({ byMs }) => jumps.push(byMs));
  pass(3000);
  state.set = 7_200_000;
  pass(3000);
  state.set += 200;
  pass(3000);
  state.set = -5000;
  pass(3000);
  expect(jumps).toEqual([7_200_000, -7_205_200]);
});
