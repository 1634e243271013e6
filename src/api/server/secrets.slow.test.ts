import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDatabase } from "./database.ts";
import { openSecretStore } from "./secrets.ts";
import { COLLECTOR, MACHINE, modbusSource, recordingLog, startTestServer, type TestServer, temporaryFolder } from "./testing.ts";

const CANARY = "Canary-7f3a91";

const opcua = (identity: object) => ({
  name: "opc",
  collector: COLLECTOR,
  machine: MACHINE,
  details: {
    type: "opcua",
    host: "127.0.0.1",
    port: 4840,
    endpoint_url: "opc.tcp://127.0.0.1:4840/",
    security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "Basic256Sha256" },
    user_identity: identity,
  },
});
const s7plus = (password: object) => ({
  name: "plc",
  collector: COLLECTOR,
  machine: MACHINE,
  details: { type: "s7plus", host: "127.0.0.1", port: 102, password },
});

const secretsOf = async (api: TestServer) => {
  const sent = await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
  expect(sent.status).toBe(200);
  expect(sent.headers.get("cache-control")).toBe("no-store");
  return sent.body["secrets"];
};

test("passwords go to the collector's own key alone and stay through a patch of something else", async () => {
  const api = await startTestServer();
  const opc = await api.send("POST", "/v2/data-sources", opcua({ type: "UserNamePassword", username: "u", password: CANARY }));
  const plc = await api.send("POST", "/v2/data-sources", s7plus({ type: "set", value: CANARY }));
  await api.send("POST", "/v2/data-sources", modbusSource());
  expect(opc.body["details"]?.["user_identity"]).toEqual({ type: "UserNamePassword", username: "u" });
  expect(plc.body["details"]?.["password"]).toEqual({ type: "configured" });
  const [a, b] = [String(opc.body["uuid"]), String(plc.body["uuid"])];
  expect(await secretsOf(api)).toEqual({ [a]: { password: CANARY }, [b]: { password: CANARY } });
  expect((await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`)).status).toBe(403);

  const stronger = { security_mode: "Sign", endpoint_security_policy: "Basic256Sha256", token_security_policy: "Basic256Sha256" };
  for (const [uuid, before, patch] of [
    [a, opc.body, { security_settings: stronger }],
    [b, plc.body, { destination_tsap: "SIMATIC-ROOT-HMI" }],
  ] as const) {
    expect((await api.send("PATCH", `/v2/data-sources/${uuid}`, { name: "renamed", details: patch })).status).toBe(204);
    const after = (await api.send("GET", `/v2/data-sources/${uuid}`)).body;
    expect(after["details"]).toEqual({ ...before["details"], ...patch });
  }
  expect(await secretsOf(api)).toEqual({ [a]: { password: CANARY }, [b]: { password: CANARY } });

  const noPassword = await api.send("PATCH", `/v2/data-sources/${a}`, {
    details: { user_identity: { type: "UserNamePassword", username: "v" } },
  });
  expect([noPassword.status, noPassword.body["detail"]?.[0]?.["loc"]]).toEqual([422, ["body", "details", "user_identity", "password"]]);
  await api.send("PATCH", `/v2/data-sources/${a}`, { details: { user_identity: { type: "Anonymous" } } });
  await api.send("PATCH", `/v2/data-sources/${b}`, { details: { password: { type: "set", value: "other" } } });
  expect(await secretsOf(api)).toEqual({ [b]: { password: "other" } });
  await api.send("DELETE", `/v2/data-sources/${b}`);
  expect(await secretsOf(api)).toEqual({});
});

test("a secret is in no answer, no log line and no file but the encrypted one", async () => {
  const api = await startTestServer();
  const wrong: unknown[] = [
    { ...opcua({ type: "UserNamePassword", username: "u", password: [CANARY] }), name: 1 },
    opcua({ type: "UserNamePassword", username: 1, password: CANARY }),
    opcua({ type: "UserNamePassword", username: "u", password: CANARY, [`extra`]: CANARY }),
    opcua({ type: "X509Certificate", password: CANARY }),
    { ...opcua({}), details: { ...opcua({}).details, user_identity: CANARY } },
    { ...opcua({}), details: JSON.stringify({ password: CANARY }) },
    { ...opcua({}), details: { ...opcua({}).details, host: { password: CANARY }, port: `{"password":"${CANARY}"}` } },
    { ...opcua({}), details: { ...opcua({}).details, endpoint_url: `http://u:${CANARY}@host/` } },
    { ...s7plus({ type: "set", value: CANARY }), password: CANARY },
    s7plus({ type: "set", value: [CANARY] }),
    { ...s7plus({}), details: { type: "s7plus", host: "h", port: 1, password: CANARY } },
    CANARY,
    `{"password":"${CANARY}"`,
    [CANARY],
  ];
  for (const body of wrong) {
    const sent = await api.send("POST", "/v2/data-sources", body);
    expect(sent.status, JSON.stringify(body)).toBe(422);
    expect(sent.text).not.toContain(CANARY);
  }
  const made = await api.send("POST", "/v2/data-sources", opcua({ type: "UserNamePassword", username: "u", password: CANARY }));
  const path = `/v2/data-sources/${made.body["uuid"]}`;
  const answers = [
    made,
    await api.send("GET", path),
    await api.send("GET", "/v2/data-sources"),
    await api.send("PATCH", path, { details: { user_identity: { type: "UserNamePassword", password: CANARY } } }),
  ];
  for (const sent of answers) expect(sent.text + JSON.stringify([...sent.headers])).not.toContain(CANARY);
  await secretsOf(api);
  expect(api.log.lines.join("\n")).not.toContain(CANARY);
  await api.server.close();
  const files = readdirSync(api.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.map((entry) => entry.name).sort()).toContain("secrets.key");
  for (const entry of files) {
    const path = join(entry.parentPath, entry.name);
    const content = readFileSync(path).toString("latin1");
    expect(content, path).not.toContain(CANARY);
    if (!path.endsWith(".key")) for (const key of [api.adminKey, api.collectorKey]) expect(content, path).not.toContain(key);
    expect(statSync(path).mode & 0o077, path).toBe(0);
  }
});

test("a record that only a read can have keeps its form through a patch", async () => {
  const api = await startTestServer();
  const made = await api.send("POST", "/v2/data-sources", opcua({ type: "Anonymous" }));
  const uuid = String(made.body["uuid"]);
  const db = openDatabase(join(api.folder, "api", "configuration.db"));
  const seeded = { ...made.body["details"], user_identity: { type: "X509Certificate" } };
  db.prepare("UPDATE data_sources SET details = ? WHERE uuid = ?").run(JSON.stringify(seeded), uuid);
  db.close();
  expect((await api.send("PATCH", `/v2/data-sources/${uuid}`, { details: { port: 7 } })).status).toBe(204);
  expect((await api.send("GET", `/v2/data-sources/${uuid}`)).body["details"]).toEqual({ ...seeded, port: 7 });
});

test("a sealed secret opens neither under another record nor with another key; a damaged key file is set aside", () => {
  const folder = temporaryFolder();
  const log = recordingLog();
  const db = openDatabase(join(folder, "c.db"));
  const keyFile = join(folder, "keys", "secrets.key");
  const store = openSecretStore(db, keyFile, log);
  store.replace("a", { password: CANARY });
  db.prepare("INSERT INTO secrets SELECT 'b', field, sealed FROM secrets WHERE owner = 'a'").run();
  expect(store.read(["a", "b", "c"])).toEqual({ a: { password: CANARY } });
  expect(log.lines).toHaveLength(1);
  expect(openSecretStore(db, keyFile, log).read(["a"])).toEqual({ a: { password: CANARY } });

  writeFileSync(keyFile, "not a key\n");
  const renewed = openSecretStore(db, keyFile, log);
  expect(renewed.read(["a"])).toEqual({});
  expect(readdirSync(join(folder, "keys"))).toHaveLength(2);
  renewed.replace("a", { password: "new" });
  expect(renewed.read(["a"])).toEqual({ a: { password: "new" } });
  db.close();
});
