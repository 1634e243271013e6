import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Log, silentLog } from "../../model/context.ts";
import type { JudgeOptions, Verdict } from "../../model/pki.ts";
import { isTrustOver, lifeWarnings } from "../../model/words/certificate-life.ts";
import { parseCertificate, thumbprintOf, toPem } from "./certificate.ts";
import { DAY_MS } from "./make.ts";
import { createPeers, createRejected, MAX_PEERS, MAX_REJECTED } from "./store.ts";
import { type TestCertificate, testCertificate, testRevocations } from "./testing.ts";
import { Trust } from "./trust.ts";

let dir: string;
let nowMs: number;
let warnings: string[];
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "collector-trust-"));
  nowMs = Date.now();
  warnings = [];
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) };
const open = (): Trust => new Trust({ dir, now: () => nowMs, log });
const PLC = { of: "server", peer: "opc.tcp://10.0.0.7:4840", trust: "strict" } as const satisfies JudgeOptions;
const FIRST_USE: JudgeOptions = { ...PLC, trust: "first_use" };
const put = (folder: string, name: string, bytes: Uint8Array | string): void => {
  mkdirSync(path.join(dir, folder), { recursive: true });
  writeFileSync(path.join(dir, folder, name), bytes);
};
const problemOf = (verdict: Verdict): string => (verdict.trusted ? "trusted" : verdict.problem);
const wordsOf = (verdict: Verdict): string => (verdict.trusted ? "" : verdict.words);
const judge = async (trust: Trust, chain: readonly TestCertificate[], options: JudgeOptions = PLC): Promise<Verdict> =>
  trust.judge(
    chain.map(({ der }) => der),
    options,
  );
const rejectedFiles = (): string[] => (existsSync(path.join(dir, "rejected")) ? readdirSync(path.join(dir, "rejected")) : []);

describe("strict trust", () => {
  it("refuses who is not known, keeps the certificate, and says what to type", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    const verdict = await judge(trust, [plc]);
    const thumbprint = thumbprintOf(plc.der);
    expect(verdict).toMatchObject({ trusted: false, problem: "untrusted", thumbprint });
    expect(wordsOf(verdict)).toContain(`sudo collector pki trust ${thumbprint}`);
    expect(wordsOf(verdict)).toContain("subject CN=plc");
    expect(wordsOf(verdict)).toContain(PLC.peer);
    expect(wordsOf(verdict)).toMatch(/valid \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d/);
    expect(trust.rejected.list().refused).toMatchObject([
      { certificate: { thumbprint }, note: { of: "server", peer: PLC.peer, by: "unknown" } },
    ]);
  });

  it("says what of it the certificate names, and takes its application URI for the peer where none is given", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    const of = { of: "client", trust: "strict" } as const;
    expect(wordsOf(await judge(trust, [plc], of))).toContain("the client urn:test:plc (subject");
    trust.trust(parseCertificate(plc.der));
    expect(await judge(trust, [plc], { ...of, hosts: ["nowhere", "plc"] })).toMatchObject({ uris: ["urn:test:plc"], hosts: ["plc"] });
    expect(wordsOf(await trust.judge([], of))).toMatch(/^The client shows a certificate that cannot be used/);
  });

  it("trusts at once who was added by hand, in any form, and forgets who was taken away", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    for (const [name, bytes] of [
      ["plc.der", plc.der],
      ["plc.pem", toPem(plc.der)],
      ["from the panel.CRT", toPem(plc.der)],
    ] as const) {
      expect(problemOf(await judge(trust, [plc])), name).toBe("untrusted");
      put("trusted", name, bytes);
      expect(problemOf(await judge(trust, [plc])), name).toBe("trusted");
      rmSync(path.join(dir, "trusted", name));
    }
    expect(problemOf(await judge(trust, [plc]))).toBe("untrusted");
  });

  it("trusts what another process has just trusted", async () => {
    const [service, commandLine] = [open(), open()];
    const plc = await testCertificate("plc");
    expect(problemOf(await judge(service, [plc]))).toBe("untrusted");
    expect(commandLine.trust(parseCertificate(plc.der))).toBe(true);
    expect(await judge(service, [plc])).toMatchObject({ trusted: true, thumbprint: thumbprintOf(plc.der), firstUse: false });
    expect(rejectedFiles()).toEqual([]);
    expect(commandLine.trust(parseCertificate(plc.der))).toBe(false);
  });

  it("notices a file that is overwritten in place", async () => {
    const trust = open();
    const [plc, other] = [await testCertificate("plc"), await testCertificate("other")];
    put("trusted", "plc.der", other.der);
    expect(problemOf(await judge(trust, [plc]))).toBe("untrusted");
    await new Promise((done) => setTimeout(done, 60));
    await judge(trust, [plc]);
    put("trusted", "plc.der", plc.der);
    await expect.poll(async () => problemOf(await judge(trust, [plc])), { timeout: 5000 }).toBe("trusted");
  });

  it("goes by the certificate, never by the file's name", async () => {
    const [plc, other] = [await testCertificate("plc"), await testCertificate("other")];
    put("trusted", `${thumbprintOf(plc.der)}.der`, other.der);
    expect(problemOf(await judge(open(), [plc]))).toBe("untrusted");
  });

  it("names a file that it cannot use, once, and goes on", async () => {
    const plc = await testCertificate("plc");
    put("trusted", "broken.der", randomBytes(100));
    put("trusted", "big.der", Buffer.alloc(1024 * 1024));
    put("trusted", "plc.der", plc.der);
    const trust = open();
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
    await judge(trust, [plc]);
    expect(warnings.filter((words) => words.includes("broken.der"))).toHaveLength(1);
    expect(warnings.filter((words) => words.includes("big.der"))).toHaveLength(1);
  });

  it("refuses what has expired and what is not valid yet, also where it is trusted, and tells the time", async () => {
    const plc = await testCertificate("plc", { notBefore: nowMs - 10 * DAY_MS, notAfter: nowMs + 10 * DAY_MS });
    const trust = open();
    trust.trust(parseCertificate(plc.der));
    nowMs += 11 * DAY_MS;
    const expired = await judge(trust, [plc]);
    expect(problemOf(expired)).toBe("expired");
    expect(wordsOf(expired)).toContain(`the clock of this machine says ${new Date(nowMs).toISOString().slice(0, 10)}`);
    nowMs -= 22 * DAY_MS;
    expect(problemOf(await judge(trust, [plc]))).toBe("not_yet_valid");
    nowMs += 11 * DAY_MS;
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
  });

  it("refuses what a person has rejected, until a person trusts it", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    const certificate = parseCertificate(plc.der);
    trust.trust(certificate);
    expect(trust.reject(certificate)).toBe(true);
    expect(trust.reject(certificate)).toBe(false);
    for (const options of [PLC, FIRST_USE]) expect(problemOf(await judge(trust, [plc], options))).toBe("rejected");
    trust.trust(certificate);
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
  });
});

describe("the life of a certificate", () => {
  const notesOf = (verdict: Verdict): readonly string[] =>
    verdict.trusted ? lifeWarnings(verdict.life, nowMs).map(({ code, text }) => `${code}: ${text}`) : [wordsOf(verdict)];

  it("is a warning from 60 days before its end, and the log has it once a day", async () => {
    const plc = await testCertificate("plc", { notAfter: nowMs + 61 * DAY_MS });
    const trust = open();
    trust.trust(parseCertificate(plc.der));
    expect(notesOf(await judge(trust, [plc]))).toEqual([]);
    nowMs += 2 * DAY_MS;
    const words = "certificate_expires: the certificate of the server opc.tcp://10.0.0.7:4840 (subject CN=plc";
    expect(notesOf(await judge(trust, [plc]))).toEqual([expect.stringContaining(words)]);
    expect(notesOf(await judge(trust, [plc]))).toEqual([expect.stringMatching(/expires on \S+, in (58|59) days: renew it there/)]);
    expect(warnings).toHaveLength(1);
    nowMs += DAY_MS;
    await judge(trust, [plc]);
    expect(warnings).toHaveLength(2);
  });

  it("is a warning where key and signature are weak", async () => {
    const plc = await testCertificate("plc", { weak: true });
    const trust = open();
    trust.trust(parseCertificate(plc.der));
    expect(notesOf(await judge(trust, [plc]))).toEqual([
      expect.stringMatching(/^certificate_weak: .* has an RSA key of 1024 bits and a signature with SHA-1, which others may break/),
    ]);
    expect(parseCertificate((await testCertificate("strong")).der).weaknesses).toEqual([]);
  });

  it("is forgiven until a day, flagged while it is, and no longer", async () => {
    const plc = await testCertificate("plc", { notBefore: nowMs - 9 * DAY_MS, notAfter: nowMs - DAY_MS });
    const certificate = parseCertificate(plc.der);
    const trust = open();
    expect(wordsOf(await judge(trust, [plc]))).toContain(
      `sudo collector pki trust ${certificate.thumbprint} --although-expired-until DATE`,
    );
    const until = Date.parse(`${new Date(nowMs + 3 * DAY_MS).toISOString().slice(0, 10)}T00:00:00Z`);
    trust.trust(certificate, until);
    const day = new Date(until - DAY_MS).toISOString().slice(0, 10);
    const forgiven = await judge(trust, [plc]);
    expect(notesOf(forgiven)).toEqual([expect.stringMatching(`^certificate_forgiven: .*until the end of ${day}: renew it`)]);
    expect(warnings).toEqual([expect.stringContaining("a person trusts it all the same")]);
    expect(forgiven.trusted && isTrustOver(forgiven.life, nowMs)).toBe(false);
    nowMs = until;
    expect(forgiven.trusted && isTrustOver(forgiven.life, nowMs)).toBe(true);
    expect(wordsOf(await judge(trust, [plc]))).toContain(`a person trusted it although expired until the end of ${day}, which is over`);
    trust.trust(certificate, until + DAY_MS);
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
    trust.trust(certificate);
    expect(problemOf(await judge(trust, [plc]))).toBe("expired");
  });

  it("forgives the end alone: neither a rejection, nor a revocation, nor an early clock, nor a file that was taken away", async () => {
    const root = await testCertificate("root", { authority: {} });
    const plc = await testCertificate("plc", { issuer: root, serial: "42", notBefore: nowMs - 9 * DAY_MS, notAfter: nowMs - DAY_MS });
    const certificate = parseCertificate(plc.der);
    const trust = open();
    trust.trust(certificate, nowMs + DAY_MS);
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
    put("issuers", "root.der", root.der);
    put("issuers", "root.crl", await testRevocations(root, ["42"]));
    put("trusted", "root.der", root.der);
    expect(problemOf(await judge(trust, [plc]))).toBe("revoked");
    rmSync(path.join(dir, "issuers"), { recursive: true });
    nowMs -= 20 * DAY_MS;
    expect(problemOf(await judge(trust, [plc]))).toBe("not_yet_valid");
    nowMs += 20 * DAY_MS;
    trust.reject(certificate);
    expect(problemOf(await judge(trust, [plc]))).toBe("rejected");
    trust.trust(certificate);
    expect(problemOf(await judge(trust, [plc]))).toBe("expired");
    trust.trust(certificate, nowMs + DAY_MS);
    rmSync(path.join(dir, "trusted", `${certificate.thumbprint}.der`));
    expect(problemOf(await judge(open(), [plc], { ...FIRST_USE, peer: "another" }))).toBe("expired");
  });
});

describe("a changed certificate", () => {
  it("is refused by name until a person trusts it, under either setting", async () => {
    const trust = open();
    const [before, after] = [await testCertificate("plc"), await testCertificate("plc")];
    trust.trust(parseCertificate(before.der));
    expect(problemOf(await judge(trust, [before]))).toBe("trusted");
    for (const options of [PLC, FIRST_USE]) {
      const verdict = await judge(trust, [after], options);
      expect(problemOf(verdict)).toBe("changed");
      expect(wordsOf(verdict)).toContain(thumbprintOf(before.der));
      expect(wordsOf(verdict)).toContain(`pki trust ${thumbprintOf(after.der)}`);
    }
    expect(problemOf(await judge(trust, [after], { ...PLC, peer: "opc.tcp://10.0.0.8:4840" }))).toBe("untrusted");
    trust.trust(parseCertificate(after.der));
    expect(problemOf(await judge(trust, [after]))).toBe("trusted");
    expect(problemOf(await judge(open(), [before]))).toBe("trusted");
  });
});

describe("trust on first use", () => {
  it("takes the first certificate of a peer and no other", async () => {
    const trust = open();
    const [first, second] = [await testCertificate("plc"), await testCertificate("plc")];
    expect(await judge(trust, [first], FIRST_USE)).toMatchObject({ trusted: true, firstUse: true });
    expect(warnings).toEqual([expect.stringContaining("first one from this peer")]);
    expect(await judge(trust, [first], FIRST_USE)).toMatchObject({ trusted: true, firstUse: false });
    expect(problemOf(await judge(trust, [first]))).toBe("trusted");
    expect(problemOf(await judge(trust, [second], FIRST_USE))).toBe("changed");
    expect(wordsOf(await judge(open(), [second], FIRST_USE))).toContain("first_use accepts the first one only");
  });

  it("says why it trusts nothing", async () => {
    const trust = open();
    const [plc, authority] = [await testCertificate("plc"), await testCertificate("plant", { authority: {} })];
    expect(wordsOf(await judge(trust, [authority], FIRST_USE))).toContain("first_use does not trust it, because it is an authority");
    const expired = await testCertificate("old", { notAfter: nowMs - 1000 });
    expect(wordsOf(await judge(trust, [expired], FIRST_USE))).toContain("first_use does not trust an expired one");
    await judge(trust, [plc], FIRST_USE);
    rmSync(path.join(dir, "trusted"), { recursive: true });
    expect(wordsOf(await judge(trust, [plc], FIRST_USE))).toContain("because a person has removed it since");
    expect(wordsOf(await judge(trust, [plc]))).not.toContain("first_use");
  });

  it("takes one that was refused only because it was not known", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    await judge(trust, [plc]);
    expect(await judge(trust, [plc], FIRST_USE)).toMatchObject({ trusted: true, firstUse: true });
    expect(rejectedFiles()).toEqual([]);
  });

  it("lets one of two win that come at the same moment", async () => {
    const plcs = await Promise.all([testCertificate("plc"), testCertificate("plc"), testCertificate("plc")]);
    const verdicts = await Promise.all(plcs.map((plc) => judge(open(), [plc], FIRST_USE)));
    expect(verdicts.filter(({ trusted }) => trusted)).toHaveLength(1);
  });

  it("does not bring back what was taken from the trusted ones", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    await judge(trust, [plc], FIRST_USE);
    rmSync(path.join(dir, "trusted"), { recursive: true });
    expect(problemOf(await judge(trust, [plc], FIRST_USE))).toBe("untrusted");
  });

  it("takes nothing that has expired", async () => {
    const plc = await testCertificate("plc", { notAfter: nowMs - 1000 });
    expect(problemOf(await judge(open(), [plc], FIRST_USE))).toBe("expired");
  });
});

describe("authorities", () => {
  it("trusts what a trusted authority has signed, also over one in between, sent or in issuers", async () => {
    const root = await testCertificate("root", { authority: {} });
    const middle = await testCertificate("middle", { authority: {}, issuer: root });
    const plc = await testCertificate("plc", { issuer: middle });
    const trust = open();
    expect(problemOf(await judge(trust, [plc, middle, root]))).toBe("untrusted");
    put("trusted", "root.pem", toPem(root.der));
    expect(problemOf(await judge(trust, [plc]))).toBe("untrusted");
    expect(problemOf(await judge(trust, [plc, middle]))).toBe("trusted");
    put("issuers", "middle.der", middle.der);
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
  });

  it("trusts a self-signed certificate of a device that says it is an authority for itself only", async () => {
    const device = await testCertificate("plc", { authority: {}, uri: "urn:maker:plc" });
    const other = await testCertificate("other", { issuer: device });
    const trust = open();
    trust.trust(parseCertificate(device.der));
    const all = async (by = trust) => [(await judge(by, [device])).trusted, (await judge(by, [other, device])).trusted];
    expect(await all()).toEqual([true, false]);
    // Beside an authority of the plant, which goes on vouching.
    const root = await testCertificate("root", { authority: {} });
    trust.trust(parseCertificate(root.der));
    expect(problemOf(await judge(trust, [await testCertificate("third", { issuer: root })]))).toBe("trusted");
    expect(await all()).toEqual([true, false]);
    expect(await all(open())).toEqual([true, false]);
  });

  it("takes no authority on first use: that would trust all that it signs", async () => {
    const root = await testCertificate("root", { authority: {} });
    expect(problemOf(await judge(open(), [root], FIRST_USE))).toBe("untrusted");
    const device = await testCertificate("plc", { authority: {}, uri: "urn:maker:plc" });
    expect(problemOf(await judge(open(), [device], FIRST_USE))).toBe("trusted");
  });

  it("does not trust by issuers alone", async () => {
    const root = await testCertificate("root", { authority: {} });
    const plc = await testCertificate("plc", { issuer: root });
    put("issuers", "root.der", root.der);
    expect(problemOf(await judge(open(), [plc, root]))).toBe("untrusted");
  });

  it("accepts a renewed certificate of one that an authority vouches for", async () => {
    const root = await testCertificate("root", { authority: {} });
    put("trusted", "root.der", root.der);
    const trust = open();
    for (let i = 0; i < 2; i++) expect(problemOf(await judge(trust, [await testCertificate("plc", { issuer: root })]))).toBe("trusted");
  });

  it.each<[string, (root: TestCertificate) => Promise<TestCertificate[]>]>([
    [
      "a signature by another key under the authority's name",
      async () => [await testCertificate("plc", { issuer: await testCertificate("root", { authority: {} }) })],
    ],
    [
      "one that is signed by a certificate that is no authority",
      async (root) => {
        const plain = await testCertificate("plain", { issuer: root });
        return [await testCertificate("plc", { issuer: plain }), plain];
      },
    ],
    [
      "an authority that has expired in between",
      async (root) => {
        const middle = await testCertificate("middle", { issuer: root, authority: {}, notAfter: Date.now() - 1000 });
        return [await testCertificate("plc", { issuer: middle }), middle];
      },
    ],
    [
      "more authorities than the one above allows",
      async (root) => {
        const one = await testCertificate("one", { issuer: root, authority: { pathLength: 0 } });
        const two = await testCertificate("two", { issuer: one, authority: {} });
        return [await testCertificate("plc", { issuer: two }), two, one];
      },
    ],
    [
      "a critical extension that is not understood",
      async (root) => {
        const middle = await testCertificate("middle", { issuer: root, authority: {}, critical: "2.5.29.30" });
        return [await testCertificate("plc", { issuer: middle }), middle];
      },
    ],
    [
      "a chain that goes round",
      async () => {
        const [a, b] = [await testCertificate("a", { authority: {} }), await testCertificate("b", { authority: {} })];
        const ab = await testCertificate("a", { issuer: b, authority: {}, keys: a.keys });
        const ba = await testCertificate("b", { issuer: a, authority: {}, keys: b.keys });
        return [await testCertificate("plc", { issuer: a }), ab, ba, a, b];
      },
    ],
  ])("refuses %s", async (_words, make) => {
    const root = await testCertificate("root", { authority: {} });
    put("trusted", "root.der", root.der);
    const trust = open();
    expect(problemOf(await judge(trust, [await testCertificate("good", { issuer: root })]))).toBe("trusted");
    expect(problemOf(await judge(trust, await make(root), { ...PLC, peer: "opc.tcp://10.0.0.8:4840" }))).toBe("untrusted");
  });

  it("refuses what its authority has revoked, and believes no list of anybody else's", async () => {
    const root = await testCertificate("root", { authority: {} });
    const impostor = await testCertificate("root", { authority: {} });
    const plc = await testCertificate("plc", { issuer: root, serial: "1234abcd" });
    put("trusted", "root.der", root.der);
    const trust = open();
    put("issuers", "root.crl", await testRevocations(impostor, ["1234abcd"]));
    put("issuers", "broken.crl", randomBytes(200));
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
    expect(warnings.filter((words) => words.includes("broken.crl"))).toHaveLength(1);
    put("issuers", "root.crl", await testRevocations(root, ["99", "1234abcd"]));
    const verdict = await judge(trust, [plc]);
    expect(problemOf(verdict)).toBe("revoked");
    expect(wordsOf(verdict)).toContain("revoked by CN=root");
    expect(problemOf(await judge(trust, [await testCertificate("other", { issuer: root })]))).toBe("trusted");
  });

  it("refuses what its authority has revoked although it is trusted itself", async () => {
    const root = await testCertificate("root", { authority: {} });
    const plc = await testCertificate("plc", { issuer: root, serial: "1234abcd" });
    put("trusted", "plc.der", plc.der);
    put("issuers", "root.der", root.der);
    const trust = open();
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
    put("issuers", "root.crl", await testRevocations(root, ["1234abcd"]));
    expect(problemOf(await judge(trust, [plc]))).toBe("revoked");
  });
});

describe("what comes from anybody", () => {
  it("never throws, whatever the certificate is", async () => {
    const trust = open();
    const plc = await testCertificate("plc");
    for (const chain of [[], [new Uint8Array()], [Buffer.alloc(1024 * 1024, 0x30)], [Buffer.from("GET / HTTP/1.1\r\n")]])
      expect(problemOf(await trust.judge(chain, PLC))).toBe("malformed");
    for (let length = 1; length < plc.der.length; length += 7)
      expect(problemOf(await trust.judge([plc.der.subarray(0, length)], PLC))).toBe("malformed");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 12 }), async (chain) => {
        expect(problemOf(await trust.judge(chain, PLC))).toBe("malformed");
      }),
      { numRuns: 200 },
    );
    expect(rejectedFiles()).toEqual([]);
  });

  it("does not let a peer's name steer the terminal or fill the disk", async () => {
    const verdict = await judge(open(), [await testCertificate("a")], { ...PLC, peer: `\u001b[2J${"x".repeat(1e6)}` });
    expect(wordsOf(verdict)).not.toContain("\u001b");
    expect(wordsOf(verdict).length).toBeLessThan(2000);
  });

  it("does not become a flood of files", async () => {
    const trust = open();
    const keys = (await testCertificate("x")).keys;
    for (let i = 0; i < 60; i++)
      await judge(trust, [await testCertificate(`client ${i}`, { keys })], { ...PLC, of: "client", peer: `urn:${i}` });
    expect(rejectedFiles().length).toBeGreaterThanOrEqual(40);
    expect(rejectedFiles().length).toBeLessThan(60);
  });

  it("judges although nothing can be written", async () => {
    const [plc, other] = [await testCertificate("plc"), await testCertificate("other")];
    const trust = open();
    trust.trust(parseCertificate(plc.der));
    rmSync(path.join(dir, "peers"), { recursive: true, force: true });
    writeFileSync(path.join(dir, "peers"), "no folder");
    expect(problemOf(await judge(trust, [plc]))).toBe("trusted");
    expect(warnings).toEqual([expect.stringContaining("cannot be stored as this peer")]);
    // Nobody could tell a second one from the first.
    expect(problemOf(await judge(trust, [other], FIRST_USE))).toBe("untrusted");
    rmSync(path.join(dir, "rejected"), { recursive: true, force: true });
    writeFileSync(path.join(dir, "rejected"), "no folder");
    const verdict = await judge(trust, [other]);
    expect(problemOf(verdict)).toBe("untrusted");
    expect(wordsOf(verdict)).toContain("could not be judged");
  });
});

describe("what is kept", () => {
  it("is bounded: clients' certificates go before servers', and what a person has rejected stays", async () => {
    const rejected = createRejected(path.join(dir, "rejected"));
    const keys = (await testCertificate("x")).keys;
    const note = (of: "server" | "client", i: number, by: "unknown" | "person") => {
      const at = new Date(nowMs + i * 1000).toISOString();
      return { of, peer: `${i}`, first_seen: at, last_seen: at, by };
    };
    const add = async (i: number, of: "server" | "client", by: "unknown" | "person") => {
      const certificate = parseCertificate((await testCertificate(`c${i}`, { keys })).der);
      rejected.put(certificate, note(of, i, by));
      return certificate.thumbprint;
    };
    const [server, decided] = [await add(0, "server", "unknown"), await add(1, "client", "person")];
    const oldest = await add(2, "client", "unknown");
    let last = "";
    for (let i = 3; i < MAX_REJECTED + 20; i++) last = await add(i, "client", "unknown");
    const kept = rejected.list().refused.map(({ certificate }) => certificate.thumbprint);
    expect(kept).toHaveLength(MAX_REJECTED + 1);
    expect(kept).toEqual(expect.arrayContaining([server, decided, last]));
    expect(kept).not.toContain(oldest);
    expect(rejectedFiles()).toHaveLength(2 * (MAX_REJECTED + 1));
  });

  it("remembers a bounded number of peers, those seen last", () => {
    const peers = createPeers(path.join(dir, "peers"));
    const at = (i: number) => new Date(nowMs + i * 1000).toISOString();
    for (let i = 0; i < MAX_PEERS + 10; i++) peers.put({ of: "client", peer: `urn:${i}`, thumbprint: "00", since: at(i), seen: at(i) });
    expect(peers.list().length).toBeLessThanOrEqual(MAX_PEERS);
    expect(peers.get("client", "urn:0")).toBeUndefined();
    expect(peers.get("client", `urn:${MAX_PEERS + 9}`)?.thumbprint).toBe("00");
    expect(peers.get("server", `urn:${MAX_PEERS + 9}`)).toBeUndefined();
  }, 60_000);
});
