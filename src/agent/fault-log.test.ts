import { expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import { FaultLog } from "./fault-log.ts";

function here() {
  let now = 0;
  const lines: string[] = [];
  const at = (level: string) => (_fields: object, message: string) => void lines.push(`${level} ${message}`);
  const log = new FaultLog({ ...silentLog, info: at("info"), warn: at("warn") }, () => now);
  const note = (...variables: string[]) => {
    now += 1000;
    log.note(
      variables.map((variable) => ({ variable, fault: "not_found", detail: variable === "b" ? "code 2" : null })),
      variables.length,
      14,
    );
  };
  return { lines, note };
}

it("a change of the set is a line, what stays is none, and the end is one", () => {
  const { lines, note } = here();
  for (const set of [[], [], ["a", "b"], ["a", "b"], ["a", "b", "c", "d"], [], []]) note(...set);
  expect(lines).toEqual([
    "warn 2 of 14 variables are faulted: a (not_found), b (not_found: code 2)",
    "warn 4 of 14 variables are faulted: a (not_found), b (not_found: code 2), c (not_found) and 1 more",
    "info all 14 variables are read again",
  ]);
});

it("a variable that comes and goes makes a few lines; what lasts a minute is logged in the end", () => {
  const { lines, note } = here();
  for (let i = 0; i < 400; i++) note(...(i % 2 === 0 ? ["a"] : []));
  expect(lines.length).toBeLessThanOrEqual(5);
  for (let i = 0; i < 120; i++) note("z");
  expect(lines.at(-1)).toBe("warn 1 of 14 variables are faulted: z (not_found)");
  expect(lines.length).toBeLessThanOrEqual(6);
});
