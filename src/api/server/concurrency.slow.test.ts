import { join } from "node:path";
import { expect, test } from "vitest";
import { openAudit } from "./audit.ts";
import { openDatabase } from "./database.ts";
import { COLLECTOR, modbusSource, mqttSink, startTestServer, type TestServer } from "./testing.ts";

async function created(api: TestServer, path: string, body: unknown): Promise<{ readonly path: string; readonly etag: string }> {
  const sent = await api.send("POST", path, body);
  expect(sent.status).toBe(201);
  return { path: `${path}/${String(sent.body["uuid"])}`, etag: sent.headers.get("etag") ?? "" };
}

test("parallel changes of different fields are all kept", async () => {
  const api = await startTestServer();
  const { path } = await created(api, "/v2/data-sources", modbusSource());
  const patches = [
    ...["name", "note", "manufacturer", "device_model"].map((field) => ({ [field]: `new ${field}` })),
    { readout_interval: 77 },
    { readout_limit: 88 },
    { details: { host: "new.host" } },
    { details: { port: 99 } },
    { details: { ephemeral_connections: false } },
  ];
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all([...patches, ...patches].map((patch) => api.send("PATCH", path, patch)));
    expect(answers.map(({ status }) => status)).toEqual(Array(patches.length * 2).fill(204));
  }
  const { body } = await api.send("GET", path);
  expect(body).toMatchObject({
    name: "new name",
    note: "new note",
    manufacturer: "new manufacturer",
    device_model: "new device_model",
    readout_interval: 77,
    readout_limit: 88,
    details: { host: "new.host", port: 99, ephemeral_connections: false },
  });
});

test("of parallel changes with the same If-Match one is made, and the others are told", async () => {
  const api = await startTestServer();
  const { path, etag } = await created(api, "/v2/data-sources", modbusSource());
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => api.send("PATCH", path, { note: `note ${n}` }, { "if-match": etag })),
  );
  expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 412)).toHaveLength(19);
});

test("changes that come together have each their own answer, and the trail has those that were made", async () => {
  const api = await startTestServer();
  const site = { name: "s" };
  const answers = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => [
      await api.send("POST", "/v2/data-sources", modbusSource(`source ${n}`)),
      // One of each pair has the name of another one.
      await api.send("POST", "/v2/data-sinks", mqttSink(`sink ${n >> 1}`)),
      await api.send("POST", "/v2/sites", site, { authorization: api.collectorKey }),
      await api.send("PATCH", `/v2/data-sources/${COLLECTOR}`, { note: "nobody" }),
    ]),
  );
  const statuses = [0, 1, 2, 3].map((at) => answers.map((sent) => sent[at]?.status ?? 0).sort());
  expect(statuses).toEqual([Array(12).fill(201), [...Array(6).fill(201), ...Array(6).fill(409)], Array(12).fill(403), Array(12).fill(404)]);
  const made = answers.flat().flatMap(({ status, body }) => (status === 201 ? [String(body["uuid"])] : []));
  const db = openDatabase(join(api.folder, "api", "configuration.db"));
  const trail = openAudit(db).newest(100);
  db.close();
  expect(trail.map(({ resource }) => resource).sort()).toEqual(made.sort());
  expect(trail.map(({ at }) => at)).toEqual(
    trail
      .map(({ at }) => at)
      .sort()
      .reverse(),
  );
});

test("If-Match holds for every record; * and no header at all are free; a status changes no tag", async () => {
  const api = await startTestServer();
  const source = await created(api, "/v2/data-sources", modbusSource());
  const uuid = source.path.split("/").at(-1) ?? "";
  const records = [
    [source, { note: "n" }],
    [await created(api, "/v2/data-sinks", mqttSink()), { name: "n" }],
    [await created(api, "/v2/sites", { name: "s" }), { name: "n" }],
    [await created(api, "/ext/v1/variables", { data_source: uuid, name: "v", address: "holding:0" }), { name: "n" }],
    [await created(api, "/ext/v1/machines", { name: "m" }), { name: "n" }],
    [await created(api, "/ext/v1/collectors", { name: "c" }), { name: "n" }],
  ] as const;
  for (const [{ path, etag }, patch] of records) {
    expect(etag).toMatch(/^"[\w-]+-1(\.[\w-]+)?"$/);
    const status = async (method: string, tag?: string) =>
      (await api.send(method, path, method === "PATCH" ? patch : undefined, tag === undefined ? {} : { "if-match": tag })).status;
    for (const wrong of ['"x"', `W/${etag}`, "", '"a", "b"']) expect(await status("PATCH", wrong), `${path} ${wrong}`).toBe(412);
    expect(await status("DELETE", '"x"')).toBe(412);
    if (path === source.path)
      await api.send("PUT", "/ext/v1/readout-statuses", [
        { data_source: uuid, readout_status: { last_readout_at: null, configured_variables: 1, state: { type: "OK" } } },
      ]);
    expect(await status("PATCH", `"other", ${etag}`)).toBe(204);
    expect(await status("PATCH", etag)).toBe(412);
    expect(await status("PATCH", "*")).toBe(204);
    expect(await status("PATCH")).toBe(204);
    if (path.startsWith("/v2"))
      expect((await api.send("GET", path)).headers.get("etag")).toMatch(
        new RegExp(`^${etag.replace(/1(\.[\w-]+)?"$/, "4")}(\\.[\\w-]+)?"$`),
      );
  }
  const [{ path }] = records[1];
  const now = (await api.send("GET", path)).headers.get("etag") ?? "";
  expect((await api.send("DELETE", path, undefined, { "if-match": now })).status).toBe(204);
});
