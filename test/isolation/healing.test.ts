import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { PlainReasonType } from "../../src/model/reason.ts";
import { LaneModel } from "./lane-model.ts";

const EPOCH_MS = 1_000_000_000_000;
const INTERVAL_MS = 1000;
const WELL_MS = 15_000;
const LOOK_EVERY_MS = 100;
/** A source is well within three readouts or this, whichever is longer, where trying costs nobody anything. */
const BACK_MS = 10_000;
/** Few closed registers are all back within this. */
const FEW_BACK_MS = 20_000;
/** Registers so far apart need a request each. */
const APART = 1000;

beforeEach(
  () =>
    void vi.useFakeTimers({
      now: EPOCH_MS,
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
    }),
);
afterEach(() => void vi.useRealTimers());

/** Ms from now until the unit is read as a whole. */
async function untilWhole(model: LaneModel, unit: number, mostMs: number): Promise<number> {
  const beganMs = Date.now();
  const isWhole = () => (model.wholeAtMs.get(unit)?.at(-1) ?? 0) >= beganMs;
  while (!isWhole() && Date.now() - beganMs < mostMs) await model.pass(LOOK_EVERY_MS);
  return isWhole() ? Date.now() - beganMs : Number.POSITIVE_INFINITY;
}

describe("a device that is well again", () => {
  const outages: readonly (readonly [PlainReasonType, number, number])[] = [
    ["CONNECTION_REFUSED", 20_000, 1000],
    ["CONNECTION_REFUSED", 600_000, 1000],
    ["CONNECTION_RESET", 120_000, 1000],
    ["NO_ROUTE_TO_HOST", 120_000, 500],
    ["HOST_DOWN", 600_000, 1000],
    ["TIMEOUT", 120_000, 1000],
    ["TIMEOUT", 600_000, 10_000],
  ];
  it.each(outages)("is read within three readouts or ten seconds after %s for %i ms, at %i ms", async (reason, outageMs, intervalMs) => {
    vi.setSystemTime(EPOCH_MS);
    const lane = { type: "modbus_tcp", sources: [{ units: [1], intervalMs }], answerMs: 5, busyMs: 0 } as const;
    const model = await LaneModel.start(lane);
    await model.pass(WELL_MS);
    model.outage = reason;
    await model.pass(outageMs);
    expect(model.stateOf(0)).toBe(reason);
    model.outage = undefined;
    const backMs = await untilWhole(model, 1, 120_000);
    await model.stop();
    expect(backMs).toBeLessThanOrEqual(Math.max(3 * intervalMs, BACK_MS) + INTERVAL_MS);
  });
});

describe("registers of a unit behind a gateway that are silent", () => {
  it.each([
    [1, 0, 0.95],
    [4, 0, 0.9],
    [4, 500, 0.8],
  ])("%i of them, a gateway that is busy for %i ms: siblings keep their share, and all are back soon", async (closed, busyMs, least) => {
    vi.setSystemTime(EPOCH_MS);
    const units = [1, 2, 3, 4];
    const registers = Array.from({ length: 8 }, (_, i) => i * APART);
    const sources = units.map((unit) => ({ units: [unit], intervalMs: INTERVAL_MS }));
    const model = await LaneModel.start({ type: "modbus_tcp", sources, answerMs: 5, busyMs, registers });
    await model.pass(WELL_MS);
    const faults = registers.slice(0, closed).map((register) => ({ kind: "silent", unit: 1, register }) as const);
    for (const fault of faults) model.faults.add(fault);
    await model.pass(60_000);
    const fromMs = Date.now();
    await model.pass(60_000);
    const shareOf = (unit: number) => (model.wholeAtMs.get(unit) ?? []).filter((atMs) => atMs > fromMs).length / (60_000 / INTERVAL_MS);
    const shares = units.filter((unit) => unit !== 1).map(shareOf);
    model.faults.clear();
    const backMs = await untilWhole(model, 1, 200_000);
    await model.stop();
    console.log(
      `healing: ${closed} silent registers, busy for ${busyMs} ms: back after ${backMs / 1000} s, siblings ${Math.min(...shares)}`,
    );
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(least);
    expect(backMs).toBeLessThanOrEqual(FEW_BACK_MS);
  });
});
