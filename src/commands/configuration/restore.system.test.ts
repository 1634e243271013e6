import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { saveLastGood } from "../../api/last-good.ts";
import { listBackups, makeBackup } from "../../api/server/backups.ts";
import { openDatabase } from "../../api/server/database.ts";
import { COLLECTOR, modbusSource, mqttSink, startTestServer, type TestServer, temporaryFolder } from "../../api/server/testing.ts";
import { type RunOptions, runCommandWith, settingsFile } from "../testing.ts";

const SOURCES = 20;

interface Plant {
  readonly api: TestServer;
  readonly database: string;
  readonly kept: string;
  run(options: RunOptions, ...words: string[]): ReturnType<typeof runCommandWith>;
  restart(): Promise<TestServer>;
  /** Names of the data sources that the API answers with now. */
  sources(): Promise<readonly string[]>;
  /** Everything in the state folder but for a running server's own files. */
  files(): ReadonlyMap<string, string>;
}

/** The first day: a backup of the empty start, then 20 sources with a variable each, a sink, and the kept configuration with all of them. */
async function firstDay(): Promise<Plant> {
  const folder = temporaryFolder();
  const database = join(folder, "api", "api.db");
  const kept = join(folder, "last-good.json");
  const restart = () => startTestServer(folder, COLLECTOR, { databaseFile: database });
  const api = await restart();
  await expect.poll(() => listBackups(database), { timeout: 5000 }).toHaveLength(1);
  for (let n = 1; n <= SOURCES; n++) {
    const { body } = await api.send("POST", "/v2/data-sources", modbusSource(`press-${n}`));
    await api.send("POST", "/ext/v1/variables", { data_source: body["uuid"], name: "speed", address: "holding:0" });
  }
  await api.send("POST", "/v2/data-sinks", mqttSink());
  await keep(api, kept);
  await api.server.close();
  const config = settingsFile(folder, { collector: COLLECTOR });
  return {
    api,
    database,
    kept,
    restart,
    run: (options, ...words) => runCommandWith(options, "api", "restore", ...words, "--config", config),
    async sources() {
      const server = await restart();
      const { data } = JSON.parse((await server.send("GET", "/v2/data-sources")).text) as { readonly data: { readonly name: string }[] };
      await server.server.close();
      return data.map(({ name }) => name);
    },
    files: () =>
      new Map(
        readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile() && !/-(wal|shm)$|values\.db/.test(entry.name))
          .map((entry) => join(entry.parentPath, entry.name))
          .sort()
          .map((file) => [file, readFileSync(file, "base64")]),
      ),
  };
}

/** What the collector keeps of what the API answers. */
async function keep(api: TestServer, file: string): Promise<void> {
  const all = async (path: string) => JSON.parse((await api.send("GET", path)).text).data;
  await saveLastGood(file, {
    collector: COLLECTOR,
    sources: await all("/v2/data-sources"),
    sinks: await all("/v2/data-sinks"),
    variables: await all("/ext/v1/variables"),
    fetchedAt: new Date().toISOString(),
    secrets: {},
    revision: null,
  });
}

const NAMES = Array.from({ length: SOURCES }, (_, n) => `press-${n + 1}`);

test("api restore never empties a plant unasked", { timeout: 60_000 }, async () => {
  const plant = await firstDay();
  const before = plant.files();
  for (const [options, words, said] of [
    [{}, [], /the collector cannot ask.*--yes/s],
    [{ typed: "yes" }, ["--json"], /the collector cannot ask.*--yes/s],
    [{ typed: "no" }, [], /nothing was restored/],
    [{ typed: "" }, [], /nothing was restored/],
  ] as const) {
    const { code, out, err } = await plant.run(options, ...words);
    expect([code, out], err).toEqual([2, ""]);
    expect(err).toMatch(said);
    // The backup and what it would replace: age and counts of each.
    expect(err).toMatch(/AS OF +AGE +SOURCES +SINKS +VARIABLES/);
    expect(err).toMatch(/\nbackup +\S+Z +[\d.]+ m?s +0 +0 +0\n/);
    expect(err).toMatch(/\ndatabase, to be replaced +\S+Z +[\d.]+ m?s +20 +1 +20\n/);
    expect(err).toMatch(/\nkept configuration +\S+Z +[\d.]+ m?s +20 +1 +20\n/);
    expect(err).toMatch(/20 data sources are not in the backup: press-1, press-2, /);
    expect(err).toContain("collector api restore --from-last-good");
    expect(plant.files()).toEqual(before);
  }
  expect(await plant.sources()).toEqual(NAMES);
});

test("what a restore replaces stays aside, the kept configuration too, five times each", { timeout: 60_000 }, async () => {
  const plant = await firstDay();
  const kept = readFileSync(plant.kept, "utf8");
  const asked = await plant.run({ typed: "yes" });
  expect([asked.code, asked.err]).toEqual([
    0,
    expect.stringContaining("Restore this? The collector keeps a copy of what it replaces. Type yes or no: "),
  ]);
  const [, aside = "", keptAside = ""] =
    /The former database is kept as (\S+)\.\nThe former kept configuration is stored as (\S+)\.\n/.exec(asked.out) ?? [];
  expect(readFileSync(keptAside, "utf8")).toBe(kept);
  expect(await plant.sources()).toEqual([]);
  // The way back is to restore what was put aside.
  const back = await plant.run({}, aside, "--yes", "--json");
  expect([back.code, back.err]).toEqual([0, ""]);
  expect(JSON.parse(back.out)).toEqual({
    file: aside,
    aside: expect.stringContaining("api.db.replaced-"),
    last_good_aside: expect.stringContaining("last-good.json.replaced-"),
    warnings: [],
    restored: { file: aside, at: expect.any(String), counts: { data_sources: 20, data_sinks: 1, variables: 20 }, problem: null },
    replaced: { file: plant.database, at: expect.any(String), counts: { data_sources: 0, data_sinks: 0, variables: 0 }, problem: null },
    last_good: { file: plant.kept, at: expect.any(String), counts: { data_sources: 20, data_sinks: 1, variables: 20 }, problem: null },
  });
  expect(await plant.sources()).toEqual(NAMES);
  for (let n = 1; n <= 6; n++)
    for (const file of [plant.database, plant.kept]) writeFileSync(`${file}.replaced-${Date.parse("2026-01-01T00:00:00Z") + n}`, "old");
  expect((await plant.run({}, "--yes")).code).toBe(0);
  const asides = [...plant.files().keys()].filter((file) => file.includes(".replaced-"));
  expect(asides.map((file) => file.replace(/^.*\/|-\d+$/g, ""))).toEqual([
    ...Array(5).fill("api.db.replaced"),
    ...Array(5).fill("last-good.json.replaced"),
  ]);
  // Three of each are of this test's own restores.
  expect(asides.filter((file) => readFileSync(file, "utf8") === "old")).toHaveLength(4);
});

test("what a killed service wrote last is in what is put aside, and comes back with it", { timeout: 60_000 }, async () => {
  const plant = await firstDay();
  const server = await plant.restart();
  await server.send("POST", "/v2/data-sources", modbusSource("last"));
  const left = ["", "-wal"].map((suffix) => [`${plant.database}${suffix}`, readFileSync(`${plant.database}${suffix}`)] as const);
  await server.server.close();
  for (const [file, bytes] of left) writeFileSync(file, bytes);
  const restored = JSON.parse((await plant.run({}, "--yes", "--json")).out);
  expect(restored.replaced.counts.data_sources).toBe(SOURCES + 1);
  expect(await plant.sources()).toEqual([]);
  expect((await plant.run({}, restored.aside, "--yes")).code).toBe(0);
  expect(await plant.sources()).toEqual([...NAMES, "last"]);
});

test("a damaged database is reported with the backup, and stays aside as it is", { timeout: 60_000 }, async () => {
  const plant = await firstDay();
  writeFileSync(plant.database, "damaged beyond help".repeat(1000));
  const { code, err } = await plant.run({});
  expect(code).toBe(2);
  expect(err).toMatch(/\ndatabase, to be replaced +\S+Z +[\d.]+ m?s +\? +\? +\?\n/);
  expect(err).toMatch(/\ndatabase, to be replaced: the configuration database \S+api\.db cannot be opened: [^:]*not a database\n/);
  const { out } = await plant.run({}, "--yes", "--json");
  expect(readFileSync(JSON.parse(out).aside, "utf8")).toContain("damaged beyond help");
});

test("the kept configuration is restored as it was, with the keys and secrets of what it replaces", { timeout: 60_000 }, async () => {
  const plant = await firstDay();
  const details = { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "canary-password" } };
  const server = await plant.restart();
  const { body } = await server.send("POST", "/v2/data-sources", { ...modbusSource("plc"), details });
  await keep(server, plant.kept);
  await server.server.close();
  const there = [...NAMES, "plc"];
  const secrets = async (): Promise<unknown> => {
    const again = await plant.restart();
    expect(again.adminKey).toBe(plant.api.adminKey);
    const answer = await again.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: again.collectorKey });
    await again.server.close();
    return answer.body["secrets"];
  };
  const password = { [String(body["uuid"])]: { password: "canary-password" } };

  // What was changed since the configuration was kept is taken back.
  const changed = await plant.restart();
  const made = await changed.send("POST", "/v2/data-sources", modbusSource("mistake"));
  await changed.send("PATCH", `/v2/data-sources/${String(made.body["uuid"])}`, { name: "worse" });
  await changed.send("DELETE", `/v2/data-sources/${String((await changed.send("GET", "/v2/data-sources")).body["data"]?.[0]?.["uuid"])}`);
  await changed.server.close();
  const asked = await plant.run({}, "--from-last-good");
  expect([asked.code, asked.err]).toEqual([2, expect.stringMatching(/1 data source is not in the kept configuration: worse\n/)]);
  expect(asked.err).toMatch(/\nkept configuration, to be restored +\S+Z +\S+ m?s +21 +1 +20\n/);
  expect(await plant.run({}, "--from-last-good", "--yes")).toMatchObject({ code: 0, err: "" });
  // Created again, the first one comes last.
  expect([...(await plant.sources())].sort()).toEqual([...there].sort());
  expect(await secrets()).toEqual(password);

  // A database that cannot be read: the newest backup has the secrets.
  const db = openDatabase(plant.database);
  await makeBackup(plant.database, Date.now() + 1000);
  db.close();
  await new Promise((done) => setTimeout(done, 1100));
  writeFileSync(plant.database, "damaged beyond help".repeat(1000));
  expect(await plant.run({}, "--from-last-good", "--yes")).toMatchObject({ code: 0, err: "" });
  expect([...(await plant.sources())].sort()).toEqual([...there].sort());
  expect(await secrets()).toEqual(password);

  // Nothing left but the kept configuration: the passwords are named that must be set again.
  rmSync(join(plant.database, ".."), { recursive: true });
  const bare = await plant.run({}, "--from-last-good", "--yes");
  expect([bare.code, bare.err]).toEqual([0, expect.stringMatching(/\(plc\): password: .*set it again/)]);
  expect(bare.out + bare.err).not.toContain("canary");
  expect(await plant.sources()).toEqual(there);
  expect(await secrets()).toEqual({});
});

test("a kept configuration that is not there or is damaged is reported, and nothing is touched", { timeout: 60_000 }, async () => {
  const plant = await firstDay();
  writeFileSync(plant.kept, "{");
  const before = plant.files();
  const damaged = await plant.run({}, "--from-last-good", "--yes");
  expect([damaged.code, damaged.err]).toEqual([4, expect.stringContaining("last-good.json cannot be used")]);
  expect(plant.files()).toEqual(before);
  rmSync(plant.kept);
  const absent = await plant.run({}, "--from-last-good", "--yes");
  expect([absent.code, absent.err]).toEqual([2, expect.stringContaining("there is no kept configuration")]);
  const both = await plant.run({}, "file.db", "--from-last-good", "--yes");
  expect([both.code, both.err]).toEqual([2, expect.stringContaining("--from-last-good takes no file")]);
  expect((await plant.run({}, "--yes")).out).toMatch(/\nkept configuration +- +- +- +- +-\n/);
});
