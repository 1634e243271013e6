import { expect, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { Alarms } from "./alarms.ts";

test("an alarm stays until its trouble is over, and no other goes with it", () => {
  const lines: string[] = [];
  const take = (_: object, message: string) => void lines.push(message);
  const alarms = new Alarms({ ...silentLog, error: take, info: take });
  alarms.raise("the disk takes nothing");
  alarms.raise("a file was set aside");
  alarms.raise("the disk takes values again", "the disk takes nothing");
  expect(alarms.list()).toEqual([expect.stringMatching(/^\d{4}-.*Z a file was set aside$/)]);
  expect(lines).toEqual(["the disk takes nothing", "a file was set aside", "the disk takes values again"]);
});

test("the newest twenty stay", () => {
  const alarms = new Alarms(silentLog);
  for (let n = 0; n < 30; n++) alarms.raise(`alarm ${n}`);
  expect(alarms.list().map((text) => Number(text.split(" ").pop()))).toEqual(Array.from({ length: 20 }, (_, n) => n + 10));
});
