import { connect } from "node:net";
import { expect, test } from "vitest";
import { mergeDetails, mergeSinkDetails } from "./details.ts";
import { MACHINE, modbusSource, mqttSink, startTestServer, type TestServer } from "./testing.ts";

const JSON_TYPE = "application/json";

/** Bytes as they are, and all that comes back before the connection ends. */
function raw(api: TestServer, bytes: string | Uint8Array, endsAfterMs?: number): Promise<string> {
  const { port } = new URL(api.server.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", (error) => chunks.push(Buffer.from(`<${error.message}>`)));
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("utf8")));
    socket.write(bytes);
    if (endsAfterMs !== undefined) setTimeout(() => socket.end(), endsAfterMs);
  });
}

async function sendBytes(api: TestServer, body: Uint8Array): Promise<{ status: number; body: unknown }> {
  const headers = { authorization: api.adminKey, "content-type": JSON_TYPE };
  const response = await fetch(`${api.server.url}/api/v2/sites`, { method: "POST", headers, body: Buffer.from(body) });
  return { status: response.status, body: await response.json() };
}

test("a body is UTF-8, with or without a byte order mark; where it stops being JSON is said", async () => {
  const api = await startTestServer();
  const latin = await sendBytes(api, Buffer.from('{"name": "Hälle"}', "latin1"));
  expect(latin).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body"], type: "json_invalid", msg: expect.stringContaining("UTF-8") }] },
  });
  expect(await sendBytes(api, Buffer.from('\ufeff{"name": "Hälle"}'))).toMatchObject({ status: 201, body: { name: "Hälle" } });
  const broken = await api.send("POST", "/v2/sites", '{\n  "name": "Canary\n}');
  expect(broken).toMatchObject({
    status: 422,
    body: { detail: [{ msg: "the body is not JSON: look at line 2, column 18", ctx: { line: 2, column: 18 } }] },
  });
  expect(broken.text).not.toContain("Canary");
});

test("a host with a port, a scheme or blanks is refused where it is given, with what was meant", async () => {
  const api = await startTestServer();
  const details = (host: string) => ({ type: "modbus_tcp", host });
  for (const [host, words] of [
    ["192.168.0.10:502", "192.168.0.10, and 502 as port"],
    ["tcp://press-1", "write press-1"],
    [" press-1", "write press-1"],
  ] as const) {
    const refused = { status: 422, body: { detail: [{ loc: ["body", "details", "host"], msg: expect.stringContaining(words) }] } };
    expect(await api.send("POST", "/v2/data-sources", { ...modbusSource(), details: details(host) })).toMatchObject(refused);
    expect(await api.send("POST", "/v2/data-sinks", { ...mqttSink(), details: { type: "mqtt", host, topic: "t" } })).toMatchObject(refused);
  }
  const made = await api.send("POST", "/v2/data-sources", { ...modbusSource(), details: details("fd00::1") });
  expect(made.status).toBe(201);
  const path = `/v2/data-sources/${String(made.body["uuid"])}`;
  expect((await api.send("PATCH", path, { details: { host: "fd00::1:x" } })).status).toBe(422);
  expect((await api.send("PATCH", path, { details: { host: "[fd00::1]:502" } })).status).toBe(422);
});

test("intervals and limits begin with one", async () => {
  const api = await startTestServer();
  const source = `/v2/data-sources/${String((await api.send("POST", "/v2/data-sources", modbusSource())).body["uuid"])}`;
  const sink = `/v2/data-sinks/${String((await api.send("POST", "/v2/data-sinks", mqttSink())).body["uuid"])}`;
  for (const value of [0, -1])
    for (const [path, patch] of [
      [source, { readout_interval: value }],
      [source, { readout_limit: value }],
      [sink, { details: { publish_interval: value } }],
    ] as const)
      expect(await api.send("PATCH", path, patch), JSON.stringify(patch)).toMatchObject({ status: 422 });
  expect((await api.send("PATCH", source, { readout_interval: 1, readout_limit: null })).status).toBe(204);
  expect((await api.send("PATCH", sink, { details: { publish_interval: 1 } })).status).toBe(204);
});

test("what belongs to a record and cannot be changed is said so; what is in none is unknown", async () => {
  const api = await startTestServer();
  const created = await api.send("POST", "/v2/data-sources", modbusSource());
  const source = String(created.body["uuid"]);
  const sink = String((await api.send("POST", "/v2/data-sinks", mqttSink())).body["uuid"]);
  const variable = String(
    (await api.send("POST", "/ext/v1/variables", { data_source: source, name: "v", address: "holding:0" })).body["uuid"],
  );
  for (const [path, fields] of [
    [`/v2/data-sources/${source}`, ["uuid", "type", "collector", "readout_status"]],
    [`/v2/data-sinks/${sink}`, ["uuid", "type", "collector"]],
    [`/ext/v1/variables/${variable}`, ["uuid", "data_source"]],
  ] as const)
    for (const field of fields) {
      const detail = [{ loc: ["body", field], msg: "cannot be changed", type: "immutable" }];
      expect(await api.send("PATCH", path, { [field]: MACHINE }), field).toMatchObject({ status: 422, body: { detail } });
    }
  const unknown = { detail: [{ loc: ["body", "invented"], msg: "unknown field" }] };
  expect(await api.send("PATCH", `/v2/data-sources/${source}`, { invented: 1 })).toMatchObject({ status: 422, body: unknown });
});

test("a new record says where it is, and one that has not changed is 304", async () => {
  const api = await startTestServer();
  const made = await api.send("POST", "/v2/data-sources", modbusSource());
  const path = `/v2/data-sources/${String(made.body["uuid"])}`;
  expect(made.headers.get("location")).toBe(`/api${path}`);
  const read = await api.send("GET", path);
  const tag = read.headers.get("etag") ?? "";
  expect(made.headers.get("etag")).toBe(tag);
  expect(await api.send("GET", path, undefined, { "if-none-match": tag })).toMatchObject({ status: 304, text: "" });
  // A report changes what is answered and not what a change is conditional on.
  const readout_status = { last_readout_at: null, configured_variables: 3, state: { type: "OK" } };
  await api.send("PUT", "/ext/v1/readout-statuses", [{ data_source: String(made.body["uuid"]), readout_status }]);
  expect(await api.send("GET", path, undefined, { "if-none-match": tag })).toMatchObject({ status: 200 });
  expect((await api.send("PATCH", path, { note: "n" }, { "if-match": tag })).status).toBe(204);
  expect((await api.send("PATCH", path, { note: "m" }, { "if-match": tag })).status).toBe(412);
  const site = await api.send("POST", "/v2/sites", { name: "s" });
  const same = { "if-none-match": site.headers.get("etag") ?? "" };
  expect((await api.send("GET", `/v2/sites/${String(site.body["uuid"])}`, undefined, same)).status).toBe(304);
});

test("a body over the limit is answered while it is still being sent", async () => {
  const api = await startTestServer();
  const size = 8 * 2 ** 20;
  const head = `POST /api/v2/sites HTTP/1.1\r\nhost: a\r\nauthorization: ${api.adminKey}\r\ncontent-type: ${JSON_TYPE}\r\n`;
  const lengths = [
    `content-length: ${size}\r\n\r\n${"x".repeat(size)}`,
    `transfer-encoding: chunked\r\n\r\n${size.toString(16)}\r\n${"x".repeat(size)}\r\n0\r\n\r\n`,
  ];
  for (const rest of lengths) {
    const next = `GET /api/v2/sites HTTP/1.1\r\nhost: a\r\nauthorization: ${api.adminKey}\r\nconnection: close\r\n\r\n`;
    const answers = await raw(api, `${head}${rest}${next}`);
    expect(answers).toMatch(/^HTTP\/1\.1 413 [\s\S]*the body is larger[\s\S]*HTTP\/1\.1 200 /);
  }
});

test("headers that are too long, and methods that no path takes, are said as such", async () => {
  const api = await startTestServer();
  expect(await raw(api, `GET /api/v2/sites HTTP/1.1\r\nhost: a\r\nx: ${"x".repeat(200_000)}\r\n\r\n`, 300)).toMatch(
    /^HTTP\/1\.1 431 .*[\s\S]*16384 bytes/,
  );
  const odd = await raw(api, "GRAB /api/v2/sites HTTP/1.1\r\nhost: a\r\n\r\n", 300);
  expect(odd).toMatch(/^HTTP\/1\.1 405 [\s\S]*Allow: GET, POST, PUT, PATCH, DELETE/);
  for (const method of ["OPTIONS", "DELETE", "PUT"]) {
    const refused = await fetch(`${api.server.url}/api/v2/sites`, { method, headers: { authorization: api.adminKey } });
    expect([refused.status, refused.headers.get("allow")], method).toEqual([405, "GET, POST"]);
  }
  expect((await fetch(`${api.server.url}/api/v2/nowhere`, { method: "OPTIONS", headers: { authorization: api.adminKey } })).status).toBe(
    404,
  );
});

test("a stored host or interval that would be refused today holds up no change of other fields", () => {
  const details = { type: "modbus_tcp", host: "press-1:502", port: 502, ephemeral_connections: true } as const;
  const stored = { type: "modbus_tcp", details, hasPassword: false };
  expect(mergeDetails(stored, { port: 503 }).details).toEqual({ ...details, port: 503 });
  expect(() => mergeDetails(stored, { host: "press-1:503" })).toThrow("does not validate");
  const mqtt = { type: "mqtt", host: "broker:1883", port: 1883, topic: "t", client_id: "c", publish_interval: 0 } as const;
  expect(mergeSinkDetails("mqtt", mqtt, { topic: "u" }).details).toEqual({ ...mqtt, topic: "u" });
  expect(() => mergeSinkDetails("mqtt", mqtt, { publish_interval: 0 })).toThrow("does not validate");
});
