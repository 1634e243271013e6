import { expect, it } from "vitest";
import { sourceSettingsSchema } from "../model/settings.ts";
import { ruleOf, rulesOf } from "./report-rules.ts";

const of = (settings: object) => rulesOf(sourceSettingsSchema.parse(settings));

it("reports each value unless the settings have changes, for the source or a variable", () => {
  expect(of({})).toBeUndefined();
  expect(of({ deadband: 1, report_variables: { a: { deadband: 2 } } })).toBeUndefined();
  expect(of({ report: "changes" })).toEqual({ deadband: 0, deadbandPart: 0, heartbeatMs: 600_000, keyEveryMs: 3_600_000, variables: [] });
});

it("has the percent as a part, and what a variable does not say as its source does", () => {
  const rules = of({
    report: "changes",
    deadband: 0.5,
    deadband_percent: 2,
    heartbeat: "1min",
    report_variables: { "temp_*": { deadband: 3 }, counter: { report: "all" } },
  });
  if (!rules) throw new Error("no rules");
  expect(ruleOf(rules, "speed")).toEqual({ deadband: 0.5, deadbandPart: 0.02, heartbeatMs: 60_000 });
  expect(ruleOf(rules, "temp_1")).toEqual({ deadband: 3, deadbandPart: 0.02, heartbeatMs: 60_000 });
  expect(ruleOf(rules, "counter")).toBeNull();
});

it("reports changes of some variables of a source that reports all of the others", () => {
  const rules = of({ report_variables: { slow: { report: "changes", heartbeat: "1h" } } });
  if (!rules) throw new Error("no rules");
  expect([ruleOf(rules, "slow"), ruleOf(rules, "fast")]).toEqual([{ deadband: 0, deadbandPart: 0, heartbeatMs: 3_600_000 }, null]);
});
