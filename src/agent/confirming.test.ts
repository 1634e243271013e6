import { describe, expect, it } from "vitest";
import type { AnySession, Confirmation, DriverContext, Point } from "../../drivers/driver.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import type { Clock } from "../model/clock.ts";
import { silentLog } from "../model/context.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import type { Reading } from "../model/value.ts";
import { Confirming } from "./confirming.ts";

const INTERVAL_MS = 1000;
const START_MS = Date.parse("2026-11-26T12:00:00Z");
const points: readonly Point[] = [0, 1, 2].map((index) => ({ index, address: index, type: { scalar: "uint16" } }));
const NOTHING: Confirmation["doubtful"] = [];

/** A source that is read each second, of a device whose look takes `costMs` and covers all, or `ageMs` is how old the oldest is. */
function sourceOf({ costMs = 0, intervalMs = INTERVAL_MS, isShared = false } = {}) {
  let nowMs = 0;
  const lines: string[] = [];
  const clock = { monotonicMs: () => nowMs, epochMs: () => START_MS + nowMs } as Clock;
  const log = { ...silentLog, warn: (_: object, words: string) => void lines.push(words) };
  const variables = points.map(({ index }) => ({ name: `v${index}` })) as never;
  const confirming = new Confirming(intervalMs, variables, clock, log);
  const looks: { readonly atMs: number; readonly withinMs: number }[] = [];
  const device = { doubtful: NOTHING, costMs, ageMs: undefined as number | undefined, programs: 0, moved: [] as readonly Point[] };
  const session = {
    confirm: async (_: readonly Point[], withinMs: number): Promise<Confirmation> => {
      looks.push({ atMs: nowMs, withinMs });
      nowMs += device.costMs;
      return { doubtful: device.doubtful, ageMs: device.ageMs ?? device.costMs };
    },
  } as unknown as AnySession;
  const ctx: DriverContext = driverContext();
  const readout = async (): Promise<readonly Reading[]> => {
    const beganMs = nowMs;
    const readings: (Reading | undefined)[] = points.map(() => ({ quality: "good", value: 1 }));
    confirming.lookedUp(device.programs, device.moved, true, readings);
    device.moved = [];
    await confirming.run(session, points, readings, ctx, isShared);
    nowMs = Math.max(nowMs, beganMs + intervalMs);
    return readings as readonly Reading[];
  };
  return { confirming, looks, device, readout, lines, now: () => nowMs };
}

const told = (readings: readonly Reading[]) => readings.map((one) => (one.quality === "bad" ? `${one.fault}: ${one.detail}` : "good"));

describe("a look behind the values", () => {
  it("is taken in each readout where it takes at most a fifth of the interval, and nothing is said", async () => {
    const { looks, readout, confirming } = sourceOf({ costMs: 200 });
    for (let i = 0; i < 10; i++) await readout();
    expect(looks).toHaveLength(10);
    expect(looks.every(({ withinMs }) => withinMs <= 200)).toBe(true);
    expect(textsOf(confirming.warnings)).toEqual([]);
  });

  it("of a source that is read seldom holds the connection of others no longer than a fifth of a second", async () => {
    for (const [isShared, withinMs] of [
      [false, 12_000],
      [true, 200],
    ] as const) {
      const { looks, readout } = sourceOf({ costMs: 40, intervalMs: 60_000, isShared });
      await readout();
      expect(looks.map((look) => look.withinMs)).toEqual([withinMs]);
    }
  });

  it("takes a fifth of the time where one takes longer, and status says how old the last is", async () => {
    const { looks, readout, confirming, now } = sourceOf({ costMs: 900 });
    for (let i = 0; i < 60; i++) await readout();
    expect((looks.length * 900) / now()).toBeGreaterThan(0.15);
    expect((looks.length * 900) / now()).toBeLessThanOrEqual(0.22);
    expect(codesOf(confirming.warnings)).toContain("program_check_late");
    expect(textsOf(confirming.warnings)).toEqual([expect.stringMatching(/^the last whole look at whether .* was [\d.]+ s ago/)]);
  });

  it("makes what was changed bad in that readout, and says nothing of values that had their own look", async () => {
    const { device, readout, confirming, lines } = sourceOf({ costMs: 10 });
    await readout();
    device.doubtful = [{ points: points.slice(0, 2), detail: "the block A was changed" }];
    expect(told(await readout())).toEqual(["program_changed: the block A was changed", "program_changed: the block A was changed", "good"]);
    device.doubtful = NOTHING;
    Object.assign(device, { programs: 1, moved: points.slice(0, 1) });
    expect(told(await readout())).toEqual(["good", "good", "good"]);
    expect([textsOf(confirming.warnings), lines]).toEqual([[], []]);
  });

  it("says on every exit from when on which variables may have been another's, where values went out without a look", async () => {
    const { device, readout, confirming, lines, looks } = sourceOf({ costMs: 900 });
    await readout();
    while (looks.length < 2) await readout();
    const before = looks.at(-1)?.atMs ?? 0;
    await readout();
    // Found by something else than the look: a list, another source, a variable that fails.
    Object.assign(device, { programs: 1, moved: points.slice(1) });
    const readings = told(await readout());
    const from = new Date(START_MS + before).toISOString();
    const words = new RegExp(`^program_changed: .*from ${from} to 2026-11-26T12:.*may have been another variable's$`);
    expect(readings).toEqual(["good", expect.stringMatching(words), expect.stringMatching(words)]);
    expect(lines).toEqual([expect.stringMatching(new RegExp(`from ${from} to .* the values of 2 variables \\(v1, v2\\) may have been`))]);
    expect(textsOf(confirming.warnings)).toContain(lines[0]);
    // Once in their readings, for a day in status.
    expect(told(await readout())).toEqual(["good", "good", "good"]);
    for (let i = 0; i < 86_400; i++) await readout();
    expect(textsOf(confirming.warnings)).not.toContain(lines[0]);
  });

  it("that covers a part, and finds a change, tells of the others by what the next look-up moves", async () => {
    const { device, readout, lines } = sourceOf({ costMs: 100 });
    device.ageMs = 5000;
    await readout();
    device.doubtful = [{ points: points.slice(0, 1), detail: "the block A was changed" }];
    expect(told(await readout())).toEqual([
      expect.stringMatching(/^program_changed: the block A was changed; from .* may have/),
      "good",
      "good",
    ]);
    device.doubtful = NOTHING;
    // The connection was lost before anything was looked up again.
    expect(told(await readout())).toEqual(["good", "good", "good"]);
    Object.assign(device, { programs: 1, moved: points.slice(0, 2) });
    expect(told(await readout())).toEqual(["good", expect.stringMatching(/^program_changed: it was looked up again/), "good"]);
    expect(lines).toEqual([expect.stringContaining("2 variables (v0, v1)")]);
  });

  it("that finds nothing moved says nothing", async () => {
    const { device, readout, lines, confirming } = sourceOf({ costMs: 900 });
    await readout();
    await readout();
    device.programs = 1;
    expect(told(await readout())).toEqual(["good", "good", "good"]);
    expect(lines).toEqual([]);
    expect(textsOf(confirming.warnings).filter((words) => words.includes("another variable"))).toEqual([]);
  });
});
