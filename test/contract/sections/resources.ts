import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { COLLECTOR, MACHINE } from "../../../src/api/server/testing.ts";
import { dataSinkResponseSchema, dataSourceResponseSchema, siteSchema } from "../../../src/model/resources.ts";
import { DATA_SINK, DATA_SOURCE, DATA_SOURCE_CREATE, REASONS } from "../api-v2.ts";
import { sampleOf } from "../differences.ts";
import { storeDetails } from "./stored.ts";
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

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const AT = "2026-11-20T09:00:00.123Z";

/** What a fresh data source has in each field, in the response to its creation, in the list and by itself. */
const FRESH_SOURCE: Readonly<Record<string, unknown>> = {
  uuid: expect.stringMatching(UUID),
  type: "modbus_tcp",
  readout_limit: null,
  readout_interval: 10,
  readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "UNKNOWN" } },
  name: "press-1",
  collector: COLLECTOR,
  manufacturer: null,
  device_model: null,
  note: null,
  capabilities: { variable_discovery: false },
  machine: MACHINE,
  last_readout_at: null,
  details: expect.objectContaining({ type: "modbus_tcp" }),
};

const responseField =
  (field: string): StatementTest =>
  async (api) => {
    const source = await createSource(api);
    const listed = await api.send("GET", "/v2/data-sources");
    for (const body of [source, await getSource(api, source.uuid), listed.body["data"]?.[0]])
      expect(body).toHaveProperty(field, FRESH_SOURCE[field]);
    expect(Object.keys(source).sort()).toEqual(DATA_SOURCE.shape.map((row) => row.field).sort());
  };

/** What each type's details become when all that has a default is left out (2.2). */
const FILLED_IN: Readonly<Record<string, object>> = {
  vendor_a: { port: 44_818 },
  modbus_tcp: { port: 502, ephemeral_connections: true },
  s7: { port: 102, rack: 0, slot: 2 },
  vendor_b: { port: 18_901 },
  fins: { port: 9600, target_plc: "Cs1OrNewer" },
  opcua: {},
  vendor_gateway: {},
  odac: { port: 2020, protocol_override: null },
  plastcontrol: {},
  s7plus: { destination_tsap: "SIMATIC-ROOT-ES", password: { type: "none" } },
};

const readDetails =
  (type: string): StatementTest =>
  async (api) => {
    const given = detailsOf(type);
    const defaults = FILLED_IN[type] ?? {};
    const left = Object.fromEntries(Object.entries(given).filter(([field]) => !(field in defaults)));
    const { details } = await createSource(api, { details: left });
    const { password: _, ...shown } = (left["user_identity"] ?? {}) as { password?: string };
    expect(details).toEqual({ ...left, ...defaults, ...("user_identity" in left && { user_identity: shown }) });
  };

/** A variant that appears on read only is representable there, survives a change of another field, and is refused on creation. */
const readOnlyVariant =
  (type: string, field: string, value: { readonly [key: string]: string }): StatementTest =>
  async (api) => {
    const source = await createSource(api, { details: detailsOf(type) });
    const stored = { ...source.details, [field]: value };
    storeDetails(api, source.uuid, stored);
    expect((await getSource(api, source.uuid)).details).toEqual(stored);
    expect((await api.send("PATCH", `/v2/data-sources/${source.uuid}`, { details: { host: "other" } })).status).toBe(204);
    expect((await getSource(api, source.uuid)).details).toEqual({ ...stored, host: "other" });
    const discriminator = Object.keys(value)[0];
    expect(await refusedSource(api, { details: detailsOf(type, { [field]: value }) })).toEqual([`body.details.${field}.${discriminator}`]);
  };

const writtenVariant =
  (type: string, field: string, given: { readonly [key: string]: string }, shown: object): StatementTest =>
  async (api) => {
    const source = await createSource(api, { details: detailsOf(type, { [field]: given }) });
    expect(source.details).toHaveProperty(field, shown);
    expect((await getSource(api, source.uuid)).details).toHaveProperty(field, shown);
  };

/** A status that was reported is what is read. */
const reported =
  (state: object): StatementTest =>
  async (api) => {
    const { uuid } = await createSource(api);
    const status = { last_readout_at: AT, configured_variables: 3, state };
    const put = await api.send("PUT", "/ext/v1/readout-statuses", [{ data_source: uuid, readout_status: status }]);
    expect([put.status, put.body]).toEqual([200, { updated: 1, unknown: [] }]);
    const after = await getSource(api, uuid);
    expect([after.readout_status, after.last_readout_at]).toEqual([status, AT]);
  };

const requiredOnCreation = new Set(["name", "collector", "machine", "details"]);
const creationField =
  (field: string): StatementTest =>
  async (api) => {
    const { [field]: _, ...without } = sourceRequest();
    const sent = await api.send("POST", "/v2/data-sources", without);
    if (requiredOnCreation.has(field)) expect(locs(sent)).toEqual([`body.${field}`]);
    else {
      expect(as(dataSourceResponseSchema, sent)).toHaveProperty(field, null);
      expect(await createSource(api, { [field]: "so" })).toHaveProperty(field, "so");
      expect(await createSource(api, { [field]: null })).toHaveProperty(field, null);
    }
    expect(await refusedSource(api, { [field]: 7 })).toEqual([`body.${field}`]);
  };

const CREATION_DIFFERENCES: Readonly<Record<string, StatementTest>> = {
  async opcua(api) {
    const identity = { type: "UserNamePassword", username: "u", password: "canary-1" };
    const source = await createSource(api, { details: detailsOf("opcua", { user_identity: identity }) });
    expect(source.details).toHaveProperty("user_identity", { type: "UserNamePassword", username: "u" });
    for (const path of [`/v2/data-sources/${source.uuid}`, "/v2/data-sources"])
      expect((await api.send("GET", path)).text).not.toContain("canary-1");
    const { password: _, ...nameless } = identity;
    expect(await refusedSource(api, { details: detailsOf("opcua", { user_identity: nameless }) })).toEqual([
      "body.details.user_identity.password",
    ]);
  },
  async vendor_gateway(api) {
    const details = detailsOf("vendor_gateway", { protocol_details: { protocol: "OTHER" } });
    expect(await refusedSource(api, { details })).toEqual(["body.details.protocol_details.protocol"]);
  },
  async odac(api) {
    for (const value of ["odac", "host", null])
      expect(await refusedSource(api, { details: detailsOf("odac", { protocol_override: value }) })).toEqual([
        "body.details.protocol_override",
      ]);
  },
  async plastcontrol(api) {
    const details = detailsOf("plastcontrol", { readout_mode: { type: "passive" } });
    expect(await refusedSource(api, { details })).toEqual(["body.details.readout_mode.type"]);
  },
  async s7plus(api) {
    const created = await createSource(api, { details: detailsOf("s7plus", { password: { type: "set", value: "canary-2" } }) });
    expect(created.details).toHaveProperty("password", { type: "configured" });
    expect((await api.send("GET", `/v2/data-sources/${created.uuid}`)).text).not.toContain("canary-2");
    const { password: _, ...without } = detailsOf("s7plus");
    expect((await createSource(api, { details: without })).details).toHaveProperty("password", { type: "none" });
    const none = await createSource(api, { details: detailsOf("s7plus", { password: { type: "none" } }) });
    expect(none.details).toHaveProperty("password", { type: "none" });
  },
};

/** Same as 2.2: what was given is what is read. */
const sameAsRead =
  (type: string): StatementTest =>
  async (api) => {
    const details = detailsOf(type);
    expect((await createSource(api, { details })).details).toEqual(details);
  };

const SINK_TYPES: Readonly<Record<string, { readonly least: { readonly [key: string]: string }; readonly filledIn: object }>> = {
  mqtt: {
    least: { host: "broker", topic: "a" },
    filledIn: { port: 1883, publish_interval: 1, client_id: expect.stringMatching(/^collector-/) },
  },
  opcua: {
    least: {},
    filledIn: {
      port: 4840,
      path: "/",
      security_modes: ["Sign", "SignAndEncrypt"],
      security_policies: ["Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic256Sha256"],
      anonymous: false,
      users: [],
    },
  },
  platform: { least: {}, filledIn: { publish_interval: 1 } },
};

const each = (names: readonly string[], prefix: string, test: (name: string) => StatementTest): StatementTests =>
  Object.fromEntries(names.map((name) => [`${prefix} ${name}`, test(name)]));

export const RESOURCE_TESTS: StatementTests = {
  ...each(
    DATA_SOURCE.shape.map((row) => row.field),
    "2.1",
    responseField,
  ),
  ...each(Object.keys(FILLED_IN), "2.2", readDetails),
  async "2.2 type"(api) {
    for (const type of Object.keys(FILLED_IN)) {
      const source = await createSource(api, { details: detailsOf(type) });
      expect([source.type, source.details?.type]).toEqual([type, type]);
    }
    for (const details of [{}, { type: "of_next_year" }, { type: null }])
      expect(await refusedSource(api, { details })).toEqual(["body.details.type"]);
  },
  async "2.2 security_settings"(api) {
    const settings = { security_mode: "Sign", endpoint_security_policy: "None", token_security_policy: "Basic256" };
    expect(await refusedSource(api, { details: detailsOf("opcua", { security_settings: settings }) })).toEqual([
      "body.details.security_settings.endpoint_security_policy",
    ]);
    for (const fitting of [
      { ...settings, security_mode: "None" },
      { ...settings, endpoint_security_policy: "Basic256Sha256", token_security_policy: "None" },
    ])
      expect((await createSource(api, { details: detailsOf("opcua", { security_settings: fitting }) })).details).toHaveProperty(
        "security_settings",
        fitting,
      );
  },
  "2.2 user_identity Anonymous": writtenVariant("opcua", "user_identity", { type: "Anonymous" }, { type: "Anonymous" }),
  "2.2 user_identity UserNamePassword": writtenVariant(
    "opcua",
    "user_identity",
    { type: "UserNamePassword", username: "u", password: "p" },
    { type: "UserNamePassword", username: "u" },
  ),
  "2.2 user_identity X509Certificate": readOnlyVariant("opcua", "user_identity", { type: "X509Certificate" }),
  "2.2 protocol_details OPC_DA": writtenVariant(
    "vendor_gateway",
    "protocol_details",
    { protocol: "OPC_DA", server_name: "s" },
    { protocol: "OPC_DA", server_name: "s" },
  ),
  "2.2 protocol_details PVI": writtenVariant(
    "vendor_gateway",
    "protocol_details",
    { protocol: "PVI", path: "a/b" },
    { protocol: "PVI", path: "a/b" },
  ),
  "2.2 protocol_details OTHER": readOnlyVariant("vendor_gateway", "protocol_details", { protocol: "OTHER" }),
  "2.2 s7plus.password none": writtenVariant("s7plus", "password", { type: "none" }, { type: "none" }),
  "2.2 s7plus.password configured": writtenVariant("s7plus", "password", { type: "set", value: "x" }, { type: "configured" }),

  async "2.3 last_readout_at"(api) {
    const { uuid } = await createSource(api);
    const put = (last_readout_at: string | null) =>
      api.send("PUT", "/ext/v1/readout-statuses", [
        { data_source: uuid, readout_status: { last_readout_at, configured_variables: 0, state: { type: "OK" } } },
      ]);
    const last = async () => (await getSource(api, uuid)).readout_status.last_readout_at;
    expect(await last()).toBeNull();
    await put(AT);
    expect(await last()).toBe(AT);
    await put(null);
    expect(await last()).toBe(AT);
  },
  async "2.3 configured_variables"(api) {
    const { uuid } = await createSource(api);
    for (const [name, status] of Object.entries({ a: "ACTIVE", b: "EXPLORATION", c: "INACTIVE" }))
      expect((await api.send("POST", "/ext/v1/variables", { data_source: uuid, name, address: "holding:0", status })).status).toBe(201);
    expect((await getSource(api, uuid)).readout_status.configured_variables).toBe(2);
  },
  "2.3 state": reported({ type: "OK" }),
  "2.3 state OK": reported({ type: "OK" }),
  "2.3 state UNKNOWN": reported({ type: "UNKNOWN" }),
  "2.3 state ERROR": reported({ type: "ERROR", reason: { type: "TIMEOUT" }, error_at: AT }),
  ...each(Object.keys(REASONS), "2.3 reason", (type) =>
    reported({ type: "ERROR", reason: { type, ...sampleOf(REASONS[type] ?? []) }, error_at: AT }),
  ),

  ...each(
    DATA_SOURCE_CREATE.shape.map((row) => row.field),
    "2.4",
    creationField,
  ),
  ...each(["vendor_a", "modbus_tcp", "s7", "vendor_b", "fins"], "2.4", sameAsRead),
  ...each(Object.keys(CREATION_DIFFERENCES), "2.4", (type) => CREATION_DIFFERENCES[type] ?? sameAsRead(type)),

  async "2.5 name"(api) {
    expect((await createSink(api)).name).toBe("broker");
    expect((await api.send("POST", "/v2/data-sinks", sinkRequest())).status).toBe(409);
    expect((await createSink(api, { name: "Broker" })).name).toBe("Broker");
    const { name: _, ...nameless } = sinkRequest();
    for (const request of [nameless, sinkRequest({ name: null })]) {
      const sent = await api.send("POST", "/v2/data-sinks", request);
      expect([sent.status, sent.body["name"]]).toEqual([201, null]);
    }
  },
  async "2.5 collector"(api) {
    expect((await createSink(api)).collector).toBe(COLLECTOR);
    expect(locs(await api.send("POST", "/v2/data-sinks", sinkRequest({ collector: randomUUID() })))).toEqual(["body.collector"]);
  },
  async "2.5 uuid"(api) {
    const sink = await createSink(api);
    expect(sink.uuid).toMatch(UUID);
    expect(Object.keys(sink).sort()).toEqual(DATA_SINK.shape.map((row) => row.field).sort());
  },
  async "2.5 type"(api) {
    for (const [type, { least }] of Object.entries(SINK_TYPES)) {
      const sink = await createSink(api, { name: type, details: { type, ...least } });
      expect([sink.type, sink.details.type]).toEqual([type, type]);
    }
  },
  async "2.5 details"(api) {
    for (const details of [{}, { type: "of_next_year" }, null])
      expect(locs(await api.send("POST", "/v2/data-sinks", sinkRequest({ details })))[0]).toMatch(/^body\.details/);
  },
  ...each(Object.keys(SINK_TYPES), "2.5", (type) => async (api) => {
    const { least, filledIn } = SINK_TYPES[type] ?? { least: {}, filledIn: {} };
    const sink = await createSink(api, { details: { type, ...least } });
    expect(sink.details).toEqual({ type, ...least, ...filledIn });
    expect(as(dataSinkResponseSchema, await api.send("GET", `/v2/data-sinks/${sink.uuid}`))).toEqual(sink);
    expect(locs(await api.send("POST", "/v2/data-sinks", sinkRequest({ details: { type, ...least, unheard_of: 1 } })))).toEqual([
      "body.details.unheard_of",
    ]);
  }),

  async "2.6 uuid"(api) {
    const site = as(siteSchema, await api.send("POST", "/v2/sites", { name: "Hall 1" }));
    expect(site.uuid).toMatch(UUID);
  },
  async "2.6 name"(api) {
    expect(as(siteSchema, await api.send("POST", "/v2/sites", { name: "Halle ö 1" })).name).toBe("Halle ö 1");
    for (const body of [{}, { name: null }, { name: 1 }]) expect(locs(await api.send("POST", "/v2/sites", body))).toEqual(["body.name"]);
  },
  async "2.7 data"(api) {
    await createSource(api);
    for (const path of ["/v2/data-sources", "/v2/data-sinks", "/v2/sites"]) {
      const { body } = await api.send("GET", path);
      expect(Array.isArray(body["data"])).toBe(true);
      expect(Object.keys(body).sort()).toEqual(["data", "metadata"]);
    }
  },
  async "2.7 metadata"(api) {
    for (const path of ["/v2/data-sources", "/v2/data-sinks", "/v2/sites"])
      expect((await api.send("GET", path)).body["metadata"]).toEqual({ next_cursor: null });
  },
};
