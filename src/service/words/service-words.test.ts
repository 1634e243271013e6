import { expect, test } from "vitest";
import { sparedWords } from "./service-words.ts";

const counters = { readouts: 10, failed_readouts: 0, overruns: 0, values_read: 1000, values_faulted: 0, values_unchanged: 0, connects: 1 };

test("report by exception says which part of the values it spares, and nothing where all are reported", () => {
  expect(sparedWords(counters)).toBeUndefined();
  expect(sparedWords({ ...counters, values_unchanged: 950 })).toBe("only changes; 950 values (95 %) equalled the last reported ones");
  expect(sparedWords({ ...counters, values_unchanged: 999 })).toContain("(99.9 %)");
});
