import { join } from "node:path";
import { expect, test } from "vitest";
import { createTextCache, watchChanges } from "./changes.ts";
import { openDatabase } from "./database.ts";
import { createKey, revokeKey } from "./keys.ts";
import { COLLECTOR, modbusSource, startTestServer, temporaryFolder } from "./testing.ts";

test("rows are told as they come, change, move and go; reading is nothing", () => {
  const db = openDatabase(join(temporaryFolder(), "c.db"));
  const told: [id: number, moved: boolean][] = [];
  watchChanges(db).watch("sites", ["uuid"], (...change) => told.push(change));
  db.prepare("INSERT INTO sites (uuid, name) VALUES ('a', 'b'), ('c', 'd')").run();
  db.prepare("SELECT * FROM sites").all();
  db.prepare("UPDATE sites SET name = 'e' WHERE uuid = 'a'").run();
  db.prepare("UPDATE sites SET uuid = 'f' WHERE uuid = 'a'").run();
  db.prepare("DELETE FROM sites WHERE uuid = 'c'").run();
  db.prepare("INSERT INTO machines (uuid) VALUES ('m')").run();
  expect(told).toEqual([
    [1, true],
    [2, true],
    [1, false],
    [1, true],
    [2, true],
  ]);
  db.close();
});

test("what another connection commits is seen; it is asked for once in one run", async () => {
  const file = join(temporaryFolder(), "c.db");
  const [db, other] = [openDatabase(file), openDatabase(file)];
  const changes = watchChanges(db);
  expect(watchChanges(db)).toBe(changes);
  const first = changes.others();
  db.prepare("INSERT INTO sites (uuid, name) VALUES ('a', 'b')").run();
  await Promise.resolve();
  expect(changes.others()).toBe(first);
  await Promise.resolve();
  other.prepare("INSERT INTO sites (uuid, name) VALUES ('c', 'd')").run();
  expect(changes.others()).not.toBe(first);
  db.close();
  other.close();
});

test("texts are kept within their bound, the oldest go first", () => {
  const cache = createTextCache(10);
  expect([cache.get(1), cache.put(1, "AAAA"), cache.get(1)]).toEqual([undefined, "AAAA", "AAAA"]);
  cache.put(2, "BBBB");
  cache.put(1, "A2A2");
  cache.put(3, "CCCC");
  expect([1, 2, 3].map(cache.get)).toEqual(["A2A2", undefined, "CCCC"]);
  cache.drop(1);
  expect(cache.get(1)).toBeUndefined();
  cache.put(4, "longer than all");
  expect([cache.get(4), cache.get(3)]).toEqual([undefined, undefined]);
  cache.put(5, "E");
  cache.clear();
  expect(cache.get(5)).toBeUndefined();
});

test("a page that was read before is never an old one: status, variables, records, and keys of the command line", async () => {
  const api = await startTestServer();
  const list = async () => (await api.send("GET", "/v2/data-sources")).body["data"];
  expect(await list()).toEqual([]);
  const uuid = String((await api.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
  expect(await list()).toHaveProperty("0.readout_status.configured_variables", 0);
  await api.send("POST", "/ext/v1/variables", { data_source: uuid, name: "v", address: "holding:0" });
  expect(await list()).toHaveProperty("0.readout_status.configured_variables", 1);
  const readout_status = { last_readout_at: null, configured_variables: 9, state: { type: "OK" } };
  await api.send("PUT", "/ext/v1/readout-statuses", [{ data_source: uuid, readout_status }]);
  expect(await list()).toHaveProperty("0.readout_status", readout_status);
  await api.send("PATCH", `/v2/data-sources/${uuid}`, { name: "renamed" });
  expect(await list()).toHaveProperty("0.name", "renamed");

  const db = openDatabase(join(api.folder, "api", "configuration.db"));
  const authorization = createKey(db, { role: "collector", collector: COLLECTOR });
  expect((await api.send("GET", "/v2/data-sources", undefined, { authorization })).body["data"]).toEqual(await list());
  revokeKey(db, 3);
  expect((await api.send("GET", "/v2/data-sources", undefined, { authorization })).status).toBe(401);
  db.close();
  await api.send("DELETE", `/v2/data-sources/${uuid}`);
  expect(await list()).toEqual([]);
});
