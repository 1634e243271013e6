import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { apiAccess } from "../api/access.ts";
import { COLLECTOR, modbusSource, startTestServer, temporaryFolder } from "../api/server/testing.ts";
import { EXIT } from "./io.ts";
import { runCommandWith, settingsFile } from "./testing.ts";

const CANARY = "Canary-2fe9";
const URL = `opc.tcp://reader:${CANARY}@127.0.0.1:1`;
const SLASH = `opc.tcp://reader:a/b${CANARY}@127.0.0.1:1`;

test.each([
  ["source add", ["source", "add", "press", "opcua", `endpoint_url=${URL}`]],
  ["source add, a password with a slash", ["source", "add", "press", "opcua", `endpoint_url=${SLASH}`]],
  ["source add with a password in host", ["source", "add", "press", "modbus_tcp", `host=reader:${CANARY}@127.0.0.1`]],
  ["source set", ["source", "set", "press-1", `host=reader:${CANARY}@127.0.0.1`]],
  ["source set, a URL in host", ["source", "set", "press-1", `host=http://reader:${CANARY}@127.0.0.1`]],
  ["sink add with a password in host", ["sink", "add", "broker", "mqtt", `host=mqtt://reader:${CANARY}@127.0.0.1`, "topic=t"]],
])("%s refuses a password in an address, and the API never has it", async (_, words) => {
  const api = await startTestServer();
  expect((await api.send("POST", "/v2/data-sources", modbusSource())).status).toBe(201);
  const key = join(api.folder, "keys", "admin.key");
  const config = settingsFile(api.folder, { collector: COLLECTOR, api: { url: api.server.url, key_file: key } });
  const { code, out, err } = await runCommandWith({ env: { HOME: api.folder } }, ...words, "--config", config);
  expect(err).toMatch(/endpoint_url|host/);
  expect(out + err + api.log.lines.join()).not.toContain(CANARY);
  expect([EXIT.usage, EXIT.ownFailure]).toContain(code);
});

test.each([
  ["read", ["read", "opcua", `endpoint_url=${URL}`, "i=2258"]],
  ["read, a password with a slash", ["read", "opcua", `endpoint_url=${SLASH}`, "i=2258"]],
  ["read with a password in host", ["read", "modbus_tcp", `host=reader:${CANARY}@127.0.0.1`, "holding:0"]],
  ["read --json", ["read", "opcua", `endpoint_url=${URL}`, "i=2258", "--json"]],
  ["read of an address with a URL", ["read", "modbus_tcp", "host=127.0.0.1", "port=1", `http://reader:${CANARY}@127.0.0.1/`]],
  ["probe", ["probe", "opcua", `endpoint_url=${URL}`]],
  ["probe with a password in host", ["probe", "s7", `host=${CANARY}@127.0.0.1`]],
  ["browse", ["browse", "opcua", `endpoint_url=${URL}`]],
  ["browse, a password with a slash", ["browse", "opcua", `endpoint_url=${SLASH}`]],
  ["a word too many", ["plan", "opcua", `endpoint_url=${URL}`, "i=2258"]],
  ["a word too many with a password in host", ["plan", "modbus_tcp", `host=reader:${CANARY}@127.0.0.1`]],
  ["an unknown verb", [`reed=reader:${CANARY}@127.0.0.1`]],
])("%s gives no password of an address back", async (_, words) => {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  writeFileSync(join(folder, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  const { code, out, err } = await runCommandWith({ env: { HOME: folder } }, ...words, "--config", config);
  expect(code).not.toBe(0);
  expect(out + err).not.toContain(CANARY);
});

test.each([
  ["api.url", { api: { url: `http://reader:${CANARY}@127.0.0.1:1`, key_file: "key" } }],
  ["api.url, a password with a slash", { api: { url: `http://reader:a/b${CANARY}@127.0.0.1:1`, key_file: "key" } }],
  ["api.proxy", { api: { url: "https://127.0.0.9:1", key_file: "key", proxy: `http://reader:${CANARY}@127.0.0.1:1` } }],
  ["page.listen", { page: { listen: `http://reader:${CANARY}@127.0.0.1:1` } }],
  ["http.listen", { http: { listen: `reader:${CANARY}@127.0.0.1:1` } }],
  ["embedded_api.listen", { embedded_api: { listen: `reader:${CANARY}@127.0.0.1:1` } }],
])("a password in %s is given back by no verb", async (_, settings) => {
  const folder = temporaryFolder();
  const config = settingsFile(folder, { collector: "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01", ...settings });
  writeFileSync(join(folder, "key"), "a-key-of-sixteen-characters\n");
  for (const words of [["check"], ["source", "list"], ["flows"], ["flows", "--json"], ["doctor"], ["status", "--json"]]) {
    const said = await runCommandWith({ env: { HOME: folder } }, ...words, "--config", config).then(({ out, err }) => out + err, String);
    expect(said, words.join(" ")).not.toContain(CANARY);
  }
});

test("the API is reached, told and shown without the user that api.url holds", () => {
  const api = { url: `https://reader:${CANARY}@api.example`, key_file: "key", poll_interval: 10_000, insecure: false } as const;
  const settings = { api, embedded_api: {} } as unknown as Parameters<typeof apiAccess>[0];
  expect(apiAccess(settings, "/state").url).toBe("https://api.example");
});
