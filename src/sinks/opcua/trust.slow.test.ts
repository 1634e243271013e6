import { StatusCodes } from "node-opcua-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Pki, Verdict } from "../../model/pki.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import { createRig, type Rig } from "./testing/rig.ts";
import { createClientTrust } from "./trust.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(() => rig.end());

const pkiOf = (judge: Pki["judge"]): Pki => ({
  judge,
  trustedFor: () => Promise.resolve([]),
  own: () => Promise.reject(new Error("none")),
  user: () => Promise.reject(new Error("none")),
});

const DAY_MS = 24 * 3_600_000;
const trustedUntil = (notAfter: number, forgivenUntil?: number): Verdict => {
  const life = {
    holder: "client urn:scada",
    subject: "CN=scada",
    thumbprint: "A",
    notAfter,
    weaknesses: [],
    ...(forgivenUntil !== undefined && { forgivenUntil }),
  };
  return { trusted: true, thumbprint: "A", firstUse: false, uris: [], hosts: [], life };
};

describe("createClientTrust", () => {
  test("tells of clients whose certificates end soon, until they show others", async () => {
    let verdict = trustedUntil(Date.now() + 10.5 * DAY_MS);
    const trust = createClientTrust({ pki: pkiOf(async () => verdict), onRefused: () => {} });
    const own = Buffer.from(rig.client.own.certificate);
    await trust.checkCertificate(own);
    expect(textsOf(trust.lives())).toEqual([expect.stringMatching(/^the certificate of the client urn:scada .* in 10 days/)]);
    verdict = trustedUntil(Date.now() + 365 * DAY_MS);
    await trust.checkCertificate(own);
    expect(trust.lives()).toEqual([]);
    verdict = trustedUntil(Date.now() - DAY_MS, Date.now() - 1);
    await trust.checkCertificate(own);
    expect([...trust.over()]).toEqual(["A"]);
  });

  test("asks for the peer that the certificate itself names, strictly", async () => {
    const asked: unknown[] = [];
    const trust = createClientTrust({
      pki: pkiOf(async (chain, options) => {
        asked.push([chain, options]);
        return trustedUntil(Date.now() + 365 * DAY_MS);
      }),
      onRefused: () => {},
    });
    const own = Buffer.from(rig.client.own.certificate);
    for (const given of [own, [own]]) expect((await trust.checkCertificate(given)).name).toBe("Good");
    expect(asked).toEqual([
      [[own], { of: "client", trust: "strict" }],
      [[own], { of: "client", trust: "strict" }],
    ]);
  });

  test("takes chains as one or several, and what is no certificate for invalid", async () => {
    const { pki, own } = rig.server;
    const trusted: string[] = [];
    const trust = createClientTrust({ pki, onRefused: () => {}, onTrusted: (thumbprint) => trusted.push(thumbprint) });
    const [client, above] = [Buffer.from(rig.client.own.certificate), Buffer.from(own.certificate)];
    const nameOf = async (given: Buffer | Buffer[]) => (await trust.checkCertificate(given)).name;
    expect(await nameOf(client)).toBe("BadCertificateUntrusted");
    expect(textsOf(trust.refused())).toEqual([expect.stringContaining(`client ${rig.client.own.applicationUri} `)]);
    rig.server.trust(rig.client.own);
    expect(await nameOf(client)).toBe("Good");
    expect(await nameOf(Buffer.concat([client, above]))).toBe("Good");
    expect(await nameOf([client, above])).toBe("Good");
    expect(textsOf(trust.refused())).toEqual([]);
    expect(trusted).toEqual([rig.client.own.thumbprint]);
    for (const bytes of [Buffer.from("3003020101", "hex"), Buffer.alloc(0), client.subarray(0, 100), Buffer.from("none")])
      expect(await nameOf(bytes)).toBe("BadCertificateInvalid");
  });

  test.each([
    ["untrusted", "BadCertificateUntrusted"],
    ["changed", "BadCertificateUntrusted"],
    ["expired", "BadCertificateTimeInvalid"],
    ["revoked", "BadCertificateRevoked"],
    ["malformed", "BadCertificateInvalid"],
  ] as const)("%s is %s, and told once", async (problem, name) => {
    const told: string[] = [];
    const verdict: Verdict = { trusted: false, thumbprint: "A", problem, words: `it is ${problem}` };
    const trust = createClientTrust({ pki: pkiOf(async () => verdict), onRefused: (words) => told.push(words) });
    const own = Buffer.from(rig.client.own.certificate);
    expect((await trust.checkCertificate(own)).name).toBe(name);
    await trust.checkCertificate(own);
    expect(told).toEqual([`it is ${problem}`]);
    expect(textsOf(trust.refused())).toEqual([`it is ${problem}`]);
  });

  test("a PKI that fails lets nobody in", async () => {
    const trust = createClientTrust({ pki: pkiOf(() => Promise.reject(new Error("disk full"))), onRefused: () => {} });
    expect(await trust.checkCertificate(Buffer.from(rig.client.own.certificate))).toBe(StatusCodes.BadCertificateUntrusted);
  });
});
