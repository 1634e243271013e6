import { readFile } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startBroker, type TestBroker } from "../../../test/support/broker.ts";
import { type CertificateFiles, createAuthority, type TestAuthority } from "../../../test/support/certificates.ts";
import { type ConnectProxy, startConnectProxy } from "../../../test/support/connect-proxy.ts";
import { type SocksProxy, startSocksProxy } from "../../../test/support/socks-proxy.ts";
import { startWebSocketServer } from "../../../test/support/websocket-server.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { silentLog } from "../../model/context.ts";
import { ReasonError } from "../../model/reason.ts";
import { userSecretName } from "../../model/sink-details.ts";
import { SINKS } from "../index.ts";
import type { Sink } from "../sink.ts";

const PASSWORD = "canary-proxy-password";
const AUTHORIZATION = `Basic ${Buffer.from(`line-3:${PASSWORD}`).toString("base64")}`;

let authority: TestAuthority;
let own: CertificateFiles;
let client: CertificateFiles;
let broker: TestBroker;
let http: ConnectProxy;
let socks: SocksProxy;
const undo: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  [own, client] = await Promise.all([authority.issue("own", "DNS:broker.test"), authority.issue("client", "DNS:collector")]);
  const tls = await serverTls();
  broker = await startBroker({ tls, user: { name: "line-3", password: "canary-broker-password" } });
  [http, socks] = await Promise.all([
    startConnectProxy(broker.port, AUTHORIZATION),
    startSocksProxy(broker.port, { name: "line-3", password: PASSWORD }),
  ]);
  http.behave("wants_user");
});
afterAll(() => Promise.all([broker.stop(), http.close(), socks.stop(), authority.remove()]));
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const serverTls = async () => ({
  cert: await readFile(own.cert),
  key: await readFile(own.key),
  ca: await readFile(authority.ca),
  requestCert: true,
  rejectUnauthorized: true,
  ALPNProtocols: ["mqtt", "http/1.1"],
});

/** `secret`: of the proxy's user. The broker's name is in no name server. */
async function open(settings: object, secret: string | undefined = PASSWORD): Promise<Sink> {
  const secrets = { password: "canary-broker-password", ...(secret !== undefined && { [userSecretName("line-3")]: secret }) };
  const tls = { ca_file: authority.ca, cert_file: client.cert, key_file: client.key, alpn: "mqtt" };
  const spec = {
    uuid: "7e0d3c5a-0000-4000-8000-000000000001",
    name: "plant",
    type: "mqtt",
    details: { type: "mqtt", host: "broker.test", port: 8883, topic: "plant/{source}" },
    settings: { username: "line-3", tls, connect_timeout: "2s", ...settings },
    secrets,
    publishIntervalUnit: "seconds" as const,
  };
  const { kind, ...input } = await prepareSink(spec, SINKS);
  const sink = await kind.open({ ...spec, ...input, secrets }, { signal: new AbortController().signal, log: silentLog });
  undo.push(() => sink.close());
  return sink;
}
const failure = async (work: Promise<unknown>): Promise<ReasonError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ReasonError)) throw new Error("it was opened, or failed without a reason");
  expect([error.message, error.nextStep, error.stack].join(" ")).not.toContain("canary");
  return error;
};
const isOnline = () => broker.retained.get("plant/status");

test("a proxy by HTTP CONNECT: TLS with both certificates and ALPN goes through it, and the proxy looks the name up", async () => {
  const sink = await open({ proxy: `http://line-3@127.0.0.1:${http.port}` });
  await expect.poll(isOnline).toBe('{"state":"online"}');
  expect([http.asked.at(-1), http.credentials.at(-1)]).toEqual(["broker.test:8883", AUTHORIZATION]);
  await sink.close();
  await expect.poll(isOnline).toBe('{"state":"offline"}');
});

test("a proxy by SOCKS5: the same", async () => {
  await open({ proxy: `socks5://line-3@127.0.0.1:${socks.port}` });
  await expect.poll(isOnline).toBe('{"state":"online"}');
  expect([socks.asked.at(-1), socks.credentials.at(-1)]).toEqual(["broker.test:8883", `line-3:${PASSWORD}`]);
});

test("WebSocket in TLS goes through a proxy", async () => {
  const plain = await startBroker();
  undo.push(() => plain.stop());
  const server = await startWebSocketServer({ target: plain.port, tls: await serverTls() });
  undo.push(() => server.stop());
  const proxy = await startConnectProxy(server.port);
  undo.push(() => proxy.close());
  await open({
    proxy: `http://127.0.0.1:${proxy.port}`,
    websocket_path: "/mqtt",
    tls: { ca_file: authority.ca, cert_file: client.cert, key_file: client.key },
  });
  expect(server.heads[0]).toMatch(/^GET \/mqtt HTTP\/1\.1\r\n(.*\r\n)*host: broker\.test:8883\r\n/i);
  await expect.poll(() => plain.retained.get("plant/status")).toBe('{"state":"online"}');
});

test("a broker with another certificate than its own gets nothing through a proxy", async () => {
  const before = broker.connections();
  const error = await failure(
    open({ proxy: `http://line-3@127.0.0.1:${http.port}`, tls: { ca_file: authority.ca, server_name: "other.test" } }),
  );
  expect([error.condition, error.message]).toEqual([
    "certificate_refused",
    expect.stringMatching(/certificate of broker\.test:8883 is for another name/),
  ]);
  expect(broker.connections()).toBe(before);
});

test("a wrong password of the proxy is a failure of the proxy, not of the broker", async () => {
  const error = await failure(open({ proxy: `http://line-3@127.0.0.1:${http.port}` }, "canary-wrong"));
  expect([error.condition, error.message]).toEqual([
    "proxy_fails",
    expect.stringMatching(/the proxy http:\/\/127\.0\.0\.1:\d+: .*407.*secret set NAME\/users\/USER/),
  ]);
});

test("a user at the broker needs TLS behind a proxy, which would see the password", async () => {
  await expect(open({ proxy: `http://127.0.0.1:${http.port}`, tls: undefined })).rejects.toThrow(/proxy: the proxy would see the password/);
  await expect(open({ proxy: "http://a:canary@127.0.0.1" })).rejects.toThrow(/sinks\.plant\.proxy: holds a password; (?!.*canary)/);
});
