import { join } from "node:path";
import { expect, test } from "vitest";
import { fieldNames, openAudit } from "./audit.ts";
import { openDatabase } from "./database.ts";
import { COLLECTOR, modbusSource, mqttSink, startTestServer, temporaryFolder } from "./testing.ts";

const entries = (folder: string) => {
  const db = openDatabase(join(folder, "api", "configuration.db"));
  const newest = openAudit(db).newest(100);
  db.close();
  return newest.reverse();
};

test("who changed what and when, in which fields, and never a value", async () => {
  const api = await startTestServer();
  const details = { type: "s7plus", host: "canary-host", port: 102, password: { type: "set", value: "canary-password" } };
  const source = await api.send("POST", "/v2/data-sources", { ...modbusSource("canary-name"), details });
  const uuid = String(source.body["uuid"]);
  await api.send("PATCH", `/v2/data-sources/${uuid}`, { note: "canary-note", details: { password: { type: "none" } } });
  const sink = await api.send("POST", "/v2/data-sinks", mqttSink(), { authorization: api.collectorKey });
  await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
  await api.send("DELETE", `/v2/data-sources/${uuid}`);
  const trail = entries(api.folder);
  expect(trail).toMatchObject([
    { operation: "createDataSource", resource: uuid, role: "admin", key_name: "file admin.key", address: "127.0.0.1" },
    { operation: "patchDataSource", resource: uuid, fields: ["note", "details.password"] },
    { operation: "createDataSink", resource: sink.body["uuid"], role: "collector", key_name: "file collector.key" },
    { operation: "getSecrets", resource: null, fields: [] },
    { operation: "deleteDataSource", resource: uuid, fields: [] },
  ]);
  expect(trail.map(({ at }) => at)).toEqual(trail.map(({ at }) => at).sort());
  expect(JSON.stringify(trail)).not.toContain("canary");
});

test("what was refused, read or reported is not in it", async () => {
  const api = await startTestServer();
  await api.send("POST", "/v2/data-sources", { ...modbusSource(), name: 7 });
  await api.send("POST", "/v2/sites", { name: "x" }, { authorization: api.collectorKey });
  await api.send("DELETE", `/v2/data-sources/${COLLECTOR}`);
  await api.send("GET", "/v2/data-sources");
  await api.send("PUT", "/ext/v1/readout-statuses", []);
  await api.send("POST", "/v2/timeseries", { variables: [COLLECTOR], start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" });
  expect(entries(api.folder)).toEqual([]);
});

test("the trail keeps its newest hundred thousand", () => {
  const db = openDatabase(join(temporaryFolder(), "c.db"));
  const audit = openAudit(db);
  audit.record({ role: "admin", address: "local" }, "first", null, []);
  db.prepare("UPDATE sqlite_sequence SET seq = 100000 WHERE name = 'audit'").run();
  audit.record({ role: "admin", address: "local" }, "last", null, []);
  expect(audit.newest(10).map(({ operation }) => operation)).toEqual(["last"]);
  db.close();
});

test("of a body the names of its fields are kept", () => {
  expect(
    fieldNames({ name: "x", details: { type: "s7", password: { type: "set", value: "v" } }, users: [{ a: 1 }], gone: undefined }),
  ).toEqual(["name", "details.type", "details.password", "users"]);
  for (const other of [undefined, null, "text", [1]]) expect(fieldNames(other)).toEqual([]);
});
