import { join } from "node:path";
import { expect, test } from "vitest";
import { watchChanges } from "./changes.ts";
import { openDatabase } from "./database.ts";
import { createKey, revokeKey } from "./keys.ts";
import { COLLECTOR, modbusSource, startTestServer, temporaryFolder } from "./testing.ts";

test("each row that comes, changes and goes is a change; reading is none", () => {
  const db = openDatabase(join(temporaryFolder(), "c.db"));
  let changes = 0;
  watchChanges(db).watch("sites", () => {
    changes++;
  });
  const changesOf = (sql: string): number => {
    const before = changes;
    db.exec(sql);
    return changes - before;
  };
  expect(changesOf("INSERT INTO sites (uuid, name) VALUES ('a', 'b'), ('c', 'd')")).toBe(2);
  expect(changesOf("SELECT * FROM sites")).toBe(0);
  expect(changesOf("UPDATE sites SET name = 'e' WHERE uuid = 'a'")).toBe(1);
  expect(changesOf("DELETE FROM sites WHERE uuid = 'c'")).toBe(1);
  expect(changesOf("INSERT INTO machines (uuid) VALUES ('m')")).toBe(0);
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
