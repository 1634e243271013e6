import path from "node:path";
import { expect, it } from "vitest";
import { reported, textsOf } from "../testing/warnings.ts";
import { foldedWarnings, type WarningCode, WarningTimes, warning } from "../warning.ts";
import { WARNINGS } from "./warnings.ts";

const DOC = path.resolve(import.meta.dirname, "../../../docs/generated/warnings.md");

it("follow from one another by codes that there are", () => {
  for (const [code, { dependsOn }] of Object.entries(WARNINGS))
    if (dependsOn !== undefined) expect([code, Object.keys(WARNINGS)]).toEqual([code, expect.arrayContaining([dependsOn])]);
});

it("are listed with what to do", async () => {
  const rows = Object.entries(WARNINGS).map(
    ([code, { severity, cause, nextStep, dependsOn }]) =>
      `| \`${code}\` | ${severity} | ${cause} | ${nextStep} | ${dependsOn === undefined ? "" : `\`${dependsOn}\``} |`,
  );
  const text = `# Warnings and alarms

Made by \`src/model/words/warnings.test.ts\`. In \`collector status --json\`, in the metric \`collector_warning\`, in the status over MQTT and on the hosted OPC UA server each has its code, which stays as it is over versions; the text is for people, and may change. A \`note\` is worth knowing; a \`warning\` says that something should be changed. One that follows from another one is shown under it.

| code | severity | usual cause | next step where the text has no better one | follows from |
| --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
  await expect(text).toMatchFileSnapshot(DOC);
});

it("keep their time while code and part are as they were, and begin again after a break", () => {
  const times = new WarningTimes();
  const sinceOf = (nowMs: number, ...codes: readonly WarningCode[]) =>
    times
      .dated(
        codes.map((code) => warning(code, `at ${nowMs}`)),
        nowMs,
      )
      .map(({ since }) => Date.parse(since));
  expect(sinceOf(1000, "values_odd")).toEqual([1000]);
  expect(sinceOf(2000, "device_habit", "values_odd")).toEqual([2000, 1000]);
  expect(sinceOf(3000, "device_habit")).toEqual([2000]);
  expect(sinceOf(4000, "values_odd", "device_habit")).toEqual([4000, 2000]);
  expect(sinceOf(5000)).toEqual([]);
  expect(sinceOf(6000, "device_habit")).toEqual([6000]);
  const ofParts = [warning("variable_apart", "a", "a"), warning("variable_apart", "b", "b")];
  times.dated(ofParts.slice(1), 7000);
  expect(times.dated(ofParts, 8000)).toMatchObject([{ about: "a" }, { about: "b", since: new Date(7000).toISOString() }]);
});

it("are shown under the one that they follow from, where that holds", () => {
  const younger = { ...reported("values are younger", "values_younger"), depends_on: "plan_exceeds_interval" as const };
  const plan = reported("the plan does not fit", "plan_exceeds_interval");
  const told = (...warnings: Parameters<typeof foldedWarnings>[0]) =>
    foldedWarnings(warnings).map(({ head, following }) => [head.text, textsOf(following)]);
  expect(told(younger, plan)).toEqual([["the plan does not fit", ["values are younger"]]]);
  expect(told(younger)).toEqual([["values are younger", []]]);
  expect(told(plan, { ...plan, about: "b" }, younger)).toEqual([
    ["the plan does not fit", ["values are younger"]],
    ["the plan does not fit", []],
  ]);
});
