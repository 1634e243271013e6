import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Database, openDatabase } from "./database.ts";
import { SELECT_SOURCES, type StoredSourceRow, textOf } from "./source-rows.ts";
import { COLLECTOR, type Json, MACHINE, modbusSource, startTestServer, type TestServer } from "./testing.ts";

const OTHER_MACHINE = "0b6f3f0e-0f4f-4b3c-8b0f-5a1c2d3e4f51";

function databaseOf({ folder }: Pick<TestServer, "folder">): Database {
  const db = openDatabase(join(folder, "api", "configuration.db"));
  onTestFinished(() => void db.close());
  return db;
}

const texts = (db: Database): unknown[] => db.prepare("SELECT answer FROM data_sources ORDER BY id").pluck().all();
const made = (db: Database): unknown[] => db.prepare<[], StoredSourceRow>(`${SELECT_SOURCES} ORDER BY r.id`).all().map(textOf);

async function listed(api: TestServer): Promise<Json> {
  const { body } = await api.send("GET", "/v2/data-sources");
  return body["data"] as Json;
}

test("after each change the text of each record is what its row says, and what the page and the record are answered with", async () => {
  const api = await startTestServer();
  const db = databaseOf(api);
  const create = async (name: string) => String((await api.send("POST", "/v2/data-sources", modbusSource(name))).body["uuid"]);
  const [uuid, other] = [await create('press "1" – größer'), await create("press-2")];
  const source = `/v2/data-sources/${uuid}`;
  const report = (configured_variables: number, more: object = {}) => [
    "PUT",
    "/ext/v1/readout-statuses",
    [{ data_source: uuid, readout_status: { last_readout_at: null, configured_variables, state: { type: "OK" } }, ...more }],
  ];
  const variable = String(
    (await api.send("POST", "/ext/v1/variables", { data_source: uuid, name: "v", address: "holding:0", status: "ACTIVE" })).body["uuid"],
  );
  expect(await listed(api)).toHaveProperty("0.readout_status.configured_variables", 1);
  const changes = [
    ["PATCH", source, { note: "a note", manufacturer: "m", device_model: "d", readout_interval: 7, readout_limit: 8 }],
    ["PATCH", source, { note: "a note" }],
    ["PATCH", source, { machine: OTHER_MACHINE }],
    ["PATCH", source, { details: { host: "other.host" } }],
    report(9),
    report(9),
    report(9, { capabilities: { variable_discovery: true } }),
    ["PATCH", `/ext/v1/variables/${variable}`, { status: "INACTIVE" }],
    ["PATCH", `/ext/v1/variables/${variable}`, { status: "EXPLORATION" }],
    report(3),
    [
      "POST",
      "/ext/v1/variables/batch",
      { data_source: uuid, delete: [variable], change: [], create: ["a", "b"].map((name) => ({ name, address: "holding:1" })) },
    ],
    ["POST", "/ext/v1/variables", { data_source: other, name: "w", address: "holding:2", status: "ACTIVE" }],
    ["DELETE", `/v2/data-sources/${other}`, undefined],
  ] as const;
  for (const [method, path, body] of changes) {
    const { status } = await api.send(method as string, path as string, body);
    expect([200, 201, 204], `${method} ${path}`).toContain(status);
    expect(texts(db), `${method} ${path} ${JSON.stringify(body)}`).toEqual(made(db));
    const page = (await listed(api)) as unknown as readonly Json[];
    expect(page).toEqual(texts(db).map((text) => JSON.parse(String(text)) as Json));
    for (const record of page) expect((await api.send("GET", `/v2/data-sources/${String(record["uuid"])}`)).body).toEqual(record);
  }
  expect(await listed(api)).toMatchObject([{ machine: OTHER_MACHINE, note: "a note", readout_status: { configured_variables: 2 } }]);
});

test("fault: who changes a row and forgets its text leaves none, and the page is right all the same", async () => {
  const api = await startTestServer();
  const uuid = String((await api.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
  const db = databaseOf(api);
  const columns = db.pragma("table_info(data_sources)") as { readonly name: string }[];
  const text = texts(db)[0];
  const unseen = new Set(["id", "version", "answer"]);
  db.pragma("foreign_keys = OFF");
  for (const { name } of columns) {
    if (unseen.has(name)) continue;
    db.exec("BEGIN");
    const value = name === "details" || name === "state" ? '\'{"type":"ERROR"}\'' : "'1'";
    db.exec(`UPDATE data_sources SET ${name} = ${value}`);
    expect(texts(db), name).toEqual([null]);
    db.exec("ROLLBACK");
    db.exec(`UPDATE data_sources SET ${name} = ${name}`);
    expect(texts(db), name).toEqual([text]);
  }
  db.exec("UPDATE data_sources SET name = 'renamed elsewhere'");
  db.exec(
    `INSERT INTO variables (uuid, data_source, collector, name, address, status) VALUES ('v', '${uuid}', '${COLLECTOR}', 'n', 'a', 'ACTIVE')`,
  );
  expect(texts(db)).toEqual([null]);
  expect(await listed(api)).toMatchObject([{ name: "renamed elsewhere", machine: MACHINE, readout_status: { configured_variables: 1 } }]);
});

test("texts that are missing or were written otherwise are written at the next start", async () => {
  const api = await startTestServer();
  for (const name of ["a", "b", "c"]) await api.send("POST", "/v2/data-sources", modbusSource(name));
  const db = databaseOf(api);
  await api.server.close();
  const before = texts(db);
  db.exec("UPDATE data_sources SET answer = NULL WHERE id = 1; UPDATE data_sources SET answer = '{}' WHERE id = 3");
  const again = await startTestServer(api.folder);
  expect(texts(db)).toEqual(before);
  expect(await listed(again)).toMatchObject([{ name: "a" }, { name: "b" }, { name: "c" }]);
});
