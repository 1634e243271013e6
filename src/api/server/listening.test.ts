import { readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createApiClient } from "../client.ts";
import { parseListen } from "./listening.ts";
import { startApiServer } from "./server.ts";
import { COLLECTOR, recordingLog, temporaryFolder } from "./testing.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./testing-certificates.ts";

function options(folder: string) {
  return {
    databaseFile: join(folder, "c.db"),
    keysDir: join(folder, "keys"),
    listen: "127.0.0.1:0",
    collector: COLLECTOR,
    readoutIntervalUnit: "seconds",
    publishIntervalUnit: "seconds",
    values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
    version: "0",
    log: recordingLog(),
  } as const;
}

function tlsFiles(folder: string) {
  const files = { certFile: join(folder, "api.crt"), keyFile: join(folder, "api.key") };
  writeFileSync(files.certFile, TEST_CERTIFICATE);
  writeFileSync(files.keyFile, TEST_KEY);
  return files;
}

test("another address than loopback needs a certificate or a decision, and either will do", () => {
  const listen = "0.0.0.0:8420";
  expect(() => parseListen(listen, { tls: false, insecure: false })).toThrow(/embedded_api\.listen: "0\.0\.0\.0:8420".*embedded_api\.tls/);
  for (const secured of [
    { tls: true, insecure: false },
    { tls: false, insecure: true },
  ])
    expect(parseListen(listen, secured)).toEqual({ host: "0.0.0.0", port: 8420 });
  expect(parseListen("[::1]:1", { tls: false, insecure: false })).toEqual({ host: "::1", port: 1 });
});

test("with a certificate it speaks TLS and nothing else, and the collector beside it asks on the socket", async () => {
  const folder = temporaryFolder();
  const socketFile = join(folder, "api.sock");
  const server = await startApiServer({ ...options(folder), tls: tlsFiles(folder), socketFile });
  expect(server.url).toMatch(/^https:/);
  const key = readFileSync(server.keyFiles.collector, "utf8").trim();
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const ask = httpsRequest(`${server.url}/api/v2/sites`, { ca: TEST_CERTIFICATE, headers: { authorization: key } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    ask.on("error", reject).end();
  });
  expect(status).toBe(200);
  const plain = await new Promise<string>((resolve) => {
    const ask = httpRequest(server.url.replace("https", "http"), (response) => resolve(String(response.statusCode)));
    ask.on("error", (error) => resolve(error.message)).end();
  });
  expect(plain).not.toMatch(/^[2345]\d\d$/);

  const never = new AbortController().signal;
  const client = createApiClient({
    url: server.url,
    socketPath: socketFile,
    collector: COLLECTOR,
    readKey: () => key,
    log: recordingLog(),
  });
  expect(await client.pull(null, never)).toMatchObject({ type: "configuration" });
  expect(await client.secrets(never)).toEqual({});
  // On the network, the same certificate is trusted where its authority is named, and refused where not.
  const trusting = createApiClient({
    url: server.url,
    ca: TEST_CERTIFICATE,
    collector: COLLECTOR,
    readKey: () => key,
    log: recordingLog(),
  });
  expect(await trusting.pull(null, never)).toMatchObject({ type: "configuration" });
  const other = createApiClient({ url: server.url, collector: COLLECTOR, readKey: () => key, log: recordingLog() });
  expect(await other.pull(null, never)).toMatchObject({ type: "failed", kind: "tls" });
  for (const one of [client, trusting, other]) one.close();
  await server.close();
});

test("what is wrong with certificate or socket is said by its setting", async () => {
  const folder = temporaryFolder();
  const files = tlsFiles(folder);
  await expect(startApiServer({ ...options(folder), tls: { ...files, certFile: join(folder, "none") } })).rejects.toThrow(
    "embedded_api.tls.cert_file",
  );
  writeFileSync(files.keyFile, "no key");
  await expect(startApiServer({ ...options(folder), tls: files })).rejects.toThrow();
  await expect(startApiServer({ ...options(folder), socketFile: join(folder, "x".repeat(110)) })).rejects.toThrow("too long for a socket");
  // Nothing of the failed starts is left: the same files serve.
  await (await startApiServer(options(folder))).close();
});
