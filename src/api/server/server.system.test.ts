import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { z } from "zod";
import { dataSinkResponseSchema, dataSourceResponseSchema, pageOf, validationErrorSchema } from "../../model/resources.ts";
import { startApiServer } from "./server.ts";
import {
  COLLECTOR,
  MACHINE,
  modbusSource,
  mqttSink,
  recordingLog,
  type Sent,
  startTestServer,
  type TestServer,
  temporaryFolder,
} from "./testing.ts";

/** The answer's body, held to the schema strictly: no field more, none less. */
const as = <T extends z.ZodType>(schema: T, sent: Sent): z.output<T> => schema.parse(sent.body);
const locs = (sent: Sent) => as(validationErrorSchema, sent).detail.map(({ loc }) => loc.join("."));

async function createSource(api: TestServer, request = modbusSource()) {
  const sent = await api.send("POST", "/v2/data-sources", request);
  expect(sent.status).toBe(201);
  return as(dataSourceResponseSchema, sent);
}

test("a created data source has the stamped defaults and is read back alone and in the list", async () => {
  const api = await startTestServer();
  const source = await createSource(api);
  expect(source).toMatchObject({
    type: "modbus_tcp",
    readout_interval: 10,
    readout_limit: null,
    readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "UNKNOWN" } },
    capabilities: { variable_discovery: false },
    details: { type: "modbus_tcp", host: "127.0.0.1", port: 1502, ephemeral_connections: true },
  });
  const got = await api.send("GET", `/v2/data-sources/${source.uuid.toUpperCase()}`);
  expect([got.status, got.body]).toEqual([200, source]);
  const page = as(pageOf(dataSourceResponseSchema), await api.send("GET", "/v2/data-sources"));
  expect(page).toEqual({ data: [source], metadata: { next_cursor: null } });
});

test("a patch changes what is present and nothing else; type, collector and uuid cannot change", async () => {
  const api = await startTestServer();
  const source = await createSource(api);
  const path = `/v2/data-sources/${source.uuid}`;
  const patched = await api.send("PATCH", path, { readout_interval: 2, note: "left press", details: { port: 503 } });
  expect([patched.status, patched.text]).toEqual([204, ""]);
  const after = as(dataSourceResponseSchema, await api.send("GET", path));
  expect(after).toEqual({ ...source, readout_interval: 2, note: "left press", details: { ...source.details, port: 503 } });
  expect(locs(await api.send("PATCH", path, { collector: COLLECTOR, uuid: source.uuid, type: "s7" }))).toEqual([
    "body.collector",
    "body.uuid",
    "body.type",
  ]);
  expect(locs(await api.send("PATCH", path, { details: { type: "s7" } }))).toEqual(["body.details.type"]);
  expect(locs(await api.send("PATCH", path, { details: { port: 65_536, spot: 1 } }))).toEqual(["body.details.port", "body.details.spot"]);
  expect(locs(await api.send("PATCH", path, { name: null }))).toEqual(["body.name"]);
  expect(as(dataSourceResponseSchema, await api.send("GET", path))).toEqual(after);
});

test("a deleted data source is gone with its variables", async () => {
  const api = await startTestServer();
  const source = await createSource(api);
  await api.send("POST", "/ext/v1/variables", { data_source: source.uuid, name: "t", address: "holding:0" });
  expect((await api.send("DELETE", `/v2/data-sources/${source.uuid}`)).status).toBe(204);
  expect((await api.send("GET", `/v2/data-sources/${source.uuid}`)).status).toBe(404);
  expect((await api.send("DELETE", `/v2/data-sources/${source.uuid}`)).status).toBe(404);
  expect((await api.send("GET", "/ext/v1/variables")).body["data"]).toEqual([]);
});

test("pages run through every record once in creation order, whatever is created or deleted between them", async () => {
  const api = await startTestServer();
  const made: string[] = [];
  for (let n = 0; n < 120; n++) made.push((await createSource(api, modbusSource(`source ${n}`))).uuid);
  const first = as(pageOf(dataSourceResponseSchema), await api.send("GET", `/v2/data-sources?collector=${COLLECTOR}`));
  expect(first.data.map((source) => source.uuid)).toEqual(made.slice(0, 50));
  await api.send("DELETE", `/v2/data-sources/${made[10]}`);
  await api.send("DELETE", `/v2/data-sources/${made[60]}`);
  const late = await createSource(api, modbusSource("late"));
  const seen = first.data.map((source) => source.uuid);
  let cursor = first.metadata.next_cursor;
  const used = cursor;
  while (cursor !== null) {
    const page = as(pageOf(dataSourceResponseSchema), await api.send("GET", `/v2/data-sources?cursor=${cursor}&collector=${COLLECTOR}`));
    seen.push(...page.data.map((source) => source.uuid));
    cursor = page.metadata.next_cursor;
  }
  expect(seen).toEqual([...made.filter((_, n) => n !== 60), late.uuid]);
  expect((await api.send("GET", `/v2/data-sources?cursor=${used}&collector=${COLLECTOR}`)).status).toBe(200);
  for (const query of [
    `cursor=${used}`,
    `cursor=${used}&collector=${MACHINE}`,
    `cursor=${used}&collector=${COLLECTOR}&machine=${MACHINE}`,
    `cursor=x${used}&collector=${COLLECTOR}`,
  ])
    expect(locs(await api.send("GET", `/v2/data-sources?${query}`))).toEqual(["query.cursor"]);
});

test("filters are repeated keys: OR within one, AND between them; wrong ones are named", async () => {
  const api = await startTestServer();
  const a = await createSource(api, modbusSource("a"));
  const b = await createSource(api, { ...modbusSource("b"), machine: randomUUID() });
  const names = async (query: string) => {
    const page = as(pageOf(dataSourceResponseSchema), await api.send("GET", `/v2/data-sources?${query}`));
    return page.data.map((source) => source.name);
  };
  expect(await names(`uuid=${b.uuid}&uuid=${a.uuid}`)).toEqual(["a", "b"]);
  expect(await names(`uuid=${b.uuid}&uuid=${a.uuid}&machine=${b.machine.toUpperCase()}`)).toEqual(["b"]);
  expect(await names(`collector=${randomUUID()}`)).toEqual([]);
  const many = Array.from({ length: 51 }, () => `uuid=${randomUUID()}`).join("&");
  expect(await names(many.slice(0, many.lastIndexOf("&")))).toEqual([]);
  for (const [query, loc] of [
    [many, "query.uuid"],
    [`uuid=${a.uuid}&uuid=${a.uuid.toUpperCase()}`, "query.uuid"],
    ["machine=", "query.machine.0"],
    ["collector=x", "query.collector.0"],
    ["name=a", "query.name"],
    ["cursor=", "query.cursor"],
    ["cursor=a&cursor=b", "query.cursor"],
  ] as const)
    expect(locs(await api.send("GET", `/v2/data-sources?${query}`)), query).toEqual([loc]);
});

test("data sinks: stamped, unique by name within the collector, patched, deleted", async () => {
  const api = await startTestServer();
  const created = await api.send("POST", "/v2/data-sinks", mqttSink());
  const sink = as(dataSinkResponseSchema, created);
  expect([created.status, sink.type, sink.details]).toEqual([
    201,
    "mqtt",
    { type: "mqtt", host: "127.0.0.1", port: 1883, topic: "plant/{source}", client_id: `collector-${sink.uuid}`, publish_interval: 1 },
  ]);
  expect((await api.send("POST", "/v2/data-sinks", mqttSink())).status).toBe(409);
  const nameless = [mqttSink(null), mqttSink(null)];
  for (const request of nameless) expect((await api.send("POST", "/v2/data-sinks", request)).status).toBe(201);
  expect((await api.send("POST", "/v2/data-sinks", mqttSink("Broker"))).status).toBe(201);
  const path = `/v2/data-sinks/${sink.uuid}`;
  expect((await api.send("PATCH", path, { name: "Broker" })).status).toBe(409);
  expect((await api.send("PATCH", path, { name: "broker", details: { topic: "a/b" } })).status).toBe(204);
  expect(as(dataSinkResponseSchema, await api.send("GET", path))).toEqual({ ...sink, details: { ...sink.details, topic: "a/b" } });
  expect(locs(await api.send("PATCH", path, { name: null }))).toEqual(["body.name"]);
  expect(locs(await api.send("PATCH", path, { details: { type: "opcua" } }))).toEqual(["body.details.type"]);
  expect(locs(await api.send("PATCH", path, { details: { topic: "a/#" } }))).toEqual(["body.details.topic"]);
  expect(as(pageOf(dataSinkResponseSchema), await api.send("GET", `/v2/data-sinks?uuid=${sink.uuid}`)).data).toHaveLength(1);
  expect((await api.send("DELETE", path)).status).toBe(204);
  expect((await api.send("GET", path)).status).toBe(404);
});

test("variables count into configured_variables, a report sets it, and a change counts again", async () => {
  const api = await startTestServer();
  const source = await createSource(api);
  const status = async () => as(dataSourceResponseSchema, await api.send("GET", `/v2/data-sources/${source.uuid}`)).readout_status;
  const made: string[] = [];
  for (const state of ["ACTIVE", "EXPLORATION", "INACTIVE"]) {
    const sent = await api.send("POST", "/ext/v1/variables", {
      data_source: source.uuid,
      name: state,
      address: "holding:0",
      status: state,
    });
    expect(sent.status).toBe(201);
    made.push(String(sent.body["uuid"]));
  }
  expect((await status()).configured_variables).toBe(2);
  expect((await api.send("POST", "/ext/v1/variables", { data_source: source.uuid, name: "ACTIVE", address: "x" })).status).toBe(409);
  expect(locs(await api.send("POST", "/ext/v1/variables", { data_source: randomUUID(), name: "x", address: "x" }))).toEqual([
    "body.data_source",
  ]);

  const at = "2026-11-20T09:00:00.123Z";
  const put = (report: object) => api.send("PUT", "/ext/v1/readout-statuses", [{ data_source: source.uuid, readout_status: report }]);
  const ghost = randomUUID();
  const ok = { last_readout_at: at, configured_variables: 7, state: { type: "OK" } };
  const both = await api.send("PUT", "/ext/v1/readout-statuses", [
    { data_source: ghost, readout_status: ok },
    { data_source: source.uuid, readout_status: ok, capabilities: { variable_discovery: true } },
  ]);
  expect([both.status, both.body]).toEqual([200, { updated: 1, unknown: [ghost] }]);
  expect(await status()).toEqual(ok);
  const failed = { last_readout_at: null, configured_variables: 7, state: { type: "ERROR", reason: { type: "TIMEOUT" }, error_at: at } };
  expect((await put(failed)).status).toBe(200);
  expect(await status()).toEqual({ ...failed, last_readout_at: at });
  const after = as(dataSourceResponseSchema, await api.send("GET", `/v2/data-sources/${source.uuid}`));
  expect([after.last_readout_at, after.capabilities]).toEqual([at, { variable_discovery: true }]);
  expect(locs(await put({ ...ok, state: { type: "ERROR", reason: { type: "NOPE" }, error_at: at } }))).toEqual([
    "body.0.readout_status.state.reason.type",
  ]);

  expect((await api.send("PATCH", `/ext/v1/variables/${made[2]}`, { status: "ACTIVE", unit: "°C" })).status).toBe(204);
  expect((await status()).configured_variables).toBe(3);
  const listed = await api.send("GET", `/ext/v1/variables?collector=${COLLECTOR}&data_source=${source.uuid}`);
  expect(listed.body["data"]?.[2]).toMatchObject({ name: "INACTIVE", status: "ACTIVE", unit: "°C", type: null, scaling: null });
  expect((await api.send("DELETE", `/ext/v1/variables/${made[0]}`)).status).toBe(204);
  expect((await status()).configured_variables).toBe(2);
});

test("the revision changes with sources, variables and sinks, never with a status; 304 where it did not", async () => {
  const api = await startTestServer();
  const path = `/ext/v1/revision?collector=${COLLECTOR}`;
  const revision = async () => (await api.send("GET", path)).body["revision"];
  const seen = [await revision()];
  const source = await createSource(api);
  seen.push(await revision());
  await api.send("PATCH", `/v2/data-sources/${source.uuid}`, { readout_interval: 3 });
  seen.push(await revision());
  await api.send("POST", "/ext/v1/variables", { data_source: source.uuid, name: "t", address: "holding:0" });
  seen.push(await revision());
  await api.send("POST", "/v2/data-sinks", mqttSink());
  seen.push(await revision());
  expect(new Set(seen).size).toBe(5);
  const ok = { last_readout_at: null, configured_variables: 7, state: { type: "OK" } };
  await api.send("PUT", "/ext/v1/readout-statuses", [{ data_source: source.uuid, readout_status: ok }]);
  const tag = (await api.send("GET", path)).headers.get("etag") ?? "";
  expect(tag).toBe(`"${seen[4]}"`);
  const unchanged = await api.send("GET", path, undefined, { "if-none-match": tag });
  expect([unchanged.status, unchanged.text]).toEqual([304, ""]);
  await api.send("DELETE", `/v2/data-sources/${source.uuid}`);
  expect((await api.send("GET", path, undefined, { "if-none-match": tag })).status).toBe(200);
  expect((await api.send("GET", `/ext/v1/revision?collector=${randomUUID()}`)).status).toBe(404);
});

test("a collector that is deleted and created again begins no revision and no ETag that was before", async () => {
  const api = await startTestServer();
  const uuid = randomUUID();
  const revision = `/ext/v1/revision?collector=${uuid}`;
  const tags: string[] = [];
  for (const name of ["one sink", "another sink"]) {
    expect((await api.send("POST", "/ext/v1/collectors", { uuid })).status).toBe(201);
    const sink = await api.send("POST", "/v2/data-sinks", mqttSink(name, uuid));
    expect(sink.status).toBe(201);
    const [before] = tags;
    if (before !== undefined) expect((await api.send("GET", revision, undefined, { "if-none-match": before })).status).toBe(200);
    tags.push(
      (await api.send("GET", revision)).headers.get("etag") ?? "",
      (await api.send("GET", `/ext/v1/collectors/${uuid}`)).headers.get("etag") ?? "",
    );
    await api.send("DELETE", `/v2/data-sinks/${sink.body["uuid"]}`);
    expect((await api.send("DELETE", `/ext/v1/collectors/${uuid}`)).status).toBe(204);
  }
  expect(new Set(tags).size).toBe(4);
});

test("keys: none and wrong ones are refused everywhere, both forms are taken, a collector's key reaches its own", async () => {
  const api = await startTestServer();
  const source = await createSource(api);
  for (const [key, path] of [
    ["", "/v2/data-sources"],
    ["", "/nowhere"],
    ["x", "/openapi.json"],
    ["x", "/ext/v1"],
    [`Bearer ${api.adminKey}x`, "/v2/sites"],
    [api.adminKey.slice(0, -1), "/v2/data-sinks"],
    [`Basic ${api.adminKey}`, "/v2/data-sources"],
  ] as const)
    expect((await api.send("GET", path, undefined, { authorization: key })).status).toBe(401);
  for (const key of [`Bearer ${api.adminKey}`, `bearer ${api.collectorKey}`, api.collectorKey])
    expect((await api.send("GET", "/v2/data-sources", undefined, { authorization: key })).status).toBe(200);

  // The same database, opened for another collector: its key sees nothing of the first.
  await api.server.close();
  const other = randomUUID();
  const second = await startTestServer(api.folder, other);
  expect(second.adminKey).toBe(api.adminKey);
  const mine = { authorization: second.collectorKey };
  expect((await second.send("GET", "/v2/data-sources")).body["data"]).toHaveLength(1);
  expect((await second.send("GET", "/v2/data-sources", undefined, mine)).body["data"]).toEqual([]);
  expect((await second.send("GET", `/v2/data-sources/${source.uuid}`, undefined, mine)).status).toBe(404);
  expect((await second.send("PATCH", `/v2/data-sources/${source.uuid}`, { note: "x" }, mine)).status).toBe(404);
  expect((await second.send("DELETE", `/v2/data-sources/${source.uuid}`, undefined, mine)).status).toBe(404);
  expect(locs(await second.send("POST", "/v2/data-sources", modbusSource(), mine))).toEqual(["body.collector"]);
  expect(locs(await second.send("POST", "/v2/data-sources", modbusSource("x", randomUUID())))).toEqual(["body.collector"]);
  expect((await second.send("GET", `/ext/v1/revision?collector=${COLLECTOR}`, undefined, mine)).status).toBe(404);
  expect((await second.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, mine)).status).toBe(403);
});

test("other errors have their status and one sentence", async () => {
  const api = await startTestServer();
  const detail = async (status: number, ...sent: Parameters<TestServer["send"]>) => {
    const answer = await api.send(...sent);
    expect([answer.status, typeof answer.body["detail"]], sent.slice(0, 2).join(" ")).toEqual([status, "string"]);
    return answer;
  };
  await detail(404, "GET", "/v2/production-runs");
  await detail(404, "GET", "/v2/%zz");
  await detail(404, "GET", `/v2/data-sinks/${randomUUID()}`);
  expect((await detail(405, "PUT", "/v2/data-sources", {})).headers.get("allow")).toBe("GET, POST");
  await detail(413, "POST", "/v2/data-sources", "x".repeat(2 ** 20 + 1));
  await detail(414, "GET", `/v2/data-sources?cursor=${"a".repeat(10_001)}`);
  await detail(415, "POST", "/v2/data-sources", "name: x", { "content-type": "application/yaml" });
  await detail(415, "POST", "/v2/data-sources", "{}", { "content-type": "text/plain" });
  for (const body of [undefined, "", "[]", "null", '"text"', "7", '{"__proto__": {}}']) {
    const answer = await api.send("POST", "/v2/data-sources", body);
    expect([answer.status, answer.body["detail"]], String(body)).toEqual([
      422,
      [{ loc: ["body"], msg: "the body is not a JSON object", type: "json_invalid" }],
    ]);
  }
  expect((await api.send("PUT", "/ext/v1/readout-statuses", {})).status).toBe(422);
});

test("what is no HTTP, half a request or far too much does not stop it", async () => {
  const api = await startTestServer();
  const port = Number(new URL(api.server.url).port);
  for (const bytes of [
    "\x16\x03\x01\x02\x00",
    "GET / HTTP/1.1\r\nHost",
    `GET /${"a".repeat(30_000)} HTTP/1.1\r\n\r\n`,
    "POST /api/v2/data-sources HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n{",
  ])
    await new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
      socket.on("error", () => {}).on("close", () => resolve());
      socket.resume();
    });
  const deep = await api.send("POST", "/v2/data-sources", `{"name":${"[".repeat(200_000)}${"]".repeat(200_000)}}`);
  expect(deep.status).toBe(422);
  const source = await createSource(api);
  const nested = await api.send(
    "PATCH",
    `/v2/data-sources/${source.uuid}`,
    `{"details":{"host":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`,
  );
  expect(nested.status).toBe(422);
  expect((await api.send("GET", "/v2/data-sources")).status).toBe(200);
  expect(api.log.lines.filter((line) => !line.startsWith("info"))).toEqual([expect.stringMatching(/without a valid key.*"requests":1/)]);
});

test("everything is there again after a restart, with the same keys and the same secrets", async () => {
  const api = await startTestServer();
  const source = await createSource(api);
  await api.send("POST", "/v2/data-sinks", mqttSink());
  const before = (await api.send("GET", `/ext/v1/revision?collector=${COLLECTOR}`)).body;
  await api.server.close();
  await api.server.close();
  const again = await startTestServer(api.folder);
  expect([again.adminKey, again.collectorKey]).toEqual([api.adminKey, api.collectorKey]);
  expect((await again.send("GET", `/v2/data-sources/${source.uuid}`)).body).toEqual(source);
  expect((await again.send("GET", `/ext/v1/revision?collector=${COLLECTOR}`)).body).toEqual(before);
});

test("it listens on loopback alone and says what is wrong with an address", async () => {
  const folder = temporaryFolder();
  const options = {
    databaseFile: join(folder, "c.db"),
    keysDir: join(folder, "keys"),
    collector: COLLECTOR,
    readoutIntervalUnit: "milliseconds",
    publishIntervalUnit: "milliseconds",
    version: "0",
    values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
    log: recordingLog(),
  } as const;
  for (const listen of ["0.0.0.0:0", "192.168.0.1:0", "[::]:0", "127.0.0.1", "127.0.0.1:70000", "example.org:80"])
    await expect(startApiServer({ ...options, listen })).rejects.toThrow(`embedded_api.listen: "${listen}"`);
  await expect(startApiServer({ ...options, listen: "127.0.0.1:0", collector: "c" })).rejects.toThrow('collector: "c"');
  const server = await startApiServer({ ...options, listen: "127.0.0.1:0" });
  await expect(startApiServer({ ...options, databaseFile: join(folder, "d.db"), listen: new URL(server.url).host })).rejects.toThrow(
    "EADDRINUSE",
  );
  await server.close();
});

test("OpenAPI lists every operation, marks what is ours and what is experimental", async () => {
  const api = await startTestServer();
  const { body } = await api.send("GET", "/openapi.json");
  expect(String(body["openapi"])).toMatch(/^3\.1/);
  expect(body["paths"]?.["/v2/data-sources/{uuid}"]?.["patch"]).toMatchObject({ operationId: "patchDataSource", tags: ["v2"] });
  expect(body["paths"]?.["/v2/data-sinks"]?.["get"]?.["tags"]).toEqual(["experimental"]);
  expect(body["paths"]?.["/ext/v1/secrets"]?.["get"]?.["tags"]).toEqual(["extension"]);
  expect(JSON.stringify(body)).not.toContain("openapi.json");
});
