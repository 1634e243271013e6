import { StatusCodes } from "node-opcua-client";
import { describe, expect, test } from "vitest";
import { FAULTS } from "../../model/fault.ts";
import { FAULT_STATUS, stalenessOf } from "./quality.ts";

test("every fault has a bad status code that OPC UA knows", () => {
  for (const fault of FAULTS) expect(StatusCodes[FAULT_STATUS[fault]].isBad()).toBe(true);
});

describe("stalenessOf", () => {
  test.each([
    [0, false, 1000, "fresh"],
    [14_999, false, 1000, "fresh"],
    [15_000, false, 1000, "stale"],
    [29_999, false, 10_000, "fresh"],
    [30_000, false, 10_000, "stale"],
    [0, true, 1000, "last_usable"],
    [2999, true, 1000, "last_usable"],
    [3000, true, 1000, "stale"],
  ] as const)("%d ms old, source failed: %s, interval %d ms: %s", (ageMs, failed, intervalMs, staleness) => {
    expect(stalenessOf(ageMs, { failed, intervalMs })).toBe(staleness);
  });
});
