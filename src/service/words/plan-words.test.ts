import { expect, it } from "vitest";
import type { PlanView } from "../../model/source-insight.ts";
import { planFacts } from "./plan-words.ts";

const VIEW: PlanView = {
  interval_ms: 1000,
  variables: 20,
  requests: 4,
  bytes: 80,
  max_connections: 1,
  limits: {},
  set_aside: 0,
  silent: [],
  habits: [],
  measured: { readouts: 20, median_ms: 100, longest_ms: 120, longest_wait_ms: 0, unreached: 0 },
  feasible_interval_ms: 250,
  fits: true,
  first_requests: [],
};

it.each([
  [{}, "change nothing"],
  [{ fits: false, feasible_interval_ms: 2500 }, "lengthen the interval: `collector source set 'press 1' --interval 3s`"],
  [{ fits: false, feasible_interval_ms: 250, interval_ms: 50 }, "lengthen the interval: `collector source set 'press 1' --interval 250ms`"],
  [
    { silent: ["unit 9"], set_aside: 3 },
    "correct or remove the variables of unit 9, each try of which costs a time-out: `collector status 'press 1'` names them",
  ],
  [{ set_aside: 1 }, "correct or remove the 1 variable set aside: `collector status 'press 1'` says why"],
] as const)("has one proposal for a plan with %o", (change, words) => {
  const facts = planFacts({ ...VIEW, ...change } as PlanView, "press 1");
  expect(facts.filter(({ label }) => label === "Proposal")).toEqual([{ label: "Proposal", words }]);
});

it("has none before anything is measured", () => {
  expect(planFacts({ ...VIEW, measured: null, fits: null, feasible_interval_ms: null }, "p").map(({ label }) => label)).not.toContain(
    "Proposal",
  );
});
