import { StatusCodes } from "node-opcua-client";
import { describe, expect, test } from "vitest";
import { FAULTS } from "../../model/fault.ts";
import { FAULT_STATUS, worthOf } from "./quality.ts";

test("every fault has a bad status code that OPC UA knows", () => {
  for (const fault of FAULTS) expect(StatusCodes[FAULT_STATUS[fault]].isBad()).toBe(true);
});

describe("worthOf", () => {
  test.each([
    [0, false, 1000, "keep"],
    [14_999, false, 1000, "keep"],
    [15_000, false, 1000, "none"],
    [29_999, false, 10_000, "keep"],
    [30_000, false, 10_000, "none"],
    [0, true, 1000, "last_usable"],
    [2999, true, 1000, "last_usable"],
    [3000, true, 1000, "none"],
  ] as const)("%d ms old, source failed: %s, interval %d ms: %s", (ageMs, failed, intervalMs, worth) => {
    expect(worthOf(ageMs, { failed, intervalMs })).toBe(worth);
  });
});
