import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { settingsSchema } from "../model/settings.ts";
import { apiAccess, personalAccess, requesterAccess } from "./access.ts";
import { EXPIRED_CERTIFICATE, TEST_CERTIFICATE, TEST_KEY } from "./server/testing-certificates.ts";

const STATE = "/var/lib/collector";
const settings = (given: object) => settingsSchema.parse(given);
const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";

test("the embedded API is asked with the collector's key, by a person with the admin's", () => {
  const access = apiAccess(settings({}), STATE);
  expect(access).toEqual({
    url: "http://127.0.0.1:8420",
    keyFile: `${STATE}/keys/collector.key`,
    authorization: "bare",
    socketFile: `${STATE}/api.sock`,
    insecure: false,
    embedded: true,
  });
  expect(personalAccess(settings({}), STATE, undefined)).toEqual({ ...access, keyFile: `${STATE}/keys/admin.key` });
  expect(personalAccess(settings({}), STATE, "/home/me/key").keyFile).toBe("/home/me/key");
});

test("the embedded API is asked on its socket, wherever it listens", () => {
  const tls = { cert_file: "/c", key_file: "/k" };
  for (const embedded_api of [{ listen: "127.0.0.1:9" }, { listen: "[::1]:9", tls }, { listen: "0.0.0.0:9", insecure: true }])
    expect(apiAccess(settings({ embedded_api }), STATE)).toMatchObject({ socketFile: `${STATE}/api.sock`, embedded: true });
});

test("another API is asked as the settings say, with one key for the collector and for people", () => {
  const api = {
    url: "https://platform.example/api",
    key_file: "/etc/key",
    authorization: "bearer",
    tls: { ca_file: "/etc/ca.pem", cert_file: "/etc/c.pem", key_file: "/etc/c.key" },
    proxy: "http://user@proxy.example:3128",
    proxy_password_file: "/etc/proxy",
  };
  const given = settings({ collector: COLLECTOR, api });
  const access = apiAccess(given, STATE);
  expect(access).toEqual({
    url: api.url,
    keyFile: "/etc/key",
    caFile: "/etc/ca.pem",
    certificate: { certFile: "/etc/c.pem", keyFile: "/etc/c.key" },
    proxy: { url: "http://user@proxy.example:3128", passwordFile: "/etc/proxy" },
    authorization: "bearer",
    insecure: false,
    embedded: false,
  });
  expect(personalAccess(given, STATE, undefined)).toEqual(access);
  expect(personalAccess(given, STATE, "/home/me/key")).toEqual({ ...access, keyFile: "/home/me/key" });
});

function temporary() {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-access-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [keyFile, caFile, certFile, certKey, passwordFile] = ["key", "ca.pem", "c.pem", "c.key", "password"].map((name) =>
    path.join(folder, name),
  );
  if (!keyFile || !caFile || !certFile || !certKey || !passwordFile) throw new Error("five names");
  const access = { url: "https://platform.example", keyFile, insecure: false, embedded: false };
  return { keyFile, caFile, certFile, certKey, passwordFile, access };
}

test("keys and authorities are read again for each request, and said by their setting where they cannot be used", async () => {
  const { keyFile, caFile, access } = temporary();
  const { readKey } = requesterAccess(access);
  for (const key of ["one", "two"]) {
    writeFileSync(keyFile, key);
    expect(await readKey()).toBe(key);
  }
  const { readRoute } = requesterAccess({ ...access, caFile });
  const cut = TEST_CERTIFICATE.slice(0, 200);
  for (const [content, words] of [
    [undefined, "does not exist"],
    ["", "is empty"],
    ["no certificate", "holds no certificate in PEM"],
    [cut, "certificate 1 in it is damaged"],
    [`${TEST_CERTIFICATE}${cut}`, "certificate 2 in it is damaged"],
  ] as const) {
    if (content !== undefined) writeFileSync(caFile, content);
    expect(readRoute).toThrow(new RegExp(`^api\\.tls\\.ca_file: .*${words}`));
  }
  for (const content of [TEST_CERTIFICATE, TEST_CERTIFICATE + EXPIRED_CERTIFICATE]) {
    writeFileSync(caFile, content);
    expect(readRoute().ca).toBe(content);
  }
});

test("the certificate of this collector and the proxy's password come from their files, and no error holds a secret", () => {
  const { certFile, certKey, passwordFile, access } = temporary();
  const withCertificate = requesterAccess({ ...access, certificate: { certFile, keyFile: certKey } }).readRoute;
  expect(withCertificate).toThrow("api.tls.cert_file: ");
  writeFileSync(certFile, TEST_CERTIFICATE);
  writeFileSync(certKey, "canary-key");
  expect(withCertificate).toThrow(/^api\.tls\.key_file: (?!.*canary).* holds no private key in PEM/);
  writeFileSync(certKey, TEST_KEY);
  expect(withCertificate()).toMatchObject({ cert: TEST_CERTIFICATE, key: TEST_KEY });

  const proxied = requesterAccess({ ...access, proxy: { url: "http://user@proxy.example:3128", passwordFile } }).readRoute;
  expect(proxied).toThrow("api.proxy_password_file: ");
  writeFileSync(passwordFile, "\n");
  expect(proxied).toThrow("is empty");
  writeFileSync(passwordFile, "canary:1\n");
  expect(proxied().proxy).toMatchObject({ name: "proxy.example:3128", authorization: `Basic ${btoa("user:canary:1")}` });
  expect(requesterAccess({ ...access, embedded: true, proxy: { url: "http://proxy.example" } }).readRoute()).toEqual({});
});
