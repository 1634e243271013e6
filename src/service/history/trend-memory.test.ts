import { describe, expect, it } from "vitest";
import { FAULTS } from "../../model/fault.ts";
import { TREND_BYTES, TREND_MINUTES, TrendMemory } from "./trend-memory.ts";

const oneSlot = (): { memory: TrendMemory; slot: number } => {
  const memory = new TrendMemory(TREND_BYTES);
  return { memory, slot: memory.take() ?? -1 };
};
const listed = (figures: Float32Array): readonly number[] => [...figures];

describe("the memory of trends", () => {
  it("has room for so many variables as its bytes hold, and for others once they are freed", () => {
    const memory = new TrendMemory(16 * 2 ** 20);
    expect(memory.capacity).toBe(970);
    const slots = Array.from({ length: 970 }, () => memory.take());
    expect(new Set(slots).size).toBe(970);
    expect(memory.take()).toBeUndefined();
    memory.add(7, 100, 5);
    memory.free(7);
    expect(memory.take()).toBe(7);
    expect([memory.firstOf(7), listed(memory.read(7, 100, 100).min)]).toEqual([undefined, [Number.NaN]]);
  });

  it("keeps least, greatest and last number of a minute, also where they are 0 or below", () => {
    const { memory, slot } = oneSlot();
    for (const value of [3, -2, 0]) memory.add(slot, 10, value);
    for (const value of [0, 4]) memory.add(slot, 11, value);
    memory.add(slot, 13, -7);
    const { min, max, last, faults } = memory.read(slot, 9, 13);
    expect(listed(min)).toEqual([Number.NaN, -2, -0, Number.NaN, -7]);
    expect(listed(max)).toEqual([Number.NaN, 3, 4, Number.NaN, -7]);
    expect(listed(last)).toEqual([Number.NaN, 0, 4, Number.NaN, -7]);
    expect([...faults]).toEqual([0, 0, 0, 0, 0]);
  });

  it("keeps the fault of a minute without a good reading, in the same bytes", () => {
    const { memory, slot } = oneSlot();
    memory.addFault(slot, 1, "not_found");
    memory.addFault(slot, 2, "stale");
    memory.add(slot, 2, 5);
    memory.add(slot, 3, 6);
    memory.addFault(slot, 3, "stale");
    memory.add(slot, 4, Number.NaN);
    const { min, faults } = memory.read(slot, 1, 4);
    expect(listed(min)).toEqual([Number.NaN, 5, 6, Number.NaN]);
    expect([...faults].map((fault) => FAULTS[fault - 1])).toEqual(["not_found", undefined, undefined, "not_a_number"]);
  });

  it("holds a day, and no number of a day before in the minutes between two readings", () => {
    const { memory, slot } = oneSlot();
    for (let minute = 0; minute < 2 * TREND_MINUTES; minute++) memory.add(slot, minute, minute);
    memory.add(slot, 2 * TREND_MINUTES + 3, 1);
    const newest = 2 * TREND_MINUTES + 3;
    const { last } = memory.read(slot, newest - TREND_MINUTES + 1, newest);
    expect(last.length).toBe(TREND_MINUTES);
    expect(listed(last.slice(0, 2))).toEqual([TREND_MINUTES + 4, TREND_MINUTES + 5]);
    expect(listed(last.slice(-5))).toEqual([2 * TREND_MINUTES - 1, Number.NaN, Number.NaN, Number.NaN, 1]);
    memory.add(slot, newest - TREND_MINUTES, 99);
    expect(listed(memory.read(slot, newest, newest).last)).toEqual([1]);
    expect(listed(memory.read(slot, newest - TREND_MINUTES, newest - TREND_MINUTES).last)).toEqual([Number.NaN]);
  });

  it("takes earlier readings of the same day, and any finite number as the nearest float32", () => {
    const { memory, slot } = oneSlot();
    memory.add(slot, 20, 1);
    memory.add(slot, 18, 2);
    memory.add(slot, 19, 1e300);
    expect(listed(memory.read(slot, 18, 20).last)).toEqual([2, Math.fround(3.4028234663852886e38), 1]);
    expect(memory.firstOf(slot)).toBe(18);
  });
});
