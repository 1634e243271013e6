import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { COLLECTOR, MACHINE, type TestServer } from "../../../src/api/server/testing.ts";
import { dataSinkResponseSchema, dataSourceResponseSchema, pageOf, siteSchema } from "../../../src/model/resources.ts";
import {
  as,
  createSink,
  createSource,
  detailsOf,
  getSource,
  locs,
  refusedSource,
  type StatementTest,
  type StatementTests,
  sinkRequest,
  sourceRequest,
} from "./support.ts";

const sourcePage = pageOf(dataSourceResponseSchema);

const names = async (api: TestServer, query: string): Promise<string[]> =>
  as(sourcePage, await api.send("GET", `/v2/data-sources?${query}`)).data.map((source) => source.name);

async function createSite(api: TestServer, name = "Hall 1") {
  const sent = await api.send("POST", "/v2/sites", { name });
  expect(sent.status).toBe(201);
  return as(siteSchema, sent);
}

/** A second collector of the same site, of another site, or of none, with the key of neither. */
async function createCollector(api: TestServer, site: string | null): Promise<string> {
  const sent = await api.send("POST", "/ext/v1/collectors", { name: "second", site });
  expect(sent.status).toBe(201);
  return String(sent.body["uuid"]);
}

/** As many as make two full pages and a rest. */
async function createMany(api: TestServer): Promise<readonly string[]> {
  const made: string[] = [];
  for (let n = 0; n < 105; n++) made.push((await createSource(api, { name: `source ${n}` })).uuid);
  return made;
}

const pages: StatementTest = async (api) => {
  const made = await createMany(api);
  const seen: string[] = [];
  const sizes: number[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `?cursor=${cursor}`;
    const page: ReturnType<typeof sourcePage.parse> = as(sourcePage, await api.send("GET", `/v2/data-sources${query}`));
    seen.push(...page.data.map((source) => source.uuid));
    sizes.push(page.data.length);
    cursor = page.metadata.next_cursor;
  } while (cursor !== null);
  expect(seen).toEqual(made);
  expect(sizes).toEqual([50, 50, 5]);
};

const firstCursor = async (api: TestServer, query = ""): Promise<string> => {
  const { next_cursor } = as(sourcePage, await api.send("GET", `/v2/data-sources${query}`)).metadata;
  if (next_cursor === null) throw new Error("there is no second page");
  return next_cursor;
};

export const OPERATION_TESTS: StatementTests = {
  async "1 site"(api) {
    const site = await createSite(api);
    const [near, far] = [await createCollector(api, site.uuid), await createCollector(api, null)];
    expect((await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site: site.uuid })).status).toBe(204);
    const mine = { authorization: api.collectorKey };
    const hidden = await createSource(api, { name: "far", collector: far });
    expect((await api.send("POST", "/v2/data-sources", sourceRequest({ name: "near", collector: near }), mine)).status).toBe(201);
    expect(locs(await api.send("POST", "/v2/data-sources", sourceRequest({ collector: far }), mine))).toEqual(["body.collector"]);
    const seen = as(sourcePage, await api.send("GET", "/v2/data-sources", undefined, mine)).data.map((source) => source.name);
    expect(seen).toEqual(["near"]);
    expect((await api.send("GET", `/v2/data-sources/${hidden.uuid}`, undefined, mine)).status).toBe(404);
    // At no site, it is alone.
    await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site: null });
    expect(as(sourcePage, await api.send("GET", "/v2/data-sources", undefined, mine)).data).toEqual([]);
  },
  async "1 experimental"(api) {
    const { body } = await api.send("GET", "/openapi.json");
    for (const path of ["/v2/data-sinks", "/v2/data-sinks/{uuid}"])
      for (const operation of Object.values(body["paths"]?.[path] ?? {})) expect(operation["tags"]).toEqual(["experimental"]);
  },
  async "3 states"(api) {
    const { uuid } = await createSource(api);
    const put = (state: unknown) =>
      api.send("PUT", "/ext/v1/readout-statuses", [
        { data_source: uuid, readout_status: { last_readout_at: null, configured_variables: 0, state } },
      ]);
    for (const type of ["OK", "UNKNOWN"]) expect((await put({ type })).status).toBe(200);
    expect(locs(await put({ type: "STARTING" }))).toEqual(["body.0.readout_status.state.type"]);
    expect(locs(await put({ type: "ERROR" }))).toEqual(["body.0.readout_status.state.reason", "body.0.readout_status.state.error_at"]);
  },
  async "4 authorization"(api) {
    for (const [method, path] of [
      ["GET", "/v2/data-sources"],
      ["POST", "/v2/data-sinks"],
      ["GET", "/v2/sites"],
      ["POST", "/v2/timeseries"],
      ["GET", "/openapi.json"],
    ] as const)
      expect((await api.send(method, path, method === "POST" ? {} : undefined, { authorization: "" })).status).toBe(401);
  },

  async "4.1 GET"(api) {
    const a = await createSource(api, { name: "a" });
    const b = await createSource(api, { name: "b", machine: randomUUID() });
    expect(await names(api, "")).toEqual(["a", "b"]);
    expect(await names(api, `uuid=${b.uuid}&uuid=${a.uuid}`)).toEqual(["a", "b"]);
    expect(await names(api, `machine=${b.machine}`)).toEqual(["b"]);
    expect(await names(api, `collector=${COLLECTOR}&machine=${MACHINE}`)).toEqual(["a"]);
    expect(await names(api, `collector=${randomUUID()}`)).toEqual([]);
  },
  async "4.1 POST"(api) {
    const sent = await api.send("POST", "/v2/data-sources", sourceRequest());
    expect(sent.status).toBe(201);
    expect(await getSource(api, String(sent.body["uuid"]))).toEqual(sent.body);
    expect(await refusedSource(api, { readout_interval: 5 })).toEqual(["body.readout_interval"]);
    expect((await api.send("POST", "/v2/data-sources")).body["detail"]?.[0]?.["loc"]).toEqual(["body"]);
  },
  async "4.1 single"(api) {
    const source = await createSource(api);
    expect((await api.send("GET", `/v2/data-sources/${source.uuid}`)).body).toEqual(source);
    expect((await api.send("GET", `/v2/data-sources/${randomUUID()}`)).status).toBe(404);
    expect(locs(await api.send("GET", "/v2/data-sources/press-1"))).toEqual(["path.uuid"]);
  },
  async "4.1 update and delete"(api) {
    const source = await createSource(api);
    const path = `/v2/data-sources/${source.uuid}`;
    const patched = await api.send("PATCH", path, { readout_interval: 2, readout_limit: 7, details: { port: 503 } });
    expect([patched.status, patched.text]).toEqual([204, ""]);
    expect(await getSource(api, source.uuid)).toEqual({
      ...source,
      readout_interval: 2,
      readout_limit: 7,
      details: { ...source.details, port: 503 },
    });
    for (const [field, value] of Object.entries({ collector: COLLECTOR, uuid: source.uuid, type: "s7" }))
      expect(locs(await api.send("PATCH", path, { [field]: value }))).toEqual([`body.${field}`]);
    expect((await api.send("DELETE", path)).status).toBe(204);
    expect((await api.send("DELETE", path)).status).toBe(404);
  },

  async "4.2 GET"(api) {
    const sink = await createSink(api);
    const page = pageOf(dataSinkResponseSchema);
    for (const query of ["", `?uuid=${sink.uuid}`, `?collector=${COLLECTOR}`, `?uuid=${sink.uuid}&collector=${COLLECTOR}`])
      expect(as(page, await api.send("GET", `/v2/data-sinks${query}`)).data).toEqual([sink]);
    expect(as(page, await api.send("GET", `/v2/data-sinks?uuid=${randomUUID()}`)).data).toEqual([]);
  },
  async "4.2 POST"(api) {
    const sent = await api.send("POST", "/v2/data-sinks", sinkRequest());
    expect([sent.status, as(dataSinkResponseSchema, sent).collector]).toEqual([201, COLLECTOR]);
    for (const field of ["collector", "details"]) {
      const { [field]: _, ...without } = sinkRequest({ name: "other" });
      expect(locs(await api.send("POST", "/v2/data-sinks", without))).toEqual([`body.${field}`]);
    }
  },
  async "4.2 GET {uuid}"(api) {
    const sink = await createSink(api);
    expect((await api.send("GET", `/v2/data-sinks/${sink.uuid}`)).body).toEqual(sink);
    expect((await api.send("GET", `/v2/data-sinks/${randomUUID()}`)).status).toBe(404);
    expect(locs(await api.send("GET", "/v2/data-sinks/broker"))).toEqual(["path.uuid"]);
  },
  async "4.2 DELETE {uuid}"(api) {
    const { uuid } = await createSink(api);
    const sent = await api.send("DELETE", `/v2/data-sinks/${uuid}`);
    expect([sent.status, sent.text]).toEqual([204, ""]);
    expect((await api.send("GET", `/v2/data-sinks/${uuid}`)).status).toBe(404);
  },
  async "4.2 PATCH {uuid}"(api) {
    const sink = await createSink(api);
    const sent = await api.send("PATCH", `/v2/data-sinks/${sink.uuid}`, { name: "other", details: { topic: "a/b" } });
    expect([sent.status, sent.text]).toEqual([204, ""]);
    expect((await api.send("GET", `/v2/data-sinks/${sink.uuid}`)).body).toEqual({
      ...sink,
      name: "other",
      details: { ...sink.details, topic: "a/b" },
    });
    for (const name of [null, "", "x".repeat(201)])
      expect(locs(await api.send("PATCH", `/v2/data-sinks/${sink.uuid}`, { name }))).toEqual(["body.name"]);
  },
  async "4.2 rule 1"(api) {
    const sink = await createSink(api);
    const path = `/v2/data-sinks/${sink.uuid}`;
    for (const [patch, after] of [
      [{}, sink],
      [{ name: "n" }, { ...sink, name: "n" }],
      [{ details: {} }, { ...sink, name: "n" }],
      [{ details: { port: 8883 } }, { ...sink, name: "n", details: { ...sink.details, port: 8883 } }],
    ] as const) {
      expect((await api.send("PATCH", path, patch)).status).toBe(204);
      expect((await api.send("GET", path)).body).toEqual(after);
    }
  },
  async "4.2 rule 2"(api) {
    const { uuid } = await createSink(api);
    expect(locs(await api.send("PATCH", `/v2/data-sinks/${uuid}`, { type: "opcua" }))).toEqual(["body.type"]);
    expect(locs(await api.send("PATCH", `/v2/data-sinks/${uuid}`, { details: { type: "opcua" } }))).toEqual(["body.details.type"]);
    expect((await api.send("PATCH", `/v2/data-sinks/${uuid}`, { details: { type: "mqtt" } })).status).toBe(204);
  },
  async "4.2 rule 3"(api) {
    const { uuid } = await createSink(api);
    expect(locs(await api.send("PATCH", `/v2/data-sinks/${uuid}`, { collector: COLLECTOR }))).toEqual(["body.collector"]);
  },
  async "4.2 rule 4"(api) {
    const users = [
      { username: "a", password: "canary-a" },
      { username: "b", password: "canary-b" },
    ];
    const sink = await createSink(api, { details: { type: "opcua", users } });
    expect(sink.details).toHaveProperty("users", [{ username: "a" }, { username: "b" }]);
    const path = `/v2/data-sinks/${sink.uuid}`;
    const secrets = async () =>
      (await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey })).body["secrets"]?.[
        sink.uuid
      ];
    expect(await secrets()).toEqual({ "users.a.password": "canary-a", "users.b.password": "canary-b" });
    await api.send("PATCH", path, { details: { port: 4841 } });
    expect(await secrets()).toEqual({ "users.a.password": "canary-a", "users.b.password": "canary-b" });
    expect(locs(await api.send("PATCH", path, { details: { users: [{ username: "a" }] } }))).toEqual(["body.details.users.0.password"]);
    expect((await api.send("PATCH", path, { details: { users: [{ username: "c", password: "canary-c" }] } })).status).toBe(204);
    const after = await api.send("GET", path);
    expect(after.body["details"]?.["users"]).toEqual([{ username: "c" }]);
    expect(after.text).not.toContain("canary");
    expect(await secrets()).toEqual({ "users.c.password": "canary-c" });
    await api.send("PATCH", path, { details: { users: [] } });
    expect(await secrets()).toBeUndefined();
  },

  async "4.3 GET"(api) {
    const made = [await createSite(api, "a"), await createSite(api, "b")];
    expect(as(pageOf(siteSchema), await api.send("GET", "/v2/sites")).data).toEqual(made);
    expect(locs(await api.send("GET", "/v2/sites?name=a"))).toEqual(["query.name"]);
    // A collector's key sees the site that it is at, and no other.
    const mine = { authorization: api.collectorKey };
    expect(as(pageOf(siteSchema), await api.send("GET", "/v2/sites", undefined, mine)).data).toEqual([]);
    await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site: made[1]?.uuid });
    expect(as(pageOf(siteSchema), await api.send("GET", "/v2/sites", undefined, mine)).data).toEqual([made[1]]);
  },
  async "4.3 POST"(api) {
    const sent = await api.send("POST", "/v2/sites", { name: "Hall 1" });
    expect([sent.status, as(siteSchema, sent).name]).toEqual([201, "Hall 1"]);
    expect((await api.send("POST", "/v2/sites", { name: "x" }, { authorization: api.collectorKey })).status).toBe(403);
  },
  async "4.3 GET {uuid}"(api) {
    const site = await createSite(api);
    expect((await api.send("GET", `/v2/sites/${site.uuid}`)).body).toEqual(site);
    expect((await api.send("GET", `/v2/sites/${randomUUID()}`)).status).toBe(404);
    expect((await api.send("GET", `/v2/sites/${site.uuid}`, undefined, { authorization: api.collectorKey })).status).toBe(404);
  },
  async "4.3 PATCH {uuid}"(api) {
    const site = await createSite(api);
    const sent = await api.send("PATCH", `/v2/sites/${site.uuid}`, { name: "Hall 2" });
    expect([sent.status, sent.text]).toEqual([204, ""]);
    expect((await api.send("GET", `/v2/sites/${site.uuid}`)).body).toEqual({ ...site, name: "Hall 2" });
    expect(locs(await api.send("PATCH", `/v2/sites/${site.uuid}`, { uuid: site.uuid }))).toEqual(["body.uuid"]);
    expect((await api.send("PATCH", `/v2/sites/${randomUUID()}`, { name: "x" })).status).toBe(404);
  },
  async "4.3 DELETE {uuid}"(api) {
    const site = await createSite(api);
    await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site: site.uuid });
    const used = await api.send("DELETE", `/v2/sites/${site.uuid}`);
    expect([used.status, used.body["detail"]]).toEqual([409, "the site is in use by 1 collector: move them first"]);
    await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site: null });
    const sent = await api.send("DELETE", `/v2/sites/${site.uuid}`);
    expect([sent.status, sent.text]).toEqual([204, ""]);
    expect((await api.send("DELETE", `/v2/sites/${site.uuid}`)).status).toBe(404);
  },

  async "4.4 production runs"(api) {
    expect((await api.send("GET", "/v2/production-runs")).status).toBe(404);
  },
  async "4.4 time series"(api) {
    const source = await createSource(api);
    const variable = randomUUID();
    const values = [{ time: "2026-11-20T09:00:00.000Z", variable, value: 21.5, quality: "good" }];
    expect((await api.send("POST", "/ext/v1/values", { id: "b1", data_source: source.uuid, values })).body).toEqual({
      accepted: 1,
      duplicate: false,
    });
    const request = { variables: [variable], start: "2026-11-20T00:00:00Z", end: "2026-11-21T00:00:00Z" };
    const sent = await api.send("POST", "/v2/timeseries", request);
    expect([sent.status, sent.body]).toEqual([200, { data: values, metadata: { next_cursor: null } }]);
    expect((await api.send("POST", "/v2/timeseries", { ...request, machine: source.machine })).body).toEqual(sent.body);
    expect((await api.send("POST", "/v2/timeseries", { ...request, machine: randomUUID() })).body["data"]).toEqual([]);
    const many = Array.from({ length: 101 }, () => randomUUID());
    expect(locs(await api.send("POST", "/v2/timeseries", { ...request, variables: many }))).toEqual(["body.variables"]);
    expect((await api.send("POST", "/v2/timeseries", { ...request, variables: many.slice(1) })).status).toBe(200);
  },

  "4.5 rule 1": pages,
  "4.5 rule 2": pages,
  "4.5 rule 3": pages,
  "4.5 rule 4": pages,
  async "4.5 rule 5"(api) {
    await createMany(api);
    const cursor = await firstCursor(api, `?collector=${COLLECTOR}`);
    expect((await api.send("GET", `/v2/data-sources?collector=${COLLECTOR}&cursor=${cursor}`)).status).toBe(200);
    for (const query of ["", `&collector=${randomUUID()}`, `&collector=${COLLECTOR}&machine=${MACHINE}`])
      expect(locs(await api.send("GET", `/v2/data-sources?cursor=${cursor}${query}`))).toEqual(["query.cursor"]);
    expect(locs(await api.send("GET", `/v2/data-sinks?collector=${COLLECTOR}&cursor=${cursor}`))).toEqual(["query.cursor"]);
  },
  async "4.5 rule 6"(api) {
    await createMany(api);
    const cursor = await firstCursor(api);
    for (const altered of [`${cursor}A`, cursor.slice(1), cursor.replace(/^./, (c) => (c === "A" ? "B" : "A")), "1", "%00"])
      expect(locs(await api.send("GET", `/v2/data-sources?cursor=${altered}`))).toEqual(["query.cursor"]);
    expect(cursor).toMatch(/^[\w-]+$/);
  },
  async "4.5 rule 7"(api) {
    const source = await createSource(api);
    const variables = [randomUUID(), randomUUID()].sort();
    const start = Date.parse("2026-11-20T09:00:00.000Z");
    const values = variables.flatMap((variable) =>
      Array.from({ length: 700 }, (_, n) => ({ time: new Date(start + n * 1000).toISOString(), variable, value: n, quality: "good" })),
    );
    await api.send("POST", "/ext/v1/values", { id: "many", data_source: source.uuid, values });
    const request = { variables, start: new Date(start).toISOString(), end: new Date(start + 3_600_000).toISOString() };
    const first = await api.send("POST", "/v2/timeseries", request);
    const cursor = first.body["metadata"]?.["next_cursor"];
    expect(cursor).toEqual(expect.any(String));
    const second = await api.send("POST", "/v2/timeseries", { ...request, cursor, variables: [...variables].reverse() });
    expect(second.body["metadata"]).toEqual({ next_cursor: null });
    expect([...Object.values(first.body["data"] ?? {}), ...Object.values(second.body["data"] ?? {})]).toEqual(values);
    expect(locs(await api.send("POST", "/v2/timeseries", { ...request, cursor, end: request.start }))).toEqual(["body.cursor"]);
    expect(locs(await api.send("POST", `/v2/timeseries?cursor=${cursor}`, request))).toEqual(["query.cursor"]);
  },

  async "5 rule 1"(api) {
    expect((await api.send("GET", "/v2/sites", undefined, { authorization: api.adminKey })).status).toBe(200);
    const { body } = await api.send("GET", "/openapi.json");
    expect(body["components"]?.["securitySchemes"]).toEqual({ apiKey: { type: "apiKey", in: "header", name: "Authorization" } });
    expect(body["security"]).toEqual([{ apiKey: [] }]);
  },
  async "5 rule 2"(api) {
    for (const key of [api.adminKey, `Bearer ${api.adminKey}`, `bearer ${api.collectorKey}`])
      expect((await api.send("GET", "/v2/sites", undefined, { authorization: key })).status).toBe(200);
  },
  async "5 rule 3"(api) {
    const mine = { authorization: api.collectorKey };
    expect((await api.send("POST", "/v2/data-sources", sourceRequest(), mine)).status).toBe(201);
    for (const path of ["/v2/sites", "/ext/v1/collectors", "/ext/v1/machines"])
      expect((await api.send("POST", path, { name: "x" }, mine)).status).toBe(403);
  },
  async "7 rule 1"(api) {
    expect(locs(await api.send("GET", "/v2/data-sources?collector=x"))).toEqual(["query.collector.0"]);
    const wrong = await api.send("POST", "/v2/data-sources", sourceRequest({ name: 7, details: detailsOf("s7", { slot: "x", spot: 1 }) }));
    expect(locs(wrong)).toEqual(["body.name", "body.details.slot", "body.details.spot"]);
    expect(wrong.body["detail"]?.[0]).toEqual({
      loc: ["body", "name"],
      msg: expect.any(String),
      type: "invalid_type",
      input: 7,
      ctx: { expected: "string" },
    });
    const secret = detailsOf("s7plus", { password: { type: "set", value: { canary: "canary-3" } } });
    expect((await api.send("POST", "/v2/data-sources", sourceRequest({ details: secret }))).text).not.toContain("canary");
  },
  async "7 rule 2"(api) {
    const { uuid } = await createSource(api);
    const state = { type: "ERROR", reason: { type: "CONNECTION_REFUSED" }, error_at: "2026-11-20T09:00:00Z" };
    await api.send("PUT", "/ext/v1/readout-statuses", [
      { data_source: uuid, readout_status: { last_readout_at: null, configured_variables: 0, state } },
    ]);
    const sent = await api.send("GET", `/v2/data-sources/${uuid}`);
    expect([sent.status, sent.body["readout_status"]?.["state"]]).toEqual([200, state]);
  },
  async "7 rule 3"(api) {
    for (const [status, sent] of [
      [404, await api.send("GET", "/v2/nothing")],
      [405, await api.send("PUT", "/v2/sites", {})],
      [415, await api.send("POST", "/v2/sites", "name: x", { "content-type": "application/yaml" })],
      [413, await api.send("POST", "/v2/sites", { name: "x".repeat(2 ** 20) })],
    ] as const)
      expect([sent.status, sent.body]).toEqual([status, { detail: expect.any(String) }]);
  },
  async "8 filters"(api) {
    const many = (name: string, n: number) => Array.from({ length: n }, () => `${name}=${randomUUID()}`).join("&");
    for (const [path, filters] of [
      ["/v2/data-sources", ["uuid", "machine", "collector"]],
      ["/v2/data-sinks", ["uuid", "collector"]],
    ] as const)
      for (const name of filters) {
        expect((await api.send("GET", `${path}?${many(name, 50)}`)).status).toBe(200);
        expect(locs(await api.send("GET", `${path}?${many(name, 51)}`))).toEqual([`query.${name}`]);
        expect(locs(await api.send("GET", `${path}?${name}=${COLLECTOR}&${name}=${COLLECTOR.toUpperCase()}`))).toEqual([`query.${name}`]);
      }
  },
  async "8 data sink name"(api) {
    for (const name of ["x", "ü".repeat(200), "😀".repeat(200)]) expect((await createSink(api, { name })).name).toBe(name);
    for (const name of ["", "x".repeat(201)])
      expect(locs(await api.send("POST", "/v2/data-sinks", sinkRequest({ name })))).toEqual(["body.name"]);
  },
  async "8 odac port"(api) {
    for (const port of [0, 65_535])
      expect((await createSource(api, { details: detailsOf("odac", { port }) })).details).toHaveProperty("port", port);
    for (const port of [-1, 65_536])
      expect(await refusedSource(api, { details: detailsOf("odac", { port }) })).toEqual(["body.details.port"]);
  },
  async "8 s7plus password"(api) {
    const password = (value: string) => detailsOf("s7plus", { password: { type: "set", value } });
    expect(await refusedSource(api, { details: password("") })).toEqual(["body.details.password.value"]);
    await createSource(api, { details: password("x") });
  },
  "8 page size": pages,
  async "9 rule 1"(api) {
    const { body } = await api.send("GET", "/openapi.json");
    const paths = Object.keys(body["paths"] ?? {});
    expect(paths.length).toBeGreaterThan(15);
    for (const path of paths) expect(path).toMatch(/^\/(v2|ext\/v1)(\/|$)/);
    expect((await api.send("GET", "/data-sources")).status).toBe(404);
  },
  async "9 rule 2"(api) {
    const { body } = await api.send("GET", "/openapi.json");
    expect(body["paths"]?.["/v2/data-sinks"]?.["post"]?.["tags"]).toEqual(["experimental"]);
    expect(body["paths"]?.["/v2/data-sources"]?.["post"]?.["tags"]).toEqual(["v2"]);
  },
  async "9 rule 3"(api) {
    const { body } = await api.send("GET", "/openapi.json");
    const schema =
      body["paths"]?.["/v2/data-sources/{uuid}"]?.["get"]?.["responses"]?.["200"]?.["content"]?.["application/json"]?.["schema"];
    expect(schema?.["properties"]?.["last_readout_at"]?.["deprecated"]).toBe(true);
  },
};
