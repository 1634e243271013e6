import { expect, test } from "vitest";
import { detailsProblem } from "./details-problem.ts";

test("details of a type without a driver are looked at all the same", () => {
  const details = { type: "vendor_b", host: "h", machine: "C4", initialization_mode: "Default" };
  expect(detailsProblem({ type: "vendor_b", details })).toBeUndefined();
  expect(detailsProblem({ type: "vendor_b", details: { ...details, machine: "C7", host: undefined } })).toMatch(
    /^details\.host: .*; details\.machine: /,
  );
  expect(detailsProblem({ type: "odac", details: { type: "odac", host: "h", port: 65_536 } })).toMatch(/^details\.port: /);
  expect(detailsProblem({ type: "plastcontrol", details: null })).toBe("details is null");
});

test("of a type that the API does not have, nothing is known", () => {
  expect(detailsProblem({ type: "of_next_year", details: {} })).toBeUndefined();
  expect(detailsProblem({ type: "constructor", details: {} })).toBeUndefined();
});
