import { describe, expect, it } from "vitest";
import { DeviceHabits, HabitMemories } from "./device-habits.ts";

const DAY_MS = 86_400_000;
const FOREVER = Number.POSITIVE_INFINITY;

function device(values: Record<string, unknown> = {}) {
  const at = { ms: 1_000 * DAY_MS };
  const kept = {
    values,
    set(key: string, value: unknown) {
      values[key] = value;
    },
  };
  return { at, values, habits: new DeviceHabits(kept, () => at.ms) };
}

describe("habits of a device", () => {
  it("are kept, each with its unit, and known after a restart", () => {
    const { habits, values } = device();
    habits.learn("pause", null, 100);
    habits.learn("small_blocks", "unit 7", 64);
    const after = device(JSON.parse(JSON.stringify(values))).habits;
    expect(after.known("pause", null, FOREVER)?.value).toBe(100);
    expect(after.known("small_blocks", "unit 7", FOREVER)?.value).toBe(64);
    expect(after.known("small_blocks", "unit 8", FOREVER)).toBeUndefined();
    expect(after.parts).toEqual(["unit 7"]);
  });

  it.each([null, 1, "pause", { value: "100" }, { value: -1, sinceMs: 0, seenMs: 0 }])(
    "are none in what a file says besides: %j",
    (value) => {
      expect(device({ pause: value }).habits.isEmpty).toBe(true);
    },
  );

  it("stay forgotten after a restart", () => {
    const { habits, values } = device();
    habits.learn("pause", null, 100);
    habits.forget("pause", null);
    expect(device(JSON.parse(JSON.stringify(values))).habits.isEmpty).toBe(true);
  });

  it("are forgotten once they were not seen for the time that is set, and not where they were", () => {
    const { habits, at } = device();
    habits.learn("pause", null, 100);
    habits.learn("one_in_flight", null, 1);
    at.ms += 20 * DAY_MS;
    habits.tried("pause", null, false);
    at.ms += 11 * DAY_MS;
    expect(habits.known("pause", null, 30 * DAY_MS)?.value).toBe(100);
    expect(habits.known("one_in_flight", null, 30 * DAY_MS)).toBeUndefined();
  });

  it("end with two answers in a row that a device with them would not give", () => {
    const { habits, at } = device();
    habits.learn("no_gaps", "unit 1", 1);
    expect(habits.isToBeTried("no_gaps", "unit 1")).toBe(false);
    at.ms += 60_000;
    expect(habits.isToBeTried("no_gaps", "unit 1")).toBe(true);
    expect([habits.tried("no_gaps", "unit 1", true), habits.tried("no_gaps", "unit 1", false)]).toEqual([false, false]);
    at.ms += 60_000;
    expect(habits.isToBeTried("no_gaps", "unit 1")).toBe(false);
    at.ms += DAY_MS;
    const version = habits.version;
    expect([habits.tried("no_gaps", "unit 1", true), habits.tried("no_gaps", "unit 1", true)]).toEqual([false, true]);
    expect(habits.isEmpty).toBe(true);
    expect(habits.version).not.toBe(version);
  });

  it("belong to the device that they were learned of", () => {
    const memories = new HabitMemories(() => 0);
    memories.of("tcp:a:502").learn("pause", null, 100);
    expect(memories.of("tcp:a:502").isEmpty).toBe(false);
    expect(memories.of("tcp:b:502").isEmpty).toBe(true);
  });
});
