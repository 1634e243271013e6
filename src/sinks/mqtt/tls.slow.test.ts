import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import type { TlsOptions } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startBroker } from "../../../test/support/broker.ts";
import { type CertificateFiles, createAuthority, type TestAuthority } from "../../../test/support/certificates.ts";
import { startRawBroker } from "../../../test/support/raw-broker.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { silentLog } from "../../model/context.ts";
import type { ReasonError } from "../../model/reason.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { SINKS } from "../index.ts";
import { type TlsSettings, tlsReason } from "../lib/tls.ts";
import { connectMqtt } from "./connect.ts";

let authority: TestAuthority;
let other: TestAuthority;
let good: CertificateFiles;
let expired: CertificateFiles;
let elsewhere: CertificateFiles;
let client: CertificateFiles;
let stranger: CertificateFiles;
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [authority, other] = await Promise.all([createAuthority(), createAuthority()]);
  [good, expired, elsewhere, client, stranger] = await Promise.all([
    authority.issue("good", "IP:127.0.0.1"),
    authority.issue("expired", "IP:127.0.0.1", "expired"),
    authority.issue("elsewhere", "DNS:broker.test"),
    authority.issue("client", "DNS:collector"),
    other.issue("stranger", "DNS:collector"),
  ]);
});
afterAll(() => Promise.all([authority.remove(), other.remove()]));
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function broker(files: CertificateFiles, more: TlsOptions = {}) {
  const started = await startBroker({ tls: { cert: await readFile(files.cert), key: await readFile(files.key), ...more } });
  undo.push(() => started.stop());
  return started;
}
const open = async (port: number, tls: TlsSettings | undefined) => {
  const connection = await connectMqtt(
    {
      host: "127.0.0.1",
      port,
      clientId: "test",
      username: undefined,
      password: undefined,
      tls,
      connectTimeoutMs: 1000,
      publishTimeoutMs: 2000,
      keepaliveS: 30,
      window: 4,
      will: { topic: "status", payload: "offline" },
    },
    { signal: new AbortController().signal, log: silentLog },
  );
  undo.push(() => connection.close());
  return connection;
};
const failure = (work: Promise<unknown>): Promise<ReasonError> =>
  work.then(
    () => Promise.reject(new Error("it was opened")),
    (error: ReasonError) => error,
  );
const mutual = async () => broker(good, { requestCert: true, rejectUnauthorized: true, ca: await readFile(authority.ca) });

test("publishes over TLS where the broker's certificate is good", async () => {
  const far = await broker(good);
  const connection = await open(far.port, { ca_file: authority.ca });
  expect(await connection.publish("a", "1", false)).toEqual({ type: "accepted" });
  expect(far.received.map(({ payload }) => payload)).toEqual(["1"]);
});

test("server_name is checked instead of the host", async () => {
  const far = await broker(elsewhere);
  await open(far.port, { ca_file: authority.ca, server_name: "broker.test" });
  const error = await failure(open(far.port, { ca_file: authority.ca, server_name: "other.test" }));
  expect([error.condition, error.message]).toEqual([
    "certificate_refused",
    expect.stringMatching(/another name.*other\.test.*tls\.server_name/),
  ]);
});

test("ALPN names the application protocol, and one that the broker does not know is an error with the setting", async () => {
  const far = await broker(good, { ALPNProtocols: ["mqtt"] });
  const connection = await open(far.port, { ca_file: authority.ca, alpn: "mqtt" });
  expect(await connection.publish("a", "1", false)).toEqual({ type: "accepted" });
  const wrong = await failure(open(far.port, { ca_file: authority.ca, alpn: "x-amzn-mqtt-ca" }));
  expect([wrong.condition, wrong.message]).toEqual([
    "server_refuses",
    expect.stringMatching(/does not know the application protocol "x-amzn-mqtt-ca"; correct tls\.alpn of this sink/),
  ]);
});

test("both sides show a certificate", async () => {
  const far = await mutual();
  const connection = await open(far.port, { ca_file: authority.ca, cert_file: client.cert, key_file: client.key });
  expect(await connection.publish("a", "1", false)).toEqual({ type: "accepted" });
});

test("an expired certificate, another name, an unknown authority and one of our own are told apart", async () => {
  const told = async (far: { readonly port: number }, tls: TlsSettings) => {
    const { condition, message, reason } = await failure(open(far.port, tls));
    expect(reason).toEqual({ type: "UNKNOWN" });
    return [condition, message];
  };
  const refused = (words: RegExp) => ["certificate_refused", expect.stringMatching(words)];
  const ca = { ca_file: authority.ca };
  expect(await told(await broker(expired), ca)).toEqual(refused(/127\.0\.0\.1:\d+ has expired; renew it on the broker/));
  expect(await told(await broker(elsewhere), ca)).toEqual(refused(/for another name: .*127\.0\.0\.1.*set host or tls\.server_name/));
  expect(await told(await broker(good), {})).toEqual(refused(/authority that is not known here; name .*tls\.ca_file/));
  expect(await told(await broker(good), { ca_file: other.ca })).toEqual(refused(/not known here/));
});

test("a broker that closes on a missing or a wrong certificate of ours is told with the field", async () => {
  const ca = { ca_file: authority.ca };
  const { port } = await mutual();
  expect((await failure(open(port, ca))).message).toContain("tls.cert_file");
  expect((await failure(open(port, { ...ca, cert_file: stranger.cert, key_file: stranger.key }))).message).toContain(stranger.cert);
});

test.each([
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", {}, /wants a certificate of this collector; set tls\.cert_file/],
  ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", { cert_file: "/own.pem" }, /does not accept the certificate \/own\.pem/],
  ["ERR_SSL_WRONG_VERSION_NUMBER", {}, /does not speak TLS; correct the port/],
])("the alert %s is told in words", (code, settings, words) => {
  expect(tlsReason(Object.assign(new Error("x"), { code }), "h:8883", settings, "hall-3")?.message).toMatch(words);
});

test("the next step gives the sink a certificate that is not known here", () => {
  const stepFor = (code: string) => tlsReason(Object.assign(new Error("x"), { code }), "h:8883", {}, "hall-3")?.nextStep;
  const command = "as ca.pem, and type `sudo collector sink set hall-3 tls.ca_file=ca.pem`.";
  expect(stepFor("DEPTH_ZERO_SELF_SIGNED_CERT")).toBe(`Copy the server's certificate (PEM) from the server to this machine, ${command}`);
  expect(stepFor("SELF_SIGNED_CERT_IN_CHAIN")).toContain(`the certificate of the server's authority (PEM)`);
  expect(stepFor("CERT_HAS_EXPIRED")).toBeUndefined();
});

test("files that cannot be used are named with what is wrong", async () => {
  const far = await broker(good);
  const told = async (tls: TlsSettings) => {
    const { condition, message } = await failure(open(far.port, tls));
    return [condition, message];
  };
  const invalid = (words: RegExp) => ["configuration_invalid", expect.stringMatching(words)];
  expect(await told({ ca_file: "/nowhere/ca.pem" })).toEqual(invalid(/tls\.ca_file: \/nowhere\/ca\.pem: ENOENT/));
  const der = path.join(path.dirname(authority.ca), "der");
  await writeFile(der, Buffer.from([0x30, 0x82]));
  expect(await told({ ca_file: der })).toEqual(invalid(/it is not PEM/));
  expect(await told({ ca_file: authority.ca, cert_file: client.cert, key_file: good.key })).toEqual(
    invalid(/the key has to be the certificate's own/),
  );
});

/** As status and log show it. */
const stepOf = ({ reason, condition, message, nextStep }: ReasonError): string =>
  explainReason(reason, condition, { sinkType: "mqtt", detail: message, nextStep }).nextStep;

test("a port without TLS is told as such, and one that says nothing in time", async () => {
  const plain = await startBroker();
  undo.push(() => plain.stop());
  const error = await failure(open(plain.port, { ca_file: authority.ca }));
  expect(error.reason.type).toMatch(/CONNECTION_CLOSED|CONNECTION_RESET/);
  expect(error.message).toMatch(/in the TLS handshake; if it is a port without TLS, remove tls from this sink/);
  expect(stepOf(error)).toMatch(/^If it is a port without TLS, type `sudo collector sink set NAME tls=false`/);
  const silent = createServer((socket) => socket.on("error", () => {}).resume());
  await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
  undo.push(() => new Promise((done) => silent.close(done)));
  const address = silent.address();
  const late = await failure(open(address !== null && typeof address === "object" ? address.port : 0, {}));
  expect([late.reason.type, late.message]).toEqual(["TIMEOUT", expect.stringContaining("is it a port with TLS?")]);
  expect(stepOf(late)).toMatch(/^If it is a port without TLS, type `sudo collector sink set NAME tls=false`/);
});

test("a port with TLS is told as such where none is set", async () => {
  const secured = await broker(good);
  const closed = await failure(open(secured.port, undefined));
  expect(closed.message).toMatch(/closed the connection.*; if it is a port with TLS, set tls of this sink/);
  expect(stepOf(closed)).toMatch(/^If it is a port with TLS, type `sudo collector sink set NAME tls=true`/);
  expect(secured.received).toEqual([]);
  // RFC 8446, 6: a fatal alert, protocol_version.
  const alerting = await startRawBroker((_packet, socket) => socket.end(Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46])));
  undo.push(() => alerting.stop());
  const alerted = await failure(open(alerting.port, undefined));
  expect([alerted.condition, alerted.message]).toEqual(["protocol_violation", expect.stringMatching(/speaks TLS; set tls of this sink/)]);
  expect(stepOf(alerted)).toMatch(/^Type `sudo collector sink set NAME tls=true`/);
});

test.each([
  [{ tls: { cert_file: "/a.pem" } }, /tls: cert_file and key_file go together/],
  [{ tls: { ca_file: "ca.pem" } }, /tls\.ca_file: expected an absolute path/],
  [{ tls: { verify: false } }, /verify/],
])("the setting %j is refused in words", async (settings, words) => {
  const spec = {
    uuid: "u",
    name: "b",
    type: "mqtt",
    details: { type: "mqtt", host: "h", topic: "t" },
    settings,
    secrets: {},
    publishIntervalUnit: "seconds" as const,
  };
  await expect(prepareSink(spec, SINKS)).rejects.toThrow(words);
});
