import { execFileSync, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { builtCollector } from "../../../test/support/built-collector.ts";
import { silentLog } from "../../model/context.ts";
import { thumbprintOf, toPem } from "../../os/pki/certificate.ts";
import { DAY_MS } from "../../os/pki/make.ts";
import { createPki, type OpenPki } from "../../os/pki/pki.ts";
import { signRequest, type TestCertificate, testCertificate, testRevocations } from "../../os/pki/testing.ts";
import { commandIo, isReachable, runCommand, runCommandWith, settingsFile } from "../testing.ts";
import { certificatePlace, certificatesOf } from "./certificates.ts";

const COLLECTOR = "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33";
const isRoot = process.geteuid?.() === 0;
if (process.env["COLLECTOR_REQUIRE_PARTS"] === "1") it("runs in a checkout that other users reach", () => expect(isReachable).toBe(true));
let dir: string;
let config: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "collector-pki-verb-"));
  config = settingsFile(dir, { collector: COLLECTOR });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const pki = (...words: string[]) => runCommand("pki", ...words, "--config", config);
const well = async (...words: string[]): Promise<string> => {
  const { code, out, err } = await pki(...words);
  expect([code, err], words.join(" ")).toEqual([0, ""]);
  return out;
};
const json = async (...words: string[]) => JSON.parse(await well(...words, "--json"));
/** The running service. */
const service = (now: () => number = Date.now): OpenPki =>
  createPki({ dir: path.join(dir, "pki"), installation: COLLECTOR, now, log: silentLog });
const isTrusted = async ({ der }: TestCertificate, running = service()): Promise<boolean> =>
  (await running.judge([der], { of: "server", peer: "opc.tcp://10.0.0.7:4840", trust: "strict" })).trusted;
const write = (name: string, bytes: string | Uint8Array): string => {
  const file = path.join(dir, name);
  writeFileSync(file, bytes);
  return file;
};

describe("collector pki", () => {
  it("shows who the collector is, in the words that the person at the server needs", async () => {
    expect(await well("list")).toContain("none yet");
    expect(existsSync(path.join(dir, "pki"))).toBe(false);
    const own = await service().own();
    const out = await well("list");
    expect(out).toContain(own.thumbprint);
    expect(out).toContain(`urn:collector:${COLLECTOR}`);
    expect(out).toContain("Trust the certificate with this thumbprint");
    expect(await json("list")).toMatchObject({
      own: { thumbprint: own.thumbprint, application_uri: own.applicationUri, file: own.certificateFile },
      next: null,
      trusted: [],
      rejected: [],
      problems: [],
    });
  });

  it("names a revocation list that cannot be used, which nobody notices otherwise", async () => {
    const root = await testCertificate("root", { authority: {} });
    await service().own();
    mkdirSync(path.join(dir, "pki", "issuers"));
    write("pki/issuers/good.crl", await testRevocations(root, ["99"]));
    expect(await json("list")).toMatchObject({ problems: [] });
    write("pki/issuers/torn.crl", (await testRevocations(root, ["99"])).subarray(0, 40));
    expect(await well("list")).toMatch(/Cannot be used:\n {2}.*issuers\/torn\.crl: this is not a revocation list/);
    expect(await json("list")).toMatchObject({ problems: [expect.stringContaining("torn.crl")] });
  });

  it("trusts what was rejected by the beginning of its thumbprint, for the service that runs", async () => {
    const running = service();
    const plc = await testCertificate("plc");
    expect(await isTrusted(plc, running)).toBe(false);
    const thumbprint = thumbprintOf(plc.der);
    const waiting = await well("list");
    expect(waiting).toContain("waiting for a decision");
    expect(waiting).toContain("server opc.tcp://10.0.0.7:4840");
    const colons = thumbprint.toLowerCase().slice(0, 12).match(/../g)?.join(":") ?? "";
    expect(await well("trust", colons)).toMatch(/Trusted:[\s\S]*no restart is needed/);
    expect(await isTrusted(plc, running)).toBe(true);
    expect(await json("list")).toMatchObject({
      trusted: [{ thumbprint, peers: ["opc.tcp://10.0.0.7:4840"], authority: false }],
      rejected: [],
    });
    expect(await well("trust", thumbprint)).toContain("Trusted already");
    expect(await json("reject", thumbprint.slice(0, 10))).toMatchObject({ thumbprint, trusted: false, changed: true });
    expect(await isTrusted(plc, running)).toBe(false);
    expect(await well("list")).toContain("Rejected by a person");
    expect(await json("list")).toMatchObject({ trusted: [], rejected: [{ thumbprint, by: "person" }] });
  });

  it("lets the plant's authority sign the collector's certificate, and keeps it until that renews it", async () => {
    const root = await testCertificate("plant", { authority: {} });
    await service().own();
    const request = path.join(dir, "collector.csr");
    expect(await well("request", request)).toContain("pki import CERTIFICATE");
    expect(readFileSync(request, "utf8")).toMatch(/^-----BEGIN CERTIFICATE REQUEST-----/);
    const der = (file: string) => Buffer.from(readFileSync(file, "utf8").replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
    const signed = write("own.pem", toPem(root.der) + toPem(await signRequest(der(request), root, 30)));
    const before = await service().own();
    expect(await json("import", signed)).toMatchObject({ application_uri: `urn:collector:${COLLECTOR}`, notes: ["expires in 29 days"] });
    const own = await service().own();
    expect(own.privateKeyFile).toBe(before.privateKeyFile);
    expect(own.thumbprint).not.toBe(before.thumbprint);
    expect(own.notice).toContain("sudo collector pki request FILE");
    expect(await json("list")).toMatchObject({ own: { thumbprint: own.thumbprint }, next: null });
    expect((await service(() => Date.now() + 31 * DAY_MS).own()).thumbprint).toBe(own.thumbprint);
    await well("request", request, "--new-key");
    const renewed = await signRequest(der(request), root, 300);
    await well("import", write("renewed.der", renewed));
    expect(await service().own()).toMatchObject({ thumbprint: thumbprintOf(renewed) });
    expect((await service().own()).privateKeyFile).not.toBe(own.privateKeyFile);
    for (const [file, words] of [
      [write("other.der", (await testCertificate("other")).der), "for a key that this collector does not have"],
      [write("named.der", await signRequest(der(request), root, 30, "urn:another")), "it names urn:another, and this collector is"],
      [write("late.der", await signRequest(der(request), root, -0.5)), "it is valid from"],
    ] as const)
      expect(await pki("import", file)).toMatchObject({ code: 2, err: expect.stringContaining(words) });
  });

  it("stores what an authority has revoked, and takes no list of a stranger and none that is older", async () => {
    const [root, stranger] = [await testCertificate("plant", { authority: {} }), await testCertificate("stranger", { authority: {} })];
    const plc = await testCertificate("plc", { issuer: root, serial: "42" });
    await well("trust", write("root.der", root.der));
    expect(await isTrusted(plc)).toBe(true);
    const older = write("older.crl", await testRevocations(root, [], Date.now() - 5 * DAY_MS));
    expect(await json("crl", older)).toMatchObject({ issuer: "CN=plant", revoked: 0 });
    expect(await json("crl", write("now.crl", await testRevocations(root, ["42"])))).toMatchObject({ revoked: 1 });
    expect(await isTrusted(plc)).toBe(false);
    expect((await json("list")).revocation_lists).toMatchObject([{ issuer: "CN=plant", revoked: 1 }]);
    expect(await well("list")).toMatch(/Revocation lists:\n.*AUTHORITY[\s\S]*CN=plant/);
    for (const [file, words] of [
      [older, "is newer"],
      [write("strange.crl", await testRevocations(stranger, ["42"])), "no authority that is known here has signed"],
      [write("torn.crl", "no list"), "this is not a revocation list"],
    ] as const)
      expect(await pki("crl", file)).toMatchObject({ code: 2, err: expect.stringContaining(words) });
  });

  it("trusts an expired certificate until a day, and shows until when in the list", async () => {
    const plc = await testCertificate("plc", { notBefore: Date.now() - 9 * DAY_MS, notAfter: Date.now() - DAY_MS });
    const thumbprint = thumbprintOf(plc.der);
    expect(await isTrusted(plc)).toBe(false);
    const day = new Date(Date.now() + 5 * DAY_MS).toISOString().slice(0, 10);
    expect(await well("trust", thumbprint, "--although-expired-until", day)).toContain(`It stays trusted to the end of ${day} (UTC)`);
    expect(await isTrusted(plc)).toBe(true);
    const note = `trusted although expired until ${day}`;
    expect(await json("list")).toMatchObject({ trusted: [{ thumbprint, notes: ["expired", note] }] });
    expect(await well("list")).toMatch(new RegExp(`NOTE[\\s\\S]*expired, ${note}`));
    expect(await well("trust", thumbprint)).not.toContain("stays trusted");
    expect(await isTrusted(plc)).toBe(false);
    const ending = await testCertificate("ending", { notAfter: Date.now() + 20.5 * DAY_MS });
    await well("trust", write("ending.der", ending.der));
    expect(await json("list")).toMatchObject({
      trusted: expect.arrayContaining([expect.objectContaining({ notes: ["expires in 20 days"] })]),
    });
    for (const [date, words] of [
      ["31.12.2027", "takes a day such as"],
      ["2020-01-01", "is over"],
      ["2090-01-01", "more than a year from now"],
    ] as const) {
      const { code, err } = await pki("trust", thumbprint, "--although-expired-until", date);
      expect([code, err]).toEqual([2, expect.stringContaining(words)]);
    }
    const root = write("root.der", (await testCertificate("root", { authority: {}, notAfter: Date.now() - 1000 })).der);
    expect((await pki("trust", root, "--although-expired-until", day)).err).toContain("is an authority");
  });

  it("trusts and rejects by files, DER and PEM, and says what an authority means", async () => {
    const root = await testCertificate("root", { authority: {} });
    const middle = await testCertificate("middle", { authority: {}, issuer: root });
    const plc = await testCertificate("plc", { issuer: middle });
    expect(await well("trust", write("root.pem", toPem(root.der)))).toContain("every certificate that it signs");
    expect(await isTrusted(plc)).toBe(false);
    expect(await well("trust", write("middle.der", middle.der), "--issuer")).toContain("not trusted itself");
    expect(await isTrusted(plc)).toBe(true);
    expect(await json("list")).toMatchObject({ issuers: [{ subject: "CN=middle" }], trusted: [{ subject: "CN=root", authority: true }] });
    await well("reject", write("plc.der", plc.der));
    expect(await isTrusted(plc)).toBe(false);
  });

  it("wants more of a thumbprint that begins like another, and says what it does not know", async () => {
    const running = service();
    const keys = (await testCertificate("x")).keys;
    // Four digits of the thumbprints of a few hundred certificates are the same soon.
    const byStart = new Map<string, Uint8Array>();
    let start: string | undefined;
    for (let i = 0; start === undefined; i++) {
      const { der } = await testCertificate(`${i}`, { keys });
      const digits = thumbprintOf(der).slice(0, 4);
      const same = byStart.get(digits);
      byStart.set(digits, der);
      if (!same) continue;
      start = digits;
      for (const chain of [[same], [der]]) await running.judge(chain, { of: "server", peer: `${i}`, trust: "strict" });
    }
    const { code, err } = await pki("trust", start);
    expect(code).toBe(2);
    expect(err).toContain(`2 thumbprints begin with ${start}`);
    expect(await pki("trust", "ABCDEF01")).toMatchObject({ code: 2, err: expect.stringContaining("collector pki list") });
    expect(await pki("trust", "53")).toMatchObject({ code: 2, err: expect.stringContaining("which has 4 to 40 hex digits") });
    expect(await pki("trust", "no-such-file.der")).toMatchObject({ code: 2, err: expect.stringContaining("does not exist") });
    expect(await pki("trust", write("text.der", "hello"))).toMatchObject({ code: 2, err: expect.stringContaining("DER or PEM") });
  }, 60_000);

  it("hands the certificate over as a file, and never its key", async () => {
    const file = path.join(dir, "collector.der");
    await well("export", file);
    const own = await service().own();
    expect(new Uint8Array(readFileSync(file))).toEqual(own.certificate);
    const pem = await well("export");
    expect(new X509Certificate(pem).fingerprint.replaceAll(":", "")).toBe(own.thumbprint);
    await well("export", path.join(dir, "collector.pem"));
    expect(readFileSync(path.join(dir, "collector.pem"), "utf8")).toBe(pem);
    for (const out of [pem, await well("export", "--json"), await well("list", "--json")]) expect(out).not.toContain("PRIVATE");
    expect(await pki("export", file, "--next")).toMatchObject({ code: 2, err: expect.stringContaining("no next certificate") });
  });

  it("renews with the same key and URI, or with a new key", async () => {
    const first = await service().own();
    const second = await json("renew");
    expect(second).toMatchObject({ application_uri: first.applicationUri, new_key: false });
    const running = service();
    expect(await running.own()).toMatchObject({ thumbprint: second.thumbprint, privateKeyFile: first.privateKeyFile });
    expect(await well("renew", "--new-key")).toContain("Trust the certificate with this thumbprint");
    const third = await running.own();
    expect(third.privateKeyFile).not.toBe(first.privateKeyFile);
    expect(third.applicationUri).toBe(first.applicationUri);
  });

  it("shows the next certificate before it is used", async () => {
    const { notAfter } = await service().own();
    const next = (await service(() => notAfter - 60 * DAY_MS).own()) && service().identity.look()?.next;
    expect(await json("list")).toMatchObject({ next: { thumbprint: next?.thumbprint } });
    expect(await well("list")).toContain("before the collector uses it");
    await well("export", path.join(dir, "next.der"), "--next");
    expect(thumbprintOf(readFileSync(path.join(dir, "next.der")))).toBe(next?.thumbprint);
  });

  it("keeps a user's certificate with its key", async () => {
    const person = await testCertificate("person");
    const [certificate, key] = [write("p.der", person.der), write("p.key", person.keyPem)];
    expect(await well("user", "line-2", certificate, key)).toContain("user_certificate: line-2");
    const kept = await service().user("line-2");
    expect(kept.certificate).toEqual(person.der);
    expect(statSync(kept.privateKeyFile).mode & 0o777).toBe(0o600);
    expect(await json("list")).toMatchObject({ users: [{ name: "line-2", subject: "CN=person" }], problems: [] });
    const other = write("other.key", (await testCertificate("other")).keyPem);
    expect(await pki("user", "line-2", certificate, other)).toMatchObject({ code: 2, err: expect.stringContaining("is not the key of") });
    expect(await pki("user", "../x", certificate, key)).toMatchObject({ code: 2, err: expect.stringContaining("expected letters") });
  });

  it("shows what cannot be used, and goes on", async () => {
    await service().own();
    mkdirSync(path.join(dir, "pki", "trusted"), { recursive: true });
    writeFileSync(path.join(dir, "pki", "trusted", "broken.der"), "hello");
    writeFileSync(path.join(dir, "pki", "own", "certificate.pem"), "hello");
    const out = await well("list");
    expect(out).toContain("Cannot be used");
    expect(out).toContain("broken.der");
    expect(out).toContain("pki renew --new-key");
  });

  it.skipIf(!isRoot || !isReachable)("says what to do where no collector has run", async () => {
    config = settingsFile(dir, { state_dir: path.join(dir, "nowhere") });
    const listed = await runCommandWith({ env: { HOME: dir } }, "pki", "list", "--config", config);
    expect(listed).toMatchObject({ code: 2, err: expect.stringContaining("is not there yet") });
  });

  it("trusts what read has kept for this person where no collector has run, root or not", async () => {
    config = settingsFile(dir, { state_dir: path.join(dir, "nowhere") });
    const home = path.join(dir, "home");
    const io = { env: { HOME: home } };
    const plc = await testCertificate("plc");
    // As read does.
    const place = await certificatePlace({ state_dir: path.join(dir, "nowhere") }, commandIo(io));
    const judged = certificatesOf(place, silentLog).judge([plc.der], { of: "server", peer: "opc.tcp://10.0.0.7:4840", trust: "strict" });
    expect(await judged).toMatchObject({ trusted: false, words: expect.stringContaining("collector pki trust") });
    const trusted = await runCommandWith(io, "pki", "trust", thumbprintOf(plc.der), "--config", config);
    expect(trusted).toMatchObject({ code: 0, err: "", out: expect.stringContaining("These certificates are your own") });
    const again = certificatesOf(place, silentLog).judge([plc.der], { of: "server", peer: "opc.tcp://10.0.0.7:4840", trust: "strict" });
    expect(await again).toMatchObject({ trusted: true });
    expect(existsSync(path.join(dir, "nowhere"))).toBe(false);
  });

  it.each(["list", "trust", "reject", "renew", "export", "user"])("explains %s with examples", async (verb) => {
    const { code, out } = await runCommand("pki", verb, "--help");
    expect(code).toBe(0);
    expect(out).toContain("Examples:");
    expect(out).toContain("--json");
  });

  it.skipIf(!isRoot || !isReachable)(
    "leaves all files to the service where root types it, and follows no link as root",
    async () => {
      const [uid, gid] = [65_534, 65_534];
      chownSync(dir, uid, gid);
      const bin = await builtCollector();
      const asRoot = (...words: string[]) => spawnSync(bin, ["pki", ...words, "--config", config], { encoding: "utf8", timeout: 30_000 });
      const plc = write("plc.der", (await testCertificate("plc")).der);
      execFileSync("chmod", ["600", plc]);
      const target = path.join(mkdtempSync(path.join(tmpdir(), "collector-root-")), "out.der");
      for (const words of [["export", target], ["trust", plc], ["renew"]])
        expect(asRoot(...words), words.join(" ")).toMatchObject({ status: 0, stderr: "" });
      expect(statSync(target).uid).toBe(0);
      const files = readdirSync(path.join(dir, "pki"), { recursive: true, encoding: "utf8" });
      expect(files.length).toBeGreaterThan(5);
      for (const file of files) expect(statSync(path.join(dir, "pki", file)).uid, file).toBe(uid);
      // What the service's user may have put there, were it taken over.
      rmSync(path.join(dir, "pki", "trusted"), { recursive: true });
      symlinkSync(path.dirname(target), path.join(dir, "pki", "trusted"));
      expect(asRoot("trust", plc)).toMatchObject({ status: 4, stderr: expect.stringMatching(/EACCES|permission/) });
      expect(readdirSync(path.dirname(target))).toEqual(["out.der"]);
      rmSync(path.dirname(target), { recursive: true });
    },
    120_000,
  );

  it.skipIf(!isRoot || !isReachable)(
    "works on a person's own certificates where the service's are not theirs, and says so",
    async () => {
      const home = mkdtempSync(path.join(tmpdir(), "collector-person-"));
      const person = { uid: 65_534, gid: 65_534 };
      for (const folder of [home, path.dirname(config)]) execFileSync("chmod", ["755", folder]);
      chownSync(home, person.uid, person.gid);
      const bin = await builtCollector();
      const env = { PATH: process.env["PATH"], HOME: home };
      const { status, stdout, stderr } = spawnSync(bin, ["pki", "renew", "--config", config], {
        encoding: "utf8",
        timeout: 30_000,
        env,
        ...person,
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toContain(`These certificates are your own (${home}`);
      expect(existsSync(path.join(home, ".local/state/collector/pki/own/certificate.pem"))).toBe(true);
      expect(existsSync(path.join(dir, "pki"))).toBe(false);
      rmSync(home, { recursive: true });
    },
    60_000,
  );
});
