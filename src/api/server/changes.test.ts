import { join } from "node:path";
import { expect, test } from "vitest";
import { createChangeCache, watchChanges } from "./changes.ts";
import { openDatabase } from "./database.ts";
import { createKey, revokeKey } from "./keys.ts";
import { COLLECTOR, modbusSource, startTestServer, temporaryFolder } from "./testing.ts";

test("a change is seen, of this connection and of another one; reading is none", () => {
  const file = join(temporaryFolder(), "c.db");
  const [db, other] = [openDatabase(file), openDatabase(file)];
  const changes = watchChanges(db);
  const first = changes.token();
  db.prepare("SELECT * FROM sites").all();
  expect(changes.token()).toBe(first);
  db.prepare("INSERT INTO sites (uuid, name) VALUES ('a', 'b')").run();
  const second = changes.token();
  other.prepare("INSERT INTO sites (uuid, name) VALUES ('c', 'd')").run();
  expect(new Set([first, second, changes.token()]).size).toBe(3);
  db.close();
  other.close();
});

test("what is kept is good for its token alone, and the oldest goes first", () => {
  const cache = createChangeCache<string>(10);
  expect([cache.get("a", "1"), cache.put("a", "1", "A", 4), cache.get("a", "1"), cache.get("a", "2")]).toEqual([
    undefined,
    "A",
    "A",
    undefined,
  ]);
  cache.put("b", "1", "B", 4);
  cache.put("a", "2", "A2", 4);
  cache.put("c", "1", "C", 4);
  expect([cache.get("b", "1"), cache.get("a", "2"), cache.get("c", "1")]).toEqual([undefined, "A2", "C"]);
  cache.put("huge", "1", "H", 11);
  expect([cache.get("huge", "1"), cache.get("c", "1")]).toEqual([undefined, undefined]);
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
