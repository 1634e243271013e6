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

test("who changed what and when, in which fields, with names, old and new values, and never a secret", async () => {
  const api = await startTestServer();
  const details = { type: "s7plus", host: "canary-host", port: 102, password: { type: "set", value: "canary-password" } };
  const source = await api.send("POST", "/v2/data-sources", { ...modbusSource("canary-name"), details });
  const uuid = String(source.body["uuid"]);
  await api.send("PATCH", `/v2/data-sources/${uuid}`, { note: "canary-note", details: { password: { type: "none" } } });
  const sink = await api.send("POST", "/v2/data-sinks", mqttSink(), { authorization: api.collectorKey });
  await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
  await api.send("DELETE", `/v2/data-sources/${uuid}`, undefined, { "collector-os-user": "mara" });
  const trail = entries(api.folder);
  expect(trail).toMatchObject([
    { operation: "createDataSource", resource: uuid, role: "admin", key_name: "file admin.key", address: "127.0.0.1", os_user: null },
    {
      operation: "patchDataSource",
      resource: uuid,
      fields: ["note", "details.password"],
      name: "canary-name",
      changes: [
        { field: "note", from: null, to: "canary-note" },
        { field: "details.password", from: "(not shown)", to: "(not shown)" },
      ],
    },
    { operation: "createDataSink", resource: sink.body["uuid"], role: "collector", key_name: "file collector.key" },
    { operation: "getSecrets", resource: null, fields: [] },
    { operation: "deleteDataSource", resource: uuid, fields: [], name: "canary-name", os_user: "mara" },
  ]);
  expect(trail.map(({ at }) => at)).toEqual(trail.map(({ at }) => at).sort());
  expect(trail.at(-1)?.changes).toContainEqual({ field: "details.host", from: "canary-host", to: null });
  expect(trail[0]?.changes).toContainEqual({ field: "details.host", from: null, to: "canary-host" });
  expect(JSON.stringify(trail)).not.toContain("canary-password");
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

test("fault: a flood of changes by one key pushes the others' entries out of the trail", () => {
  const db = openDatabase(join(temporaryFolder(), "c.db"));
  const audit = openAudit(db, 98);
  const by = (id: number, operation: string) =>
    audit.record({ role: "collector", key: { id, name: null }, address: "10.0.0.1" }, operation, null, []);
  audit.record({ role: "command_line", address: "local" }, "createKey", null, []);
  for (let n = 0; n < 5; n++) by(1, `one-${n}`);
  db.transaction(() => {
    for (let n = 0; n < 1000; n++) by(2, `flood-${n}`);
  })();
  for (let n = 0; n < 200; n++) audit.record({ role: "nobody", address: `10.0.${n}.1` }, "refuseKey", null, ["1 request"]);
  const kept = audit.newest(1000).map(({ operation }) => operation);
  expect(kept).toHaveLength(98);
  for (const operation of ["createKey", "one-0", "one-1", "one-4"]) expect(kept).toContain(operation);
  // Of the two that flood, each keeps its newest.
  expect(kept.filter((operation) => operation.startsWith("flood")).sort()).toEqual(
    Array.from({ length: 46 }, (_, n) => `flood-${n + 954}`),
  );
  expect(kept.filter((operation) => operation === "refuseKey")).toHaveLength(46);
  // A trail that is long already is cut down at the next entry.
  const shorter = openAudit(db, 10);
  shorter.record({ role: "admin", address: "local" }, "last", null, []);
  while (shorter.newest(1000).length > 10) shorter.record({ role: "admin", address: "local" }, "more", null, []);
  db.close();
});

test("of a body the names of its fields are kept", () => {
  expect(
    fieldNames({ name: "x", details: { type: "s7", password: { type: "set", value: "v" } }, users: [{ a: 1 }], gone: undefined }),
  ).toEqual(["name", "details.type", "details.password", "users"]);
  for (const other of [undefined, null, "text", [1]]) expect(fieldNames(other)).toEqual([]);
});
