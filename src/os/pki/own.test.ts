import { spawn } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Log, silentLog } from "../../model/context.ts";
import { parseCertificate, parseCertificateFile } from "./certificate.ts";
import { DAY_MS, EARLIEST_MS, VALIDITY_DAYS } from "./make.ts";
import { ANNOUNCE_DAYS, createOwn, type Own, stepOf, USE_DAYS } from "./own.ts";

const INSTALLATION = "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33";
const START = Date.parse("2026-11-20T09:00:00Z");

let folder: string;
let nowMs: number;
let warnings: string[];
beforeEach(() => {
  folder = path.join(mkdtempSync(path.join(os.tmpdir(), "collector-pki-")), "own");
  nowMs = START;
  warnings = [];
});
afterEach(() => rmSync(path.dirname(folder), { recursive: true, force: true }));

const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) };
const open = (): Own => createOwn({ folder, installation: INSTALLATION, now: () => nowMs, log });
const keyOf = (file: string): string => String(createPublicKey(readFileSync(file)).export({ type: "spki", format: "pem" }));
const keyFiles = (): string[] => readdirSync(folder).filter((name) => name.startsWith("key-"));

describe("the collector's own certificate", () => {
  it("is made once, and is the same after a restart", async () => {
    const first = await open().get();
    expect(first.applicationUri).toBe(`urn:collector:${INSTALLATION}`);
    expect(first.notAfter).toBe(START + VALIDITY_DAYS * DAY_MS);
    expect(await open().get()).toEqual(first);
    expect(parseCertificateFile(readFileSync(first.certificateFile))[0]?.thumbprint).toBe(first.thumbprint);
    expect(keyOf(first.privateKeyFile)).toBe(keyOf(first.certificateFile));
    const { publicKey } = parseCertificate(first.certificate).x509;
    expect(publicKey.asymmetricKeyDetails?.modulusLength).toBe(2048);
    expect(warnings).toEqual([]);
  });

  it("keeps its key to its owner, in a folder of its owner's", async () => {
    const { privateKeyFile } = await open().get();
    expect(statSync(privateKeyFile).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it("does not depend on the host's name, and keeps its URI when the installation is called otherwise", async () => {
    const first = await open().get();
    const renamed = createOwn({ folder, installation: "another", now: () => nowMs, log });
    expect((await renamed.get()).applicationUri).toBe(first.applicationUri);
    expect((await renamed.renew(false)).current.applicationUri).toBe(first.applicationUri);
  });

  it("is one where several threads of one process ask at once", async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => open().get()));
    expect(new Set(all.map(({ thumbprint }) => thumbprint)).size).toBe(1);
    expect(keyFiles()).toHaveLength(1);
  });

  it("is one where several processes ask at once", async () => {
    const script = `
      const { createOwn } = await import(${JSON.stringify(path.join(import.meta.dirname, "own.ts"))});
      const log = { debug() {}, info() {}, warn() {}, error() {} };
      process.stdin.once("data", async () => {
        const own = await createOwn({ folder: ${JSON.stringify(folder)}, installation: "x", now: Date.now, log }).get();
        process.stdout.write("\\n" + own.thumbprint);
        process.exit(0);
      });
      process.stdout.write("ready");`;
    const children = Array.from({ length: 3 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    const outputs = children.map((child) => {
      let text = "";
      child.stdout.on("data", (chunk) => {
        text += chunk;
      });
      return { child, text: () => text };
    });
    await Promise.all(outputs.map(({ child }) => new Promise((done) => child.stdout.once("data", done))));
    for (const { child } of outputs) child.stdin.write("go\n");
    await Promise.all(outputs.map(({ child }) => new Promise((done) => child.once("close", done))));
    const thumbprints = outputs.map(({ text }) => text().split("\n")[1]);
    expect(thumbprints[0]).toMatch(/^[0-9A-F]{40}$/);
    expect(new Set(thumbprints).size).toBe(1);
    expect(
      readdirSync(folder)
        .filter((name) => !name.startsWith("."))
        .sort(),
    ).toEqual(["certificate.pem", keyFiles()[0]]);
    expect(readdirSync(folder).some((name) => name.startsWith("."))).toBe(false);
  }, 60_000);

  it("announces the next one before it uses it, with the same key and URI", async () => {
    const own = open();
    const first = await own.get();
    nowMs = first.notAfter - ANNOUNCE_DAYS * DAY_MS - 1;
    expect(await own.get()).toEqual(first);
    expect(own.look()?.next).toBeUndefined();
    nowMs += 2;
    expect(await own.get()).toEqual(first);
    const announced = own.look()?.next;
    expect(announced?.thumbprint).not.toBe(first.thumbprint);
    expect(warnings).toHaveLength(1);
    // Said once a day, not at each connect.
    await own.get();
    expect(warnings).toHaveLength(1);
    nowMs += DAY_MS;
    await own.get();
    expect(warnings).toHaveLength(2);
    nowMs = first.notAfter - USE_DAYS * DAY_MS;
    // Another process, as the service after a restart.
    const second = await open().get();
    expect(second.thumbprint).toBe(announced?.thumbprint);
    expect(second.applicationUri).toBe(first.applicationUri);
    expect(second.privateKeyFile).toBe(first.privateKeyFile);
    expect(parseCertificate(second.certificate).subject).toBe(parseCertificate(first.certificate).subject);
    expect(second.notAfter).toBeGreaterThan(first.notAfter);
    expect((await own.get()).thumbprint).toBe(second.thumbprint);
    expect(own.look()?.next).toBeUndefined();
    expect(readdirSync(path.join(folder, "old"))).toEqual([expect.stringContaining(first.thumbprint)]);
  });

  it("is renewed at once where it has expired while the collector was off", async () => {
    const first = await open().get();
    nowMs = first.notAfter + 1000;
    const second = await open().get();
    expect(second.thumbprint).not.toBe(first.thumbprint);
    expect(second.privateKeyFile).toBe(first.privateKeyFile);
    expect(second.notAfter).toBe(nowMs + VALIDITY_DAYS * DAY_MS);
  });

  it("is one after several renewals at once", async () => {
    const first = await open().get();
    nowMs = first.notAfter + 1;
    const all = await Promise.all(Array.from({ length: 4 }, () => open().get()));
    const last = await open().get();
    expect(all.map(({ privateKeyFile }) => privateKeyFile)).toEqual(all.map(() => first.privateKeyFile));
    expect(last.thumbprint).toBe((await open().get()).thumbprint);
    expect(all.map(({ thumbprint }) => thumbprint)).toEqual(all.map(() => last.thumbprint));
  });

  it("survives a clock that knows no date, and one that was ahead", async () => {
    nowMs = 0;
    const first = await open().get();
    expect(parseCertificate(first.certificate).notBefore).toBe(EARLIEST_MS - DAY_MS);
    expect((await open().get()).thumbprint).toBe(first.thumbprint);
    nowMs = START;
    expect((await open().get()).thumbprint).toBe(first.thumbprint);
    nowMs = START + 20 * 365 * DAY_MS;
    const late = await open().get();
    expect(parseCertificate(late.certificate).notBefore).toBe(nowMs - DAY_MS);
    nowMs = START;
    expect(parseCertificate((await open().get()).certificate).notBefore).toBe(START - DAY_MS);
  });

  it("is renewed by hand with its key, or with a new one", async () => {
    const own = open();
    const first = await own.get();
    const second = await own.renew(false);
    expect(second.current.thumbprint).not.toBe(first.thumbprint);
    expect(second.privateKeyFile).toBe(first.privateKeyFile);
    const third = await own.renew(true);
    expect(third.privateKeyFile).not.toBe(first.privateKeyFile);
    expect(third.current.applicationUri).toBe(first.applicationUri);
    expect((await open().get()).thumbprint).toBe(third.current.thumbprint);
    for (let i = 0; i < 12; i++) await own.renew(false);
    expect(readdirSync(path.join(folder, "old"))).toHaveLength(10);
  });

  it("names what is damaged or missing, makes nothing new by itself, and comes back with a new key", async () => {
    const first = await open().get();
    rmSync(first.privateKeyFile);
    await expect(open().get()).rejects.toThrow(/key of .* is missing: .*key-.*pki renew --new-key/);
    writeFileSync(first.privateKeyFile, "no key");
    await expect(open().get()).rejects.toThrow(/no private key/);
    await expect(open().renew(false)).rejects.toThrow(/no private key/);
    writeFileSync(first.certificateFile, readFileSync(first.certificateFile).subarray(0, 300));
    await expect(open().get()).rejects.toThrow(/certificate.pem cannot be used.*pki renew --new-key/);
    expect((await open().renew(true)).current.applicationUri).toBe(first.applicationUri);
    await expect(open().get()).resolves.toMatchObject({ applicationUri: first.applicationUri });
  });

  it("clears away what a process left half, and nothing that may still be written", async () => {
    mkdirSync(folder, { recursive: true });
    const name = (digit: string) => path.join(folder, `.${digit.repeat(8)}-0000-4000-8000-000000000000.new`);
    for (const digit of ["1", "2"]) writeFileSync(name(digit), "half a key");
    utimesSync(name("1"), new Date(0), new Date(0));
    await open().get();
    expect([existsSync(name("1")), existsSync(name("2"))]).toEqual([false, true]);
  });

  it("says which folder cannot be written", async () => {
    mkdirSync(path.dirname(folder), { recursive: true });
    writeFileSync(folder, "a file where the folder should be");
    await expect(open().get()).rejects.toThrow(/own/);
    expect(existsSync(path.join(folder, "certificate.pem"))).toBe(false);
  });
});

describe("stepOf", () => {
  const validity = fc.tuple(fc.integer({ min: -4000, max: 4000 }), fc.integer({ min: 1, max: 4000 })).map(([from, days]) => ({
    notBefore: from * DAY_MS,
    notAfter: (from + days) * DAY_MS,
  }));

  it("always comes to rest, with a certificate that is valid", () => {
    fc.assert(
      fc.property(validity, fc.option(validity, { nil: undefined }), (current, next) => {
        let state = { current, next };
        const made = { notBefore: -DAY_MS, notAfter: VALIDITY_DAYS * DAY_MS };
        let step = stepOf(state, 0);
        let steps = 0;
        for (; step !== "keep"; step = stepOf(state, 0)) {
          expect(++steps).toBeLessThan(5);
          if (step === "make") state = { ...state, next: made };
          else if (step === "drop") state = { ...state, next: undefined };
          else state = { current: state.next ?? made, next: undefined };
        }
        expect(state.current.notBefore).toBeLessThanOrEqual(0);
        expect(state.current.notAfter).toBeGreaterThan(USE_DAYS * DAY_MS);
      }),
    );
  });
});
