import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { storeDetails } from "../../../test/contract/sections/stored.ts";
import { type Details, SECURITY_MODES, SECURITY_POLICIES } from "../../model/details.ts";
import { passwordBoundChanges } from "../../model/stored-password.ts";
import { COLLECTOR, type Json, MACHINE, mqttSink, type Sent, startTestServer, type TestServer } from "./testing.ts";

const PASSWORD = "Canary-51c9";
const STRONG = { security_mode: "Sign", endpoint_security_policy: "Basic256Sha256", token_security_policy: "Basic256Sha256" };
const OPCUA = {
  type: "opcua",
  host: "plc",
  port: 4840,
  endpoint_url: "opc.tcp://plc:4840/ua",
  security_settings: STRONG,
  user_identity: { type: "UserNamePassword", username: "reader", password: PASSWORD },
};
const S7PLUS = { type: "s7plus", host: "plc", port: 102, password: { type: "set", value: PASSWORD } };

interface Source {
  readonly uuid: string;
  readonly path: string;
}

async function create(api: TestServer, details: object, headers: Record<string, string> = {}): Promise<Source> {
  const sent = await api.send("POST", "/v2/data-sources", { name: "plc", collector: COLLECTOR, machine: MACHINE, details }, headers);
  expect(sent.status, sent.text).toBe(201);
  const uuid = String(sent.body["uuid"]);
  return { uuid, path: `/v2/data-sources/${uuid}` };
}

/** What the collector would read the source with: record, secret, and whether there is anything new. */
async function inUse(api: TestServer, { uuid, path }: Source) {
  const own = { authorization: api.collectorKey };
  const record = await api.send("GET", path);
  const secrets = await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, own);
  const revision = await api.send("GET", `/ext/v1/revision?collector=${COLLECTOR}`, undefined, own);
  return {
    record: record.body,
    etag: record.headers.get("etag"),
    password: secrets.body["secrets"]?.[uuid]?.["password"] as Json | string | undefined,
    revision: revision.body["revision"],
  };
}

const refusal = ({ status, body }: Sent) => ({ status, at: body["detail"]?.[0]?.["loc"], type: body["detail"]?.[0]?.["type"] });
const refusedAt = (...path: string[]) => ({ status: 422, at: ["body", "details", ...path], type: "password_required" });

/** Changes that take the password elsewhere, or protect it less. */
const BOUND: readonly (readonly [name: string, details: object, patch: object, at: readonly string[]])[] = [
  ["opcua: host", OPCUA, { host: "10.0.0.66" }, ["user_identity", "password"]],
  ["opcua: port", OPCUA, { port: 4841 }, ["user_identity", "password"]],
  ["opcua: endpoint_url", OPCUA, { endpoint_url: "opc.tcp://10.0.0.66:4840/ua" }, ["user_identity", "password"]],
  ["opcua: all of the address", OPCUA, { host: "a", port: 1, endpoint_url: "opc.tcp://a:1" }, ["user_identity", "password"]],
  ["opcua: mode None", OPCUA, { security_settings: { ...STRONG, security_mode: "None" } }, ["user_identity", "password"]],
  [
    "opcua: a weaker endpoint policy",
    OPCUA,
    { security_settings: { ...STRONG, endpoint_security_policy: "Basic128Rsa15" } },
    ["user_identity", "password"],
  ],
  [
    "opcua: no token policy",
    OPCUA,
    { security_settings: { ...STRONG, security_mode: "SignAndEncrypt", token_security_policy: "None" } },
    ["user_identity", "password"],
  ],
  ["s7plus: host", S7PLUS, { host: "10.0.0.66" }, ["password"]],
  ["s7plus: port", S7PLUS, { port: 103 }, ["password"]],
];

test("fault: a stored password follows a change of host or to weaker security to whoever makes it", { timeout: 60_000 }, async () => {
  const api = await startTestServer();
  for (const [name, details, patch, at] of BOUND) {
    const source = await create(api, details);
    const before = await inUse(api, source);
    expect(before.password, name).toBe(PASSWORD);
    // The rule holds for every key: who may change all may not know the password either.
    for (const authorization of [api.adminKey, api.collectorKey]) {
      const sent = await api.send("PATCH", source.path, { name: "renamed", details: patch }, { authorization });
      expect(refusal(sent), name).toEqual(refusedAt(...at));
      expect(sent.text, name).not.toContain(PASSWORD);
      for (const field of Object.keys(patch)) expect(String(sent.body["detail"]?.[0]?.["msg"]), name).toContain(field);
    }
    expect(await inUse(api, source), name).toEqual(before);
    // With a password it is made, and the one before is gone: another's guess gets nothing of it.
    const [field] = at;
    const secret = field === "password" ? { type: "set", value: "mine" } : { ...OPCUA.user_identity, password: "mine" };
    const sent = await api.send("PATCH", source.path, { details: { ...patch, [String(field)]: secret } });
    expect(sent.status, name).toBe(204);
    const after = await inUse(api, source);
    expect(after.record["details"], name).toMatchObject(patch);
    expect(after.password, name).toBe("mine");
    expect((await api.send("DELETE", source.path)).status).toBe(204);
  }
});

test("a neighbour of the site cannot have the password sent to itself", async () => {
  const api = await startTestServer();
  const site = String((await api.send("POST", "/v2/sites", { name: "hall" })).body["uuid"]);
  const victim = await create(api, OPCUA);
  await api.server.close();
  const neighbour = await startTestServer(api.folder, randomUUID());
  const collectors = await neighbour.send("GET", "/ext/v1/collectors");
  for (const { uuid } of Object.values(collectors.body["data"] ?? {}).map((record: Json) => ({ uuid: String(record["uuid"]) })))
    expect((await neighbour.send("PATCH", `/ext/v1/collectors/${uuid}`, { site })).status).toBe(204);
  const mine = { authorization: neighbour.collectorKey };
  expect((await neighbour.send("PATCH", victim.path, { note: "seen" }, mine)).status).toBe(204);
  expect(refusal(await neighbour.send("PATCH", victim.path, { details: { host: "10.0.0.66" } }, mine))).toEqual(
    refusedAt("user_identity", "password"),
  );
  expect((await neighbour.send("GET", victim.path, undefined, mine)).body["details"]).toMatchObject({ host: "plc" });
});

test("what keeps the password where it is needs none, and taking it away is free", async () => {
  const api = await startTestServer();
  const strongest = {
    security_mode: "SignAndEncrypt",
    endpoint_security_policy: "Aes256-Sha256-RsaPss",
    token_security_policy: "Basic256Sha256",
  };
  const source = await create(api, OPCUA);
  for (const patch of [
    { name: "renamed", note: "n", readout_interval: 3, readout_limit: 5, machine: randomUUID() },
    { details: {} },
    { details: { type: "opcua", host: "plc", port: 4840, endpoint_url: OPCUA.endpoint_url, security_settings: STRONG } },
    { details: { security_settings: strongest } },
  ]) {
    expect((await api.send("PATCH", source.path, patch)).status, JSON.stringify(patch)).toBe(204);
    expect((await inUse(api, source)).password).toBe(PASSWORD);
  }
  const away = { host: "other", security_settings: { ...STRONG, security_mode: "None" }, user_identity: { type: "Anonymous" } };
  expect((await api.send("PATCH", source.path, { details: away })).status).toBe(204);
  const after = await inUse(api, source);
  expect([after.record["details"], after.password]).toEqual([{ ...OPCUA, ...away }, undefined]);
  // Without a password nothing is bound.
  expect((await api.send("PATCH", source.path, { details: { host: "plc" } })).status).toBe(204);

  const plc = await create(api, S7PLUS);
  expect((await api.send("PATCH", plc.path, { details: { destination_tsap: "SIMATIC-ROOT-HMI" } })).status).toBe(204);
  expect((await inUse(api, plc)).password).toBe(PASSWORD);
  expect((await api.send("PATCH", plc.path, { details: { host: "other", password: { type: "none" } } })).status).toBe(204);
  expect((await inUse(api, plc)).password).toBeUndefined();
});

test("an imported source, whose password is in no file, has none to protect until it is set", async () => {
  const api = await startTestServer();
  const plc = await create(api, { ...S7PLUS, password: { type: "none" } });
  storeDetails(api, plc.uuid, { ...S7PLUS, destination_tsap: "SIMATIC-ROOT-ES", password: { type: "configured" } });
  expect((await api.send("PATCH", plc.path, { details: { host: "other" } })).status).toBe(204);
  expect((await api.send("PATCH", plc.path, { details: { password: S7PLUS.password } })).status).toBe(204);
  expect(refusal(await api.send("PATCH", plc.path, { details: { host: "plc" } }))).toEqual(refusedAt("password"));
});

test("another user needs that user's password, and a wrong field is told before the password is", async () => {
  const api = await startTestServer();
  const source = await create(api, OPCUA);
  const renamed = await api.send("PATCH", source.path, { details: { user_identity: { type: "UserNamePassword", username: "admin" } } });
  expect(refusal(renamed)).toEqual({ ...refusedAt("user_identity", "password"), type: "missing" });
  expect(refusal(await api.send("PATCH", source.path, { details: { host: "" } })).at).toEqual(["body", "details", "host"]);
});

test("If-Match comes first: who has not read the record is 412, and after a refusal the tag is still good", async () => {
  const api = await startTestServer();
  const source = await create(api, OPCUA);
  const { etag } = await inUse(api, source);
  const send = (tag: string) => api.send("PATCH", source.path, { details: { host: "other" } }, { "if-match": tag });
  expect((await send('"0"')).status).toBe(412);
  expect((await send(String(etag))).status).toBe(422);
  expect((await api.send("PATCH", source.path, { note: "n" }, { "if-match": String(etag) })).status).toBe(204);
});

test("a data sink's stored passwords go nowhere with it: users stay through a change of the server", async () => {
  const api = await startTestServer();
  const details = { type: "opcua", users: [{ username: "scada", password: PASSWORD }] };
  const sink = await api.send("POST", "/v2/data-sinks", { name: "ua", collector: COLLECTOR, details });
  const change = { port: 4841, path: "/other", security_modes: ["None"], security_policies: ["None"] };
  expect((await api.send("PATCH", `/v2/data-sinks/${sink.body["uuid"]}`, { details: change })).status).toBe(204);
  const mqtt = await api.send("POST", "/v2/data-sinks", mqttSink());
  expect((await api.send("PATCH", `/v2/data-sinks/${mqtt.body["uuid"]}`, { details: { host: "other" } })).status).toBe(204);
});

test("any change of an opcua source, with its password or without: 422 with nothing changed exactly where the stored one is bound to it", {
  timeout: 60_000,
}, async () => {
  const api = await startTestServer();
  const settings = fc
    .record({
      security_mode: fc.constantFrom(...SECURITY_MODES),
      endpoint_security_policy: fc.constantFrom(...SECURITY_POLICIES),
      token_security_policy: fc.constantFrom(...SECURITY_POLICIES),
    })
    .filter(({ security_mode: mode, endpoint_security_policy: policy }) => mode === "None" || policy !== "None");
  const patches = fc.record(
    {
      host: fc.constantFrom("plc", "other"),
      port: fc.constantFrom(4840, 4841),
      endpoint_url: fc.constantFrom("opc.tcp://plc:4840/ua", "opc.tcp://other/"),
      security_settings: settings,
    },
    { requiredKeys: [] },
  );
  const outcomes = new Map<string, number>();
  const secrets = fc.constantFrom("absent", "given", "removed");
  await fc.assert(
    fc.asyncProperty(settings, fc.array(fc.tuple(patches, secrets), { minLength: 2, maxLength: 4 }), async (security_settings, steps) => {
      const source = await create(api, { ...OPCUA, security_settings });
      for (const [change, secret] of steps) {
        const identity = secret === "given" ? { type: "UserNamePassword", username: "reader" } : { type: "Anonymous" };
        const given = { ...OPCUA.user_identity, password: `Canary-new-${steps.length}` };
        const patch = {
          ...change,
          ...(secret === "given" && { user_identity: given }),
          ...(secret === "removed" && { user_identity: identity }),
        };
        const before = await inUse(api, source);
        const details = before.record["details"] as unknown as Details;
        const isBound = secret === "absent" && passwordBoundChanges(details, { ...details, ...patch } as Details).length > 0;
        const sent = await api.send("PATCH", source.path, { details: patch });
        const outcome = `${secret} ${sent.status}`;
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        const after = await inUse(api, source);
        const password = { absent: before.password, given: given.password, removed: undefined }[secret];
        expect([sent.status, after.password]).toEqual([isBound ? 422 : 204, password]);
        if (isBound) expect(after).toEqual(before);
        else expect(after.record["details"]).toEqual({ ...details, ...change, ...(secret !== "absent" && { user_identity: identity }) });
      }
      await api.send("DELETE", source.path);
    }),
    { numRuns: 30 },
  );
  for (const outcome of ["absent 204", "absent 422", "given 204", "removed 204"]) expect(outcomes.get(outcome), outcome).toBeGreaterThan(0);
});
