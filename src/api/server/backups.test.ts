import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { backupsDir, listBackups, makeBackup, restoreBackup } from "./backups.ts";
import { openDatabase } from "./database.ts";
import { COLLECTOR, modbusSource, startTestServer, type TestServer, temporaryFolder } from "./testing.ts";

const databaseOf = (api: TestServer): string => join(api.folder, "api", "configuration.db");
const names = async (api: TestServer) => (await api.send("GET", "/v2/data-sources")).body["data"];

test("a backup of the day is written by itself, for its owner alone, with no secret that can be read", async () => {
  const api = await startTestServer();
  await expect.poll(() => listBackups(databaseOf(api)), { timeout: 5000 }).toHaveLength(1);
  const details = { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "canary-password" } };
  await api.send("POST", "/v2/data-sources", { ...modbusSource(), details });
  const db = openDatabase(databaseOf(api));
  const file = await makeBackup(db, databaseOf(api));
  db.close();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const bytes = readFileSync(file);
  expect(bytes.includes("s7plus")).toBe(true);
  for (const secret of [
    "canary-password",
    api.adminKey,
    api.collectorKey,
    readFileSync(join(api.folder, "keys", "secrets.key"), "utf8").trim(),
  ])
    expect(bytes.includes(secret)).toBe(false);
});

test("a backup of a day to come, from a clock that was wrong, keeps no backup of this day away", async () => {
  const folder = temporaryFolder();
  const first = await startTestServer(folder);
  const file = databaseOf(first);
  await expect.poll(() => listBackups(file), { timeout: 5000 }).toHaveLength(1);
  await first.server.close();
  rmSync(backupsDir(file), { recursive: true });
  const db = openDatabase(file);
  const far = Array.from({ length: 7 }, (_, day) => Date.now() + (365 + day) * 86_400_000);
  for (const at of far) await makeBackup(db, file, at);
  db.close();
  for (let start = 0; start < 2; start++) {
    await (await startTestServer(folder)).server.close();
    const [newest, ...others] = listBackups(file);
    expect(Math.abs(Date.parse(newest?.at ?? "") - Date.now())).toBeLessThan(60_000);
    expect(others.map(({ at }) => Date.parse(at))).toEqual(far.slice(1).reverse());
  }
});

test("seven backups are kept, the newest first in the list, and nothing half-written is among them", async () => {
  const file = join(temporaryFolder(), "api.db");
  const db = openDatabase(file);
  for (let day = 1; day <= 9; day++) await makeBackup(db, file, Date.parse(`2026-11-0${day}T03:00:00Z`));
  writeFileSync(join(backupsDir(file), "configuration-20261110T030000000Z.db.tmp"), "half");
  expect(listBackups(file).map(({ at }) => at)).toEqual([9, 8, 7, 6, 5, 4, 3].map((day) => `2026-11-0${day}T03:00:00.000Z`));
  db.close();
});

test("a restored backup serves what it held, with its secrets and keys, and no revision of before", async () => {
  const api = await startTestServer();
  const details = { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "pw" } };
  const plc = await api.send("POST", "/v2/data-sources", { ...modbusSource("kept"), details });
  const revision = `/ext/v1/revision?collector=${COLLECTOR}`;
  const before = (await api.send("GET", revision)).headers.get("etag") ?? "";
  const file = databaseOf(api);
  const db = openDatabase(file);
  const backup = await makeBackup(db, file);
  db.close();
  await api.send("POST", "/v2/data-sources", modbusSource("lost"));
  await api.server.close();

  const { aside } = restoreBackup(file, backup);
  expect(existsSync(aside ?? "")).toBe(true);
  const again = await startTestServer(api.folder);
  expect(await names(again)).toMatchObject([{ name: "kept" }]);
  const changed = await again.send("GET", revision, undefined, { "if-none-match": before });
  expect(changed.status).toBe(200);
  const secrets = await again.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: again.collectorKey });
  expect(secrets.body["secrets"]).toEqual({ [String(plc.body["uuid"])]: { password: "pw" } });
  expect(again.adminKey).toBe(api.adminKey);
});

test("a damaged or vanished database is refused with the way back, and the way back leads back", async () => {
  const api = await startTestServer();
  await api.send("POST", "/v2/data-sources", modbusSource("kept"));
  const file = databaseOf(api);
  const db = openDatabase(file);
  const backup = await makeBackup(db, file);
  db.close();
  await api.server.close();
  const healthy = readFileSync(file);
  const damages: Readonly<Record<string, () => void>> = {
    "overwritten head": () => writeFileSync(file, Buffer.concat([Buffer.alloc(4096, 0x55), healthy.subarray(4096)])),
    "overwritten pages": () => writeFileSync(file, Buffer.concat([healthy.subarray(0, 8192), Buffer.alloc(healthy.length - 8192, 0x55)])),
    "cut off": () => writeFileSync(file, healthy.subarray(0, 3 * 4096)),
    empty: () => truncateSync(file),
    gone: () => rmSync(file),
  };
  for (const [damage, inflict] of Object.entries(damages)) {
    inflict();
    await expect(startTestServer(api.folder), damage).rejects.toThrow(/configuration\.db.*collector api restore/s);
    restoreBackup(file, backup);
    const again = await startTestServer(api.folder);
    expect(await names(again), damage).toMatchObject([{ name: "kept" }]);
    await again.server.close();
  }
});

test("what is no backup is refused, and what is there stays as it is", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "api.db");
  openDatabase(file).close();
  const before = readFileSync(file);
  writeFileSync(join(folder, "text"), "no database, but long enough to be looked at".repeat(200));
  mkdirSync(join(folder, "dir"));
  for (const wrong of ["text", "dir", "absent"])
    expect(() => restoreBackup(file, join(folder, wrong))).toThrow(`the backup ${join(folder, wrong)} cannot be used`);
  expect(readFileSync(file)).toEqual(before);
  expect(readdirSync(dirname(file)).filter((name) => name.includes("restored"))).toEqual([]);
});
