import { expect, test } from "vitest";
import { hashUsers } from "./users.ts";

const USERS = [
  { username: "op", password: "correct horse" },
  { username: "Ö", password: "ß" },
];
const at = (user: string, address = "10.0.0.1") => ({ user, address });

test("lets in who has the password, and nobody else", async () => {
  const users = await hashUsers(USERS);
  expect(await users.check(at("op"), "correct horse")).toBe(true);
  expect(await users.check(at("Ö"), "ß")).toBe(true);
  expect(await users.check(at("op"), "ß")).toBe(false);
  expect(await users.check(at("op"), "")).toBe(false);
  expect(await users.check(at("nobody"), "correct horse")).toBe(false);
  expect(await users.check(at("__proto__"), "correct horse")).toBe(false);
  expect(await users.check(at("op", "10.0.0.2"), "correct horse".padEnd(5000))).toBe(false);
});

test("a name that nobody has is evaluated as any other", async () => {
  const users = await hashUsers(USERS);
  await users.check(at("nobody"), "x");
  await users.check(at("op"), "x");
  expect(users.evaluated).toBe(2);
});

test("of 1000 wrong passwords 10 are evaluated a minute; others, and the same from elsewhere, get in", async () => {
  let nowMs = 0;
  const users = await hashUsers(USERS, { nowMs: () => nowMs });
  const wrong = async () => {
    for (let i = 0; i < 1000; i++) expect(await users.check(at("op"), `guess ${i}`)).toBe(false);
  };
  expect(users.lockedForMs(at("op"))).toBe(0);
  await wrong();
  expect(users.evaluated).toBe(10);
  expect([users.lockedForMs(at("op")), users.lockedForMs(at("Ö")), users.lockedForMs(at("op", "10.0.0.2"))]).toEqual([60_000, 0, 0]);
  expect(await users.check(at("op"), "correct horse")).toBe(false);
  expect(users.evaluated).toBe(10);
  expect(await users.check(at("Ö"), "ß")).toBe(true);
  expect(await users.check(at("op", "10.0.0.2"), "correct horse")).toBe(true);
  nowMs = 60_000;
  expect(await users.check(at("op"), "correct horse")).toBe(true);
  await wrong();
  expect(users.evaluated).toBe(23);
});

test("many clients at once with the right password all get in", async () => {
  const users = await hashUsers(USERS);
  const answers = await Promise.all(Array.from({ length: 40 }, () => users.check(at("op"), "correct horse")));
  expect(answers.every(Boolean)).toBe(true);
});

test("1000 wrong ones at once: 10 are evaluated, each gets an answer, and the right user is let in after them", async () => {
  const users = await hashUsers(USERS);
  const answers = await Promise.all(Array.from({ length: 1000 }, () => users.check(at("op"), "wrong")));
  expect(answers.every((isIn) => !isIn)).toBe(true);
  expect(users.evaluated).toBe(10);
  expect(await users.check(at("op", "10.0.0.2"), "correct horse")).toBe(true);
});
