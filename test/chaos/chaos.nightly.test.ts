import process from "node:process";
import { afterEach, beforeEach, it, vi } from "vitest";
import { expectWithin, playAll } from "./plays.ts";

const PLAYS = Number(process.env["CHAOS_NIGHTLY_PLAYS"] ?? 10_000);
/** Other plays each night: those of a day of the year follow those of the day before. */
const DAY_MS = 86_400_000;
const FIRST_SEED = 1000 + (Math.floor(Date.now() / DAY_MS) % 366) * PLAYS;

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
    }),
);
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("ten thousand plants give no wrong value, cost the healthy little, and heal soon", { timeout: 3 * 3_600_000 }, async () => {
  const { measures } = await playAll(FIRST_SEED, PLAYS);
  expectWithin(measures);
});
