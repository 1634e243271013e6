import { expect, test } from "vitest";
import type { Log } from "../model/context.ts";
import { budgetLog } from "./log-budget.ts";

test("so many lines pass in a minute; the others are one line with their number, and then it begins again", async () => {
  const lines: [level: string, fields: object, message: string][] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push([level, fields, message]);
  const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const budgeted = budgetLog(log, { linesPerMinute: 3, of: "a library", minuteMs: 200 });
  for (let i = 0; i < 1000; i++) budgeted.debug({ i }, "again");
  budgeted.warn({}, "worse");
  expect(lines).toHaveLength(3);
  await expect.poll(() => lines.length, { timeout: 10_000 }).toBe(4);
  expect(lines.at(-1)).toEqual(["warn", { lines: 998 }, "log lines of a library were left out: more than 3 came in a minute"]);
  budgeted.debug({}, "once more");
  expect(lines.at(-1)).toEqual(["debug", {}, "once more"]);
  await new Promise((done) => setTimeout(done, 400));
  expect(lines).toHaveLength(5);
});
