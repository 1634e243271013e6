import { execFile } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type CertificateFiles, createAuthority, type TestAuthority } from "../../test/support/certificates.ts";
import { type ProxyManner, startConnectProxy } from "../../test/support/connect-proxy.ts";
import type { ApiAccess } from "../model/api-access.ts";
import { requesterAccess } from "./access.ts";
import { type ApiAnswer, createRequester } from "./requester.ts";
import { temporaryFolder } from "./server/testing.ts";
import { json, scripted } from "./server/testing-scripted.ts";

const run = promisify(execFile);
const PASSWORD = "Canary-proxy-77";
const KEY = "Canary-key-8d01c4";
const FAST = { connectMs: 700, headersMs: 700, idleMs: 700, totalMs: 2000 };
const never = new AbortController().signal;
let authority: TestAuthority;
let files: CertificateFiles;
let own: CertificateFiles;

beforeAll(async () => {
  authority = await createAuthority();
  files = await authority.issue("platform", "DNS:platform.example,IP:127.0.0.1");
  own = await authority.issue("collector", "DNS:collector.example");
});
afterAll(() => authority.remove());

const tlsOf = ({ key, cert }: CertificateFiles) => ({ key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") });

/** An API behind TLS and what asks it as the settings would have it. */
async function reached({ via, more = {}, plain = false }: { via?: "proxy"; more?: Partial<ApiAccess>; plain?: boolean } = {}) {
  const api = await scripted((_, response) => json(response, { ok: 1 }), plain ? undefined : tlsOf(files));
  const port = Number(new URL(api.url).port);
  const proxy = await startConnectProxy(port, `Basic ${btoa(`user:${PASSWORD}`)}`);
  onTestFinished(proxy.close);
  const folder = temporaryFolder();
  const [keyFile, passwordFile] = [join(folder, "key"), join(folder, "password")];
  writeFileSync(keyFile, KEY);
  writeFileSync(passwordFile, PASSWORD);
  const access: ApiAccess = {
    url: via ? `${plain ? "http" : "https"}://platform.example` : api.url,
    keyFile,
    caFile: authority.ca,
    insecure: plain,
    embedded: false,
    ...(via && { proxy: { url: `http://user@127.0.0.1:${proxy.port}`, passwordFile } }),
    ...more,
  };
  const requester = createRequester({ ...requesterAccess(access), timeouts: FAST });
  onTestFinished(() => requester.close());
  const ask = (signal: AbortSignal = never): Promise<ApiAnswer> =>
    requester.send({ method: "GET", path: "/v2/sites", maxBytes: 2 ** 20, signal });
  return { api, proxy, ask, folder, passwordFile, close: () => requester.close() };
}

test("through a proxy with a user, one tunnel is kept for several requests", async () => {
  const { api, proxy, ask } = await reached({ via: "proxy" });
  proxy.behave("wants_user");
  for (let i = 0; i < 3; i++) expect(await ask()).toMatchObject({ type: "json", value: { ok: 1 } });
  expect(proxy.asked).toEqual(["platform.example:443"]);
  expect(proxy.credentials).toEqual([`Basic ${btoa(`user:${PASSWORD}`)}`]);
  expect(api.keys).toEqual([KEY, KEY, KEY]);
});

test("a renewed password of the proxy is taken with the next request", async () => {
  const { proxy, ask, passwordFile } = await reached({ via: "proxy" });
  proxy.behave("wants_user");
  writeFileSync(passwordFile, "Canary-wrong");
  const refused = await ask();
  expect(refused).toMatchObject({ type: "failed", message: expect.stringContaining("does not accept the user or its password (407)") });
  expect(JSON.stringify(refused)).not.toContain("Canary");
  writeFileSync(passwordFile, PASSWORD);
  expect(await ask()).toMatchObject({ type: "json" });
});

test("the environment's proxy is used, but for what NO_PROXY names", async () => {
  const { proxy, ask } = await reached({ via: "proxy", more: { proxy: undefined } });
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ["https_proxy", "no_proxy", "NO_PROXY"]) vi.stubEnv(name, "");
  vi.stubEnv("HTTPS_PROXY", `http://user:${PASSWORD}@127.0.0.1:${proxy.port}`);
  expect(await ask()).toMatchObject({ type: "json" });
  expect(proxy.asked).toEqual(["platform.example:443"]);
  vi.stubEnv("NO_PROXY", ".example");
  expect(await ask()).toMatchObject({ type: "failed", kind: "unreachable" });
  expect(proxy.asked).toHaveLength(1);
});

test("an API over plain http is asked for by its whole address", async () => {
  const { api, proxy, ask } = await reached({ via: "proxy", plain: true });
  expect(await ask()).toMatchObject({ type: "json" });
  expect(proxy.asked).toEqual(["http://platform.example/api/v2/sites"]);
  expect(api.keys).toEqual([KEY]);
  proxy.behave("forbids");
  expect(await ask()).toMatchObject({ type: "failed", status: 403 });
});

test.each<[ProxyManner, string]>([
  ["forbids", "does not open the way to the API: it answered 403"],
  ["silent", "no connection through the proxy 127.0.0.1"],
  ["endless", "HPE_HEADER_OVERFLOW"],
  ["no_http", "does not speak HTTP"],
  ["hangs_up", "the proxy 127.0.0.1"],
])("a proxy that %s is one failure, in time and without its password", async (manner, words) => {
  const { proxy, ask } = await reached({ via: "proxy" });
  proxy.behave(manner);
  const answer = await ask();
  expect(answer).toMatchObject({ type: "failed", message: expect.stringContaining(words) });
  expect(JSON.stringify(answer)).not.toMatch(/Canary|Basic /);
  // Nothing of it stays open, and the next tunnel is not affected.
  await expect.poll(proxy.open).toBe(0);
  proxy.behave("serves");
  expect(await ask()).toMatchObject({ type: "json" });
});

test("a stop ends the wait for a proxy at once", async () => {
  const { proxy, ask, close } = await reached({ via: "proxy" });
  proxy.behave("silent");
  const stop = new AbortController();
  const answer = ask(stop.signal);
  await expect.poll(proxy.open).toBe(1);
  stop.abort();
  expect(await answer).toMatchObject({ type: "failed", kind: "aborted" });
  close();
  await expect.poll(proxy.open, { timeout: 400 }).toBe(0);
});

test("a tunnel that the proxy closes while it is idle costs no request", async () => {
  const { proxy, ask } = await reached({ via: "proxy" });
  expect(await ask()).toMatchObject({ type: "json" });
  const port = proxy.port;
  await proxy.close();
  expect(await ask()).toMatchObject({
    type: "failed",
    message: expect.stringContaining(`the proxy 127.0.0.1:${port}: connection refused`),
  });
});

test("an authority that is renewed, missing or damaged is said by its setting, and taken again without a restart", async () => {
  const { ask, folder } = await reached();
  expect(await ask()).toMatchObject({ type: "json" });
  const caFile = join(folder, "ca.pem");
  const another = await reached({ more: { caFile } });
  expect(await another.ask()).toMatchObject({ type: "failed", kind: "route_unusable", message: expect.stringContaining("does not exist") });
  writeFileSync(caFile, "");
  expect(await another.ask()).toMatchObject({
    kind: "route_unusable",
    message: expect.stringContaining(`api.tls.ca_file: ${caFile} is empty`),
  });
  copyFileSync(own.cert, caFile);
  expect(await another.ask()).toMatchObject({ kind: "tls" });
  copyFileSync(authority.ca, caFile);
  expect(await another.ask()).toMatchObject({ type: "json" });
  writeFileSync(caFile, "no certificate");
  expect(await another.ask()).toMatchObject({ kind: "route_unusable" });
});

test("an authority of the system is trusted beside Node's", async () => {
  const api = await scripted((_, response) => json(response, { ok: 1 }), tlsOf(files));
  const ask = async (SSL_CERT_FILE: string): Promise<string> => {
    const script = `
      const { createRequester } = await import(${JSON.stringify(new URL("requester.ts", import.meta.url).href)});
      const requester = createRequester({ url: "${api.url}", readKey: () => "k", insecure: false, timeouts: ${JSON.stringify(FAST)} });
      const answer = await requester.send({ method: "GET", path: "/v2/sites", maxBytes: 1000, signal: new AbortController().signal });
      requester.close();
      console.log(answer.kind ?? answer.type);`;
    const env = { PATH: process.env["PATH"], SSL_CERT_FILE };
    const { stdout } = await run("bin/collector-node", ["--input-type=module", "-e", script], { env });
    return stdout.trim();
  };
  expect(await Promise.all([ask(authority.ca), ask(own.cert)])).toEqual(["json", "tls"]);
});

test("an API that asks for a certificate is shown the collector's", async () => {
  const asking = { ...tlsOf(files), ca: readFileSync(authority.ca), requestCert: true, rejectUnauthorized: true };
  const api = await scripted((_, response) => json(response, { ok: 1 }), asking);
  const certificate = { certFile: own.cert, keyFile: own.key };
  const shown = await reached({ more: { url: api.url, certificate } });
  expect(await shown.ask()).toMatchObject({ type: "json" });
  const none = await reached({ more: { url: api.url } });
  expect(await none.ask()).toMatchObject({ type: "failed", message: expect.stringContaining("api.tls.cert_file") });
  const mixed = await reached({ more: { url: api.url, certificate: { certFile: own.cert, keyFile: files.key } } });
  expect(await mixed.ask()).toMatchObject({ kind: "route_unusable", message: expect.stringContaining("cannot be used together") });
});
