import { expect, test } from "vitest";
import { silentLog } from "../../model/context.ts";
import { codesOf, textsOf } from "../../model/testing/warnings.ts";
import type { Attempt } from "./lockout.ts";
import { LogIns } from "./log-ins.ts";
import type { Users } from "./users.ts";

const NOON = Date.parse("2026-03-01T12:00:00Z");

/** Users of whom each has the password "right", and who are locked for a minute with the third wrong one. */
function start() {
  let nowMs = NOON;
  let lockedUntilMs = 0;
  let wrong = 0;
  const users: Users = {
    evaluated: 0,
    async check(_attempt, password) {
      if (lockedUntilMs > nowMs) return false;
      if (password !== "right" && ++wrong === 3) lockedUntilMs = nowMs + 60_000;
      return password === "right";
    },
    lockedForMs: () => Math.max(0, lockedUntilMs - nowMs),
  };
  const lines: { readonly fields: object; readonly message: string }[] = [];
  let changes = 0;
  const logIns = new LogIns(users, {
    log: { ...silentLog, warn: (fields, message) => void lines.push({ fields, message }) },
    onChange: () => void changes++,
    nowMs: () => nowMs,
  });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { logIns, lines, changes: () => changes, pass };
}
const from = (user: string, address = "10.0.0.1"): Attempt => ({ user, address });

test("who is let in leaves nothing", async () => {
  const { logIns, lines, changes } = start();
  expect(await logIns.check(from("op"), "right")).toBe(true);
  expect([lines, textsOf(logIns.warnings()), changes()]).toEqual([[], [], 0]);
});

test("each refused log-in leaves a line and a note; a lock-out both with its end, and with it the note is the refusals' again", async () => {
  const { logIns, lines, changes, pass } = start();
  expect(await logIns.check(from("op"), "canary")).toBe(false);
  expect(codesOf(logIns.warnings())).toContain("log_in_refused");
  expect(textsOf(logIns.warnings())).toEqual([
    'a log-in as "op" from 10.0.0.1 was refused, the last at 2026-03-01T12:00:00Z: no such user, or a wrong password',
  ]);
  expect(changes()).toBe(1);
  await logIns.check(from("op"), "canary");
  await logIns.check(from("op"), "canary");
  expect(codesOf(logIns.warnings())).toContain("log_in_locked");
  expect(textsOf(logIns.warnings())).toEqual([
    'log-ins as "op" from 10.0.0.1 are locked out until 2026-03-01T12:01:00Z: too many wrong passwords within a minute',
  ]);
  expect(lines.map(({ message }) => message)).toEqual([
    "the OPC UA server refused a log-in: no such user, or a wrong password",
    "the OPC UA server refused a log-in: no such user, or a wrong password",
    "the OPC UA server looks at no password of this user from this address until 2026-03-01T12:01:00Z: too many were wrong within a minute",
  ]);
  expect(lines[2]?.fields).toEqual({ client: "10.0.0.1", user: "op", until: "2026-03-01T12:01:00.000Z" });
  pass(30_000);
  // The right password, too, is not looked at; the end stays, and no further line is written.
  expect(await logIns.check(from("op"), "right")).toBe(false);
  expect(textsOf(logIns.warnings()).join()).toContain("until 2026-03-01T12:01:00Z");
  expect(lines).toHaveLength(3);
  pass(31_000);
  expect(textsOf(logIns.warnings())).toEqual([
    '4 log-ins as "op" from 10.0.0.1 were refused, the last at 2026-03-01T12:00:30Z: no such user, or a wrong password',
  ]);
  expect(await logIns.check(from("op"), "right")).toBe(true);
  expect(textsOf(logIns.warnings())).toEqual([]);
  expect(JSON.stringify(lines)).not.toContain("canary");
});

test("notes are few, short, of the last hour, and of one line whatever the name is", async () => {
  const { logIns, pass } = start();
  await logIns.check(from(`a\nb\u001b[31m${"x".repeat(5000)}`), "wrong");
  expect(textsOf(logIns.warnings()).join()).toMatch(/^a log-in as "a\\nb\\u001b\[31mx{1,100}" from 10\.0\.0\.1 was refused/);
  for (let i = 0; i < 50; i++) await logIns.check(from(`name ${i}`), "wrong");
  expect(textsOf(logIns.warnings())).toHaveLength(10);
  expect(textsOf(logIns.warnings()).at(-1)).toContain("name 49");
  pass(3_600_000);
  expect(textsOf(logIns.warnings())).toEqual([]);
});
