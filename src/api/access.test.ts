import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { settingsSchema } from "../model/settings.ts";
import { apiAccess, personalAccess, requesterAccess } from "./access.ts";

const STATE = "/var/lib/collector";
const settings = (given: object) => settingsSchema.parse(given);
const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";

test("the embedded API is asked on loopback with the collector's key, by a person with the admin's", () => {
  const access = apiAccess(settings({}), STATE);
  expect(access).toEqual({
    url: "http://127.0.0.1:8420",
    keyFile: `${STATE}/keys/collector.key`,
    authorization: "bare",
    insecure: false,
    embedded: true,
  });
  expect(personalAccess(settings({}), STATE, undefined)).toEqual({ ...access, keyFile: `${STATE}/keys/admin.key` });
  expect(personalAccess(settings({}), STATE, "/home/me/key").keyFile).toBe("/home/me/key");
});

test("where other machines reach it the embedded API is asked on its socket", () => {
  const tls = { cert_file: "/c", key_file: "/k" };
  const at = (embedded_api: object) => apiAccess(settings({ embedded_api }), STATE);
  expect(at({ listen: "127.0.0.1:9", tls })).toMatchObject({ url: "https://127.0.0.1:9", socketFile: `${STATE}/api.sock` });
  expect(at({ listen: "0.0.0.0:9", insecure: true })).toMatchObject({ url: "http://0.0.0.0:9", socketFile: `${STATE}/api.sock` });
  for (const listen of ["127.0.0.1:9", "[::1]:9"]) expect(at({ listen })).not.toHaveProperty("socketFile");
});

test("another API is asked as the settings say, with one key for the collector and for people", () => {
  const api = { url: "https://platform.example/api", key_file: "/etc/key", ca: "/etc/ca.pem", authorization: "bearer" };
  const given = settings({ collector: COLLECTOR, api });
  const access = apiAccess(given, STATE);
  expect(access).toEqual({
    url: api.url,
    keyFile: "/etc/key",
    caFile: "/etc/ca.pem",
    authorization: "bearer",
    insecure: false,
    embedded: false,
  });
  expect(personalAccess(given, STATE, undefined)).toEqual(access);
  expect(personalAccess(given, STATE, "/home/me/key")).toEqual({ ...access, keyFile: "/home/me/key" });
});

test("keys are read again for each request, authorities at once and named where they cannot be", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-access-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [keyFile, caFile] = [path.join(folder, "key"), path.join(folder, "ca.pem")];
  const access = { url: "https://platform.example", keyFile, insecure: false, embedded: false };
  const { readKey } = requesterAccess(access);
  for (const key of ["one", "two"]) {
    writeFileSync(keyFile, key);
    expect(await readKey()).toBe(key);
  }
  expect(() => requesterAccess({ ...access, caFile })).toThrow(`api.ca: ${caFile} does not exist`);
  writeFileSync(caFile, "PEM");
  expect(requesterAccess({ ...access, caFile }).ca).toBe("PEM");
});
