import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { openAudit } from "./audit.ts";
import { backupsDir, keptBackups, listBackups, makeBackup } from "./backups.ts";
import { openDatabase } from "./database.ts";
import { documentText } from "./document.ts";
import { parseImport } from "./import-file.ts";
import { createKey, listKeys } from "./keys.ts";
import { lookAtRestore, restore } from "./restore.ts";
import { COLLECTOR, modbusSource, startTestServer, type TestServer, temporaryFolder } from "./testing.ts";

const databaseOf = (api: TestServer): string => join(api.folder, "api", "configuration.db");
const placesOf = (databaseFile: string) => ({ databaseFile, lastGoodFile: join(dirname(databaseFile), "last-good.json") });
const names = async (api: TestServer) => (await api.send("GET", "/v2/data-sources")).body["data"];

test("a backup of the day is written by itself, for its owner alone, with no secret that can be read", async () => {
  const api = await startTestServer();
  await expect.poll(() => listBackups(databaseOf(api)), { timeout: 5000 }).toHaveLength(1);
  const details = { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "canary-password" } };
  await api.send("POST", "/v2/data-sources", { ...modbusSource(), details });
  const db = openDatabase(databaseOf(api));
  const file = await makeBackup(databaseOf(api));
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

/** Names of the data sources in the newest backup. */
function inNewest(databaseFile: string): readonly string[] {
  const { data_sources } = JSON.parse(readFileSync(listBackups(databaseFile)[0]?.file ?? "", "utf8"));
  return data_sources.map(({ name }: { readonly name: string }) => name);
}

test("a backup is made soon after the last change, also while changes go on, and none without one", { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  const soon = { backupTimes: { lookMs: 20, quietMs: 300, longestMs: 60_000 } };
  const api = await startTestServer(folder, COLLECTOR, soon);
  const file = databaseOf(api);
  await expect.poll(() => listBackups(file), { timeout: 10_000 }).toHaveLength(1);
  const { body } = await api.send("POST", "/v2/data-sources", modbusSource("first"));
  await expect.poll(() => inNewest(file), { timeout: 20_000 }).toEqual(["first"]);
  // A status is no change of the configuration.
  const made = listBackups(file).map((backup) => backup.file);
  const readout_status = { last_readout_at: null, configured_variables: 0, state: { type: "OK" } };
  const report = [{ data_source: body["uuid"], readout_status }];
  expect((await api.send("PUT", "/ext/v1/readout-statuses", report, { authorization: api.collectorKey })).status).toBeLessThan(300);
  await new Promise((done) => setTimeout(done, 1500));
  expect(listBackups(file).map((backup) => backup.file)).toEqual(made);
  await api.send("POST", "/v2/data-sources", modbusSource("second"));
  await api.server.close();

  // What changed before the end is in a backup after the next start.
  const again = await startTestServer(folder, COLLECTOR, soon);
  await expect.poll(() => inNewest(file), { timeout: 20_000 }).toEqual(["first", "second"]);
  await again.server.close();

  // Changes without a pause.
  const busy = await startTestServer(folder, COLLECTOR, { backupTimes: { lookMs: 20, quietMs: 60_000, longestMs: 500 } });
  let n = 0;
  await expect
    .poll(
      async () => {
        await busy.send("POST", "/v2/data-sources", modbusSource(`more-${++n}`));
        return inNewest(file).length;
      },
      { timeout: 20_000, interval: 50 },
    )
    .toBeGreaterThan(2);
});

test("a backup of a day to come, from a clock that was wrong, keeps no backup of this day away", async () => {
  const folder = temporaryFolder();
  const first = await startTestServer(folder);
  const file = databaseOf(first);
  await expect.poll(() => listBackups(file), { timeout: 5000 }).toHaveLength(1);
  await first.server.close();
  rmSync(backupsDir(file), { recursive: true });
  const db = openDatabase(file);
  // The seven days of one week as generations count it: the day of the test decides nothing.
  const day = 86_400_000;
  const week = Math.ceil((Date.now() + 365 * day) / (7 * day)) * 7 * day;
  const far = Array.from({ length: 7 }, (_, n) => week + n * day);
  for (const at of far) await makeBackup(file, at);
  db.close();
  for (let start = 0; start < 2; start++) {
    await (await startTestServer(folder)).server.close();
    const [newest, ...others] = listBackups(file);
    expect(Math.abs(Date.parse(newest?.at ?? "") - Date.now())).toBeLessThan(60_000);
    expect(others.map(({ at }) => Date.parse(at))).toEqual(far.slice(1).reverse());
  }
});

test("backups are kept in generations: nothing that is made later pushes those of the days and weeks before out", async () => {
  const at = (time: number) => ({ file: "", at: new Date(time).toISOString() });
  const [minute, day] = [60_000, 86_400_000];
  const now = Date.parse("2026-11-20T12:00:00Z");
  // One each 10 min for 60 days; each time what no generation keeps goes.
  let backups: { file: string; at: string }[] = [];
  let most = 0;
  for (let time = now - 60 * day; time <= now; time += 10 * minute) {
    backups = [at(time), ...backups];
    const kept = keptBackups(backups);
    backups = backups.filter((one) => kept.has(one));
    most = Math.max(most, backups.length);
  }
  const ages = backups.map((one) => (now - Date.parse(one.at)) / day);
  expect(most).toBeLessThanOrEqual(18);
  expect(ages.slice(0, 3)).toEqual([0, (10 * minute) / day, (20 * minute) / day]);
  for (const days of [1, 2, 3, 4, 5, 6]) expect(ages.filter((age) => age > days - 0.5 && age < days + 0.5).length).toBeGreaterThan(0);
  for (const weeks of [1, 2, 3]) expect(ages.filter((age) => age > weeks * 7 - 7 && age <= weeks * 7 + 7).length).toBeGreaterThan(0);
  expect(Math.max(...ages)).toBeLessThan(28);
});

test("the newest backup stands first in the list, and nothing half-written is among them", async () => {
  const file = join(temporaryFolder(), "api.db");
  const db = openDatabase(file);
  for (let day = 1; day <= 9; day++) await makeBackup(file, Date.parse(`2026-11-0${day}T03:00:00Z`));
  writeFileSync(join(backupsDir(file), "configuration-20261110T030000000Z.json.tmp"), "half");
  // Seven days, and the newest of the week before them.
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
  const backup = await makeBackup(file);
  db.close();
  await api.send("POST", "/v2/data-sources", modbusSource("lost"));
  await api.server.close();

  const { aside } = await restore(placesOf(file), backup, "backup");
  expect(existsSync(aside ?? "")).toBe(true);
  const again = await startTestServer(api.folder);
  expect(await names(again)).toMatchObject([{ name: "kept" }]);
  const changed = await again.send("GET", revision, undefined, { "if-none-match": before });
  expect(changed.status).toBe(200);
  const secrets = await again.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: again.collectorKey });
  expect(secrets.body["secrets"]).toEqual({ [String(plc.body["uuid"])]: { password: "pw" } });
  expect(again.adminKey).toBe(api.adminKey);
});

/** A server with a password, a site, a key of its own and a trail; the document that it holds, and what a client sees of it. */
async function plantWithAll() {
  const api = await startTestServer();
  const site = (await api.send("POST", "/v2/sites", { name: "north" })).body["uuid"];
  await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site, name: "box" });
  const details = { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "pw" } };
  const { uuid } = (await api.send("POST", "/v2/data-sources", { ...modbusSource("plc"), details })).body;
  await api.send("POST", "/ext/v1/variables", { data_source: uuid, name: "speed", address: "DB1.0" });
  const file = databaseOf(api);
  const db = openDatabase(file);
  createKey(db, { role: "admin" }, "another's");
  const old = join(backupsDir(file), "configuration-20260101T000000000Z.db");
  mkdirSync(backupsDir(file), { recursive: true });
  await db.backup(old);
  const text = [...documentText(db, [])].join("");
  const shown = (of: typeof db) => ({
    document: [...documentText(of, [])].join(""),
    keys: listKeys(of),
    trail: openAudit(of)
      .newest(1000)
      .filter(({ operation }) => operation !== "restoreBackup"),
  });
  const before = shown(db);
  db.close();
  return {
    api,
    file,
    old,
    text,
    before,
    password: { [String(uuid)]: { password: "pw" } },
    after() {
      const restored = openDatabase(file);
      try {
        return shown(restored);
      } finally {
        restored.close();
      }
    },
    async secrets() {
      const again = await startTestServer(api.folder);
      const { body } = await again.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
      await again.server.close();
      return body["secrets"];
    },
  };
}

test("a backup brings all back where nothing else is left, and so does one that a build of before wrote", { timeout: 60_000 }, async () => {
  const { api, file, old, before, password, after, secrets } = await plantWithAll();
  const made = await makeBackup(file);
  await api.server.close();
  expect(listBackups(file).map((backup) => backup.file)).toEqual(expect.arrayContaining([made, old]));
  for (const backup of [made, old]) {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    expect((await lookAtRestore(placesOf(file), backup, "backup")).from.counts).toEqual({ data_sources: 1, data_sinks: 0, variables: 1 });
    expect((await restore(placesOf(file), backup, "backup")).warnings).toEqual([]);
    expect(after(), backup).toEqual(before);
    expect(await secrets(), backup).toEqual(password);
  }
});

test("a backup is a copy of the database where a restore would refuse a record of the document", async () => {
  const { api, file, before, after } = await plantWithAll();
  const db = openDatabase(file);
  db.prepare("UPDATE data_sources SET details = json_set(details, '$.port', 'none')").run();
  db.close();
  const made = await makeBackup(file);
  await api.server.close();
  expect(readFileSync(made).toString("latin1", 0, 15)).toBe("SQLite format 3");
  expect(statSync(made).mode & 0o777).toBe(0o600);
  expect((await lookAtRestore(placesOf(file), made, "backup")).from.counts).toEqual({ data_sources: 1, data_sinks: 0, variables: 1 });
  rmSync(file);
  await restore(placesOf(file), made, "backup");
  expect(after().keys).toEqual(before.keys);
  const restored = openDatabase(file);
  expect(restored.prepare("SELECT details ->> '$.port' FROM data_sources").pluck().all()).toEqual(["none"]);
  restored.close();
});

test("an export is restored with the keys, passwords and trail of what it replaces, and a backup can be imported", async () => {
  const { api, file, text, before, password, after, secrets } = await plantWithAll();
  await api.send("POST", "/v2/data-sources", modbusSource("mistake"));
  const made = await makeBackup(file);
  await api.server.close();
  const exported = join(api.folder, "export.json");
  writeFileSync(exported, text.replace(`"name":"plc"`, `"name":"plc","colour":"red"`));
  expect((await lookAtRestore(placesOf(file), exported, "backup")).lost).toEqual({ count: 1, names: ["mistake"] });
  const { warnings: left } = await restore(placesOf(file), exported, "backup");
  expect(left).toEqual([expect.stringMatching(/\(plc\): colour: is not taken over$/)]);
  expect(after()).toMatchObject({ document: before.document, keys: before.keys });
  expect(after().trail.length).toBeGreaterThan(before.trail.length);
  expect(await secrets()).toEqual(password);

  const { records, problems, warnings } = parseImport(JSON.parse(readFileSync(made, "utf8")));
  expect([problems, records.data_sources.map(({ name }) => name)]).toEqual([[], ["plc", "mistake"]]);
  expect(warnings).toEqual(["api_keys", "secrets", "audit"].map((name) => expect.stringMatching(`^${name}: is not taken over`)));
});

test("a damaged or vanished database is refused with the way back, and the way back leads back", async () => {
  const api = await startTestServer();
  await api.send("POST", "/v2/data-sources", modbusSource("kept"));
  const file = databaseOf(api);
  const db = openDatabase(file);
  const backup = await makeBackup(file);
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
    await restore(placesOf(file), backup, "backup");
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
  writeFileSync(join(folder, "newer"), `{"version":2,"data_sources":[]}`);
  writeFileSync(join(folder, "record"), `{"version":1,"data_sources":[{"name":"half"}]}`);
  writeFileSync(join(folder, "other"), "{}");
  mkdirSync(join(folder, "dir"));
  for (const wrong of ["text", "newer", "record", "other", "dir", "absent"])
    await expect(restore(placesOf(file), join(folder, wrong), "backup")).rejects.toThrow(
      `the backup ${join(folder, wrong)} cannot be used`,
    );
  expect(readFileSync(file)).toEqual(before);
  expect(readdirSync(dirname(file)).filter((name) => name.includes("restored"))).toEqual([]);
});
