import { expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { warning } from "../model/warning.ts";
import { Alarms } from "./alarms.ts";

it("keeps alarms until their trouble is over: by code and part, whatever their words, and none of another part", () => {
  const lines: string[] = [];
  const take = (_: object, message: string) => void lines.push(message);
  const alarms = new Alarms({ ...silentLog, error: take, info: take });
  for (const why of ["no room", "an I/O error"]) alarms.raise(warning("buffer_refuses", `the disk takes nothing: ${why}`));
  alarms.raise(warning("port_in_use", "port 1 is in use", "1"));
  alarms.raise(warning("port_in_use", "port 2 is in use", "2"));
  alarms.raise(warning("buffer_refuses", "the disk takes values again"), true);
  alarms.raise(warning("port_in_use", "port 2 is listened on", "2"), true);
  const notes = [warning("disk_fills", "the disk is full in about 2 h")];
  expect(alarms.list(notes)).toEqual([
    { code: "disk_fills", severity: "warning", text: "the disk is full in about 2 h", since: expect.stringMatching(/^\d{4}-.*Z$/) },
    { code: "port_in_use", severity: "warning", text: "port 1 is in use", about: "1", since: expect.stringMatching(/^\d{4}-.*Z$/) },
  ]);
  expect(lines).toHaveLength(6);
});

it("keeps the latest alone", () => {
  const alarms = new Alarms(silentLog);
  for (let n = 0; n < 30; n++) alarms.raise(warning("buffer_lost", `alarm ${n}`, String(n)));
  expect(textsOf(alarms.list([]))).toEqual(Array.from({ length: 20 }, (_, n) => `alarm ${n + 10}`));
});
