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
import { ANNOUNCE_DAYS, Own, stepOf, USE_DAYS } from "./own.ts";

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
const open = (): Own => new Own({ folder, installation: INSTALLATION, now: () => nowMs, log });
const keyOf = (file: string): string => String(createPublicKey(readFileSync(file)).export({ type: "spki", format: "pem" }));
const keyFiles = (): string[] => readdirSync(folder).filter((name) => name.startsWith("key-"));

interface Other {
  /** One line to it, one line from it. */
  ask(line: string): Promise<string>;
  end(): void;
}

/** Processes that make and renew certificates, ready to be asked. */
async function startProcesses(count: number): Promise<Other[]> {
  const importing = (name: string) => `await import(${JSON.stringify(path.join(import.meta.dirname, name))})`;
  const script = `
    const { Own } = ${importing("own.ts")};
    const { withLock } = ${importing("../../lib/file-lock.ts")};
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    process.stdin.on("data", async (text) => {
      const [first, second] = String(text).trim().split(" ");
      if (first === "hold") await withLock(second + "/.lock", async () => { console.log("held"); await new Promise((done) => setTimeout(done, 1e6)); });
      else console.log((await new Own({ folder: first, installation: "x", now: () => Number(second), log }).get()).thumbprint);
    });
    console.log("ready");`;
  const others = Array.from({ length: count }, () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] });
    const line = () => new Promise<string>((done) => child.stdout.once("data", (data) => done(String(data).trim())));
    return {
      ready: line(),
      ask: (text: string) => {
        const answer = line();
        child.stdin.write(`${text}\n`);
        return answer;
      },
      end: () => void child.kill("SIGKILL"),
    };
  });
  await Promise.all(others.map(({ ready }) => ready));
  return others;
}

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
    const renamed = new Own({ folder, installation: "another", now: () => nowMs, log });
    expect((await renamed.get()).applicationUri).toBe(first.applicationUri);
    expect((await renamed.renew(false)).current.applicationUri).toBe(first.applicationUri);
  });

  it("is one where several threads of one process ask at once", async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => open().get()));
    expect(new Set(all.map(({ thumbprint }) => thumbprint)).size).toBe(1);
    expect(keyFiles()).toHaveLength(1);
  });

  it("is one where several processes ask at once, when it is made and when it is renewed", async () => {
    const children = await startProcesses(3);
    try {
      for (let round = 0; round < 6; round++) {
        folder = path.join(path.dirname(folder), `own-${round}`);
        const before = round % 2 === 0 ? undefined : await open().get();
        nowMs = before ? before.notAfter + DAY_MS : START;
        const thumbprints = await Promise.all(children.map((child) => child.ask(`${folder} ${nowMs}`)));
        const last = await open().get();
        expect(thumbprints).toEqual(thumbprints.map(() => last.thumbprint));
        expect(keyFiles()).toEqual([path.basename(before?.privateKeyFile ?? last.privateKeyFile)]);
        expect(readdirSync(folder).filter((name) => !name.startsWith("."))).toEqual([
          "certificate.pem",
          ...keyFiles(),
          ...(before ? ["old"] : []),
        ]);
        expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([".lock"]);
        nowMs = START;
      }
    } finally {
      for (const { end } of children) end();
    }
  }, 60_000);

  it("is made although another process was killed in the middle, and although the lock file is not a lock", async () => {
    const [child] = await startProcesses(1);
    mkdirSync(folder, { recursive: true });
    expect(await child?.ask(`hold ${folder}`)).toBe("held");
    const own = open().get();
    const early = await Promise.race([own, new Promise((done) => setTimeout(done, 300, "waits"))]);
    expect(early).toBe("waits");
    child?.end();
    const { thumbprint } = await own;
    rmSync(path.join(folder, "certificate.pem"));
    writeFileSync(path.join(folder, ".lock"), "x".repeat(4096));
    expect((await open().get()).thumbprint).not.toBe(thumbprint);
  }, 30_000);

  it("announces the next one before it uses it, with the same key and URI", async () => {
    const own = open();
    const first = await own.get();
    nowMs = first.notAfter - ANNOUNCE_DAYS * DAY_MS - 1;
    expect(await own.get()).toEqual(first);
    expect(own.look()?.next).toBeUndefined();
    nowMs += 2;
    const { notice, ...rest } = await own.get();
    expect(rest).toEqual(first);
    const announced = own.look()?.next;
    expect(announced?.thumbprint).not.toBe(first.thumbprint);
    expect(notice).toMatch(new RegExp(`expires on 2031-11-19.*${announced?.thumbprint}.*from 2031-11-05.*pki export`));
    expect(warnings).toEqual([notice]);
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
    expect(second.notice).toBeUndefined();
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
    await expect(open().get()).rejects.toThrow(/not a private key/);
    await expect(open().renew(false)).rejects.toThrow(/not a private key/);
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

  it("goes on with the one it has as long as that is valid, where no other can be made", async () => {
    const first = await open().get();
    rmSync(path.join(folder, ".lock"));
    mkdirSync(path.join(folder, ".lock"));
    for (const days of [60, 1]) {
      nowMs = first.notAfter - days * DAY_MS;
      expect(await open().get()).toEqual(first);
    }
    expect(warnings).toHaveLength(2);
    nowMs = first.notAfter;
    await expect(open().get()).rejects.toThrow();
    rmSync(path.join(folder, ".lock"), { recursive: true });
    expect((await open().get()).thumbprint).not.toBe(first.thumbprint);
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
