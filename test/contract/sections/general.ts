import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { COLLECTOR, MACHINE, type TestServer } from "../../../src/api/server/testing.ts";
import { dataSourceResponseSchema, pageOf } from "../../../src/model/resources.ts";
import {
  as,
  createSink,
  createSource,
  detailsOf,
  locs,
  refusedSource,
  type StatementTest,
  type StatementTests,
  sinkRequest,
  sourceRequest,
} from "./support.ts";

const sourcePage = pageOf(dataSourceResponseSchema);

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

/** What holds for all operations: pages, keys, errors, limits, versions. */
export const GENERAL_TESTS: StatementTests = {
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
    // Ours: what it was read from.
    const data = values.map((value) => ({ ...value, data_source: source.uuid }));
    expect([sent.status, sent.body]).toEqual([200, { data, metadata: { next_cursor: null } }]);
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
    const data = values.map((value) => ({ ...value, data_source: source.uuid }));
    expect([...Object.values(first.body["data"] ?? {}), ...Object.values(second.body["data"] ?? {})]).toEqual(data);
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
  async "8 bodies"(api) {
    const many = (count: number, item: unknown) => Array(count).fill(item);
    const refused = async (method: string, path: string, body: unknown) => locs(await api.send(method, path, body));
    expect(await refused("PUT", "/ext/v1/readout-statuses", many(5001, 0))).toEqual(["body"]);
    expect(await refused("PUT", "/ext/v1/readout-statuses", many(5000, 0))).toHaveLength(100);
    const values = { id: "b", data_source: MACHINE, values: many(50_001, 0) };
    expect(await refused("POST", "/ext/v1/values", values)).toEqual(["body.values"]);
    const users = many(101, { username: "a", password: "b" });
    expect(await refused("POST", "/v2/data-sinks", sinkRequest({ details: { type: "opcua", users } }))).toEqual(["body.details.users"]);
    const fields = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`k${n}`, n]));
    expect(await refused("PATCH", `/v2/data-sources/${MACHINE}`, { details: fields })).toEqual(["body.details"]);
    expect(await refused("POST", "/v2/sites", { name: "a", ...fields })).toHaveLength(100);
  },
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
    const schema = body["components"]?.["schemas"]?.["DataSource"];
    expect(schema?.["properties"]?.["last_readout_at"]?.["deprecated"]).toBe(true);
  },
};
