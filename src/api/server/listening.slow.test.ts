import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { createAuthority } from "../../../test/support/certificates.ts";
import { ApiClient } from "../client.ts";
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
  expect(plain).toBe("400");

  const never = new AbortController().signal;
  const client = new ApiClient({
    url: server.url,
    socketPath: socketFile,
    collector: COLLECTOR,
    readKey: () => key,
    log: recordingLog(),
  });
  expect(await client.pull(null, never)).toMatchObject({ type: "configuration" });
  expect(await client.secrets(never)).toEqual({});
  // On the network, the same certificate is trusted where its authority is named, and refused where not.
  const trusting = new ApiClient({
    url: server.url,
    readRoute: () => ({ ca: TEST_CERTIFICATE }),
    collector: COLLECTOR,
    readKey: () => key,
    log: recordingLog(),
  });
  expect(await trusting.pull(null, never)).toMatchObject({ type: "configuration" });
  const other = new ApiClient({ url: server.url, collector: COLLECTOR, readKey: () => key, log: recordingLog() });
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

/** What the API presents to a new handshake. */
const subjectOf = (port: number, ca: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connectTls({ host: "127.0.0.1", port, ca: readFileSync(ca), servername: "localhost" }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once("error", reject);
  });

test("a renewed certificate is taken over without a restart, a broken one is said once and the one before stays", async () => {
  const authority = await createAuthority();
  onTestFinished(() => authority.remove());
  const [first, second] = [
    await authority.issue("first", "IP:127.0.0.1,DNS:localhost"),
    await authority.issue("second", "IP:127.0.0.1,DNS:localhost"),
  ];
  const folder = temporaryFolder();
  const files = { certFile: join(folder, "api.crt"), keyFile: join(folder, "api.key") };
  const place = (cert: string, key: string) => {
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
  };
  const [one, two] = [first, second].map(({ cert, key }) => [readFileSync(cert, "utf8"), readFileSync(key, "utf8")] as const);
  if (!one || !two) throw new Error("no certificates");
  place(...one);
  const log = recordingLog();
  const server = await startApiServer({ ...options(folder), tls: files, certificateEveryMs: 20, log });
  onTestFinished(() => server.close());
  const port = Number(new URL(server.url).port);
  expect(await subjectOf(port, authority.ca)).toBe("first");
  const said = (text: string) => log.lines.filter((line) => line.includes(text)).length;

  // Half of it: the key of another certificate.
  place(two[0], one[1]);
  await expect.poll(() => said("cannot be used, the one before stays")).toBe(1);
  expect(await subjectOf(port, authority.ca)).toBe("first");
  place("no certificate", two[1]);
  await expect.poll(() => said("cannot be used, the one before stays")).toBe(2);
  rmSync(files.keyFile);
  await expect.poll(() => said("embedded_api.tls.key_file")).toBe(1);
  await delay(100);
  expect([said("cannot be used, the one before stays"), await subjectOf(port, authority.ca)]).toEqual([3, "first"]);
  place(...two);
  await expect.poll(() => said("uses its new certificate")).toBe(1);
  expect(await subjectOf(port, authority.ca)).toBe("second");
  expect(log.lines.join("\n")).not.toContain("PRIVATE KEY");
});

test("who comes without TLS is told so; who says nothing, little or nonsense holds nothing", async () => {
  const folder = temporaryFolder();
  const server = await startApiServer({ ...options(folder), tls: tlsFiles(folder) });
  const port = Number(new URL(server.url).port);
  const send = (bytes: string | Buffer | undefined): Promise<string> =>
    new Promise((resolve) => {
      let answer = "";
      const socket = connect({ host: "127.0.0.1", port }, () => bytes !== undefined && socket.write(bytes));
      socket.setEncoding("utf8").on("data", (text) => {
        answer += text;
      });
      socket.on("error", () => {}).on("close", () => resolve(answer));
    });
  expect(await send("GET /api/v2/sites HTTP/1.1\r\nHost: x\r\nAuthorization: canary\r\n\r\n")).toMatch(
    /^HTTP\/1\.1 400 .*"detail":"this port speaks TLS: ask with https"\}$/s,
  );
  expect(await send("x")).toContain("ask with https");
  // A handshake that is none is TLS's own matter: an alert, no HTTP.
  expect(await send(Buffer.from([0x16, 9, 9, 0, 5, 9, 9, 9, 9, 9]))).not.toContain("HTTP");
  const silent = send(undefined);
  const begun = send(Buffer.from([0x16]));
  await delay(100);
  await server.close();
  expect(await Promise.all([silent, begun])).toEqual(["", ""]);
});

test("a handshake in small pieces is a handshake all the same", async () => {
  const folder = temporaryFolder();
  const server = await startApiServer({ ...options(folder), tls: tlsFiles(folder) });
  onTestFinished(() => server.close());
  const port = Number(new URL(server.url).port);
  // Between client and API, something that passes on byte by byte.
  const slow = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    near.on("data", (chunk) => {
      near.pause();
      void (async () => {
        for (const byte of chunk.subarray(0, 40)) {
          far.write(Buffer.from([byte]));
          await delay(1);
        }
        far.write(chunk.subarray(40));
        near.resume();
      })();
    });
    far.on("data", (chunk) => near.write(chunk));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on("close", () => other.destroy()).on("error", () => {});
  });
  await new Promise<void>((ready) => slow.listen(0, "127.0.0.1", ready));
  onTestFinished(() => void slow.close());
  const through = (slow.address() as AddressInfo).port;
  const key = readFileSync(server.keyFiles.admin, "utf8").trim();
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const ask = httpsRequest(
      { host: "127.0.0.1", port: through, path: "/api/v2/sites", ca: TEST_CERTIFICATE, headers: { authorization: key }, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    ask.on("error", reject).end();
  });
  expect(status).toBe(200);
});
