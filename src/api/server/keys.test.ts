import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openCollectors } from "./collectors.ts";
import { openDatabase } from "./database.ts";
import { createAuthenticate, createKey, ensureKeyFiles, listKeys, revokeKey } from "./keys.ts";
import { COLLECTOR, MACHINE as OTHER, temporaryFolder } from "./testing.ts";

function open(folder: string, name = "c.db") {
  const db = openDatabase(join(folder, name));
  openCollectors(db).ensure(COLLECTOR);
  openCollectors(db).ensure(OTHER);
  return db;
}
const authenticate = (db: ReturnType<typeof open>, header: string | undefined) => {
  const caller = createAuthenticate(db)(header);
  if (!caller) return undefined;
  const { key: _, ...grant } = caller;
  return grant;
};
const read = (file: string) => readFileSync(file, "utf8").trim();

test("the first start writes both keys, readable by the owner alone; the next one leaves them", () => {
  const folder = temporaryFolder();
  const db = open(folder);
  const files = ensureKeyFiles(db, join(folder, "keys"), COLLECTOR);
  const [admin, collector] = [read(files.admin), read(files.collector)];
  for (const file of [files.admin, files.collector]) expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "keys")).mode & 0o777).toBe(0o700);
  expect(authenticate(db, admin)).toEqual({ role: "admin" });
  expect(authenticate(db, collector)).toEqual({ role: "collector", collector: COLLECTOR });
  ensureKeyFiles(db, join(folder, "keys"), COLLECTOR);
  expect([read(files.admin), read(files.collector)]).toEqual([admin, collector]);
  db.close();
});

test("the collector's key is made again where its file is lost, damaged or another collector's; the admin's is not", () => {
  const folder = temporaryFolder();
  const db = open(folder);
  const keys = join(folder, "keys");
  const files = ensureKeyFiles(db, keys, COLLECTOR);
  const first = read(files.collector);
  rmSync(files.collector);
  rmSync(files.admin);
  ensureKeyFiles(db, keys, COLLECTOR);
  const second = read(files.collector);
  expect(second).not.toBe(first);
  expect(authenticate(db, first)).toBeUndefined();
  expect(() => read(files.admin)).toThrow("ENOENT");
  writeFileSync(files.collector, "torn");
  ensureKeyFiles(db, keys, COLLECTOR);
  expect(authenticate(db, read(files.collector))).toEqual({ role: "collector", collector: COLLECTOR });
  ensureKeyFiles(db, keys, OTHER);
  expect(authenticate(db, read(files.collector))).toEqual({ role: "collector", collector: OTHER });
  db.close();
});

test("key files that outlived their database stay good", () => {
  const folder = temporaryFolder();
  const first = open(folder);
  const files = ensureKeyFiles(first, join(folder, "keys"), COLLECTOR);
  const admin = read(files.admin);
  first.close();
  const fresh = open(folder, "fresh.db");
  ensureKeyFiles(fresh, join(folder, "keys"), COLLECTOR);
  expect(read(files.admin)).toBe(admin);
  expect(authenticate(fresh, admin)).toEqual({ role: "admin" });
  fresh.close();
});

test("the database holds no key, only hashes; a key not given out opens nothing", () => {
  const folder = temporaryFolder();
  const db = open(folder);
  const key = createKey(db, { role: "collector", collector: COLLECTOR });
  expect(authenticate(db, key)).toEqual({ role: "collector", collector: COLLECTOR });
  expect(authenticate(db, `Bearer ${key}`)).toEqual({ role: "collector", collector: COLLECTOR });
  for (const wrong of [undefined, "", "Bearer", "Bearer ", key.slice(1), randomBytes(32).toString("base64url"), `Token ${key}`])
    expect(authenticate(db, wrong)).toBeUndefined();
  expect(JSON.stringify(db.prepare("SELECT * FROM api_keys").all())).not.toContain(key);
  db.close();
});

test("keys are listed without anything that opens, and a revoked one opens nothing any more", () => {
  const db = open(temporaryFolder());
  const key = createKey(db, { role: "admin" }, "laptop");
  const other = createKey(db, { role: "collector", collector: OTHER });
  expect(listKeys(db)).toEqual([
    { id: 1, role: "admin", collector: null, name: "laptop", file: null, created_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    { id: 2, role: "collector", collector: OTHER, name: null, file: null, created_at: expect.any(String) },
  ]);
  expect(createAuthenticate(db)(key)).toEqual({ role: "admin", key: { id: 1, name: "laptop" } });
  expect([revokeKey(db, 1), revokeKey(db, 1)]).toEqual([true, false]);
  expect([authenticate(db, key), authenticate(db, other)]).toEqual([undefined, { role: "collector", collector: OTHER }]);
  db.close();
});
