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
    const tags = ["/v2/data-sinks", "/v2/data-sinks/{uuid}"].map((path) =>
      Object.entries(body["paths"]?.[path] ?? {})
        .map(([method, operation]) => `${method} ${operation["tags"]}`)
        .sort(),
    );
    expect(tags).toEqual([
      ["get experimental", "post experimental"],
      ["delete experimental", "get experimental", "patch experimental"],
    ]);
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
  async "4.1 stored password"(api) {
    const security = { security_mode: "Sign", endpoint_security_policy: "Basic256Sha256", token_security_policy: "Basic256Sha256" };
    const identity = { type: "UserNamePassword", username: "u", password: "p" };
    const opcua = await createSource(api, { details: detailsOf("opcua", { security_settings: security, user_identity: identity }) });
    const s7plus = await createSource(api, { details: detailsOf("s7plus", { password: { type: "set", value: "p" } }) });
    for (const [{ uuid }, changes, place, password] of [
      [
        opcua,
        [
          { host: "other" },
          { port: 1 },
          { endpoint_url: "opc.tcp://other:4840" },
          { security_settings: { ...security, security_mode: "None" } },
          { security_settings: { ...security, endpoint_security_policy: "Basic256" } },
          { security_settings: { ...security, token_security_policy: "None" } },
        ],
        "body.details.user_identity.password",
        { user_identity: identity },
      ],
      [s7plus, [{ host: "other" }, { port: 1 }], "body.details.password", { password: { type: "set", value: "p" } }],
    ] as const)
      for (const details of changes) {
        const before = await getSource(api, uuid);
        expect(locs(await api.send("PATCH", `/v2/data-sources/${uuid}`, { note: "n", details }))).toEqual([place]);
        expect(await getSource(api, uuid)).toEqual(before);
        expect((await api.send("PATCH", `/v2/data-sources/${uuid}`, { details: { ...details, ...password } })).status).toBe(204);
        const back = { ...(place === "body.details.password" ? { host: "h", port: 102 } : opcua.details), ...password };
        expect((await api.send("PATCH", `/v2/data-sources/${uuid}`, { details: back })).status).toBe(204);
      }
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
};
