import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../model/context.ts";
import { toPem } from "./certificate.ts";
import { DAY_MS } from "./make.ts";
import { createPki, keepRenewed } from "./pki.ts";
import { testCertificate } from "./testing.ts";

let dir: string;
beforeEach(() => {
  dir = path.join(mkdtempSync(path.join(os.tmpdir(), "collector-pki-")), "pki");
});
afterEach(() => rmSync(path.dirname(dir), { recursive: true, force: true }));
const open = () => createPki({ dir, installation: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33" });

describe("createPki", () => {
  it("writes nothing before it is asked for something", async () => {
    const pki = open();
    expect(readdirSync(path.dirname(dir))).toEqual([]);
    await pki.own();
    expect(readdirSync(dir)).toEqual(["own"]);
  });
});

describe("keepRenewed", () => {
  it("announces and renews although nobody asks for the certificate, and makes none", async () => {
    let nowMs = Date.now();
    const pki = createPki({ dir, installation: "x", now: () => nowMs });
    keepRenewed(pki, silentLog, 10);
    await new Promise((done) => setTimeout(done, 50));
    expect(pki.identity.look()).toBeUndefined();
    const { notAfter, thumbprint } = await pki.own();
    nowMs = notAfter - 60 * DAY_MS;
    await expect.poll(() => pki.identity.look()?.next !== undefined, { timeout: 10_000 }).toBe(true);
    nowMs = notAfter;
    await expect.poll(() => pki.identity.look()?.current.thumbprint, { timeout: 10_000 }).not.toBe(thumbprint);
  });

  it("says what is wrong, and goes on", async () => {
    const warnings: string[] = [];
    const pki = createPki({ dir, installation: "x" });
    const { certificateFile } = await pki.own();
    writeFileSync(certificateFile, "no certificate");
    keepRenewed(pki, { ...silentLog, warn: (_fields, message) => void warnings.push(message) }, 10);
    await expect.poll(() => warnings.length, { timeout: 10_000 }).toBeGreaterThan(1);
    expect(warnings[0]).toContain("pki renew --new-key");
  });
});

describe("user certificates", () => {
  const put = (name: string, text: string): void => {
    mkdirSync(path.join(dir, "users"), { recursive: true });
    writeFileSync(path.join(dir, "users", name), text);
  };

  it("are certificate and key of one name", async () => {
    const person = await testCertificate("person");
    put("anna.pem", toPem(person.der));
    put("anna.key.pem", person.keyPem);
    const user = await open().user("anna");
    expect(Buffer.from(user.certificate)).toEqual(Buffer.from(person.der));
    expect(user.privateKeyFile).toBe(path.join(dir, "users", "anna.key.pem"));
  });

  it("name the files that are missing and the command that brings them", async () => {
    await expect(open().user("anna")).rejects.toThrow(/missing: .*anna\.pem, .*anna\.key\.pem.*collector pki user anna/);
    put("anna.pem", toPem((await testCertificate("person")).der));
    await expect(open().user("anna")).rejects.toThrow(/missing: [^,]*anna\.key\.pem\./);
  });

  it("name the file that is at fault, and nothing of a key", async () => {
    const [person, other] = [await testCertificate("person"), await testCertificate("other")];
    put("anna.pem", toPem(person.der));
    put("anna.key.pem", other.keyPem);
    await expect(open().user("anna")).rejects.toThrow(/anna\.key\.pem is not the key of .*anna\.pem/);
    put("anna.key.pem", `-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n`);
    await expect(open().user("anna")).rejects.toThrow(/anna\.key\.pem: this is not a private key/);
    await expect(open().user("anna")).rejects.not.toThrow(/c2VjcmV0/);
    put("anna.key.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n");
    await expect(open().user("anna")).rejects.toThrow(/passphrase/);
    put("anna.pem", "no certificate");
    await expect(open().user("anna")).rejects.toThrow(/anna\.pem: /);
  });

  it.each(["../own/key", "", "a/b", ".hidden", "x".repeat(100)])("are not looked for under %j", async (name) => {
    await expect(open().user(name)).rejects.toThrow(/user_certificate/);
  });
});
