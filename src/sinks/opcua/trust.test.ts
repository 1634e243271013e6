import fc from "fast-check";
import { StatusCodes } from "node-opcua-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Pki, Verdict } from "../../model/pki.ts";
import { createRig, type Rig } from "./testing/rig.ts";
import { createClientTrust, splitChain } from "./trust.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(() => rig.end());

const pkiOf = (judge: Pki["judge"]): Pki => ({
  judge,
  own: () => Promise.reject(new Error("none")),
  user: () => Promise.reject(new Error("none")),
});

describe("splitChain", () => {
  test("finds the certificates that lie one behind the other", async () => {
    const [a, b] = [Buffer.from(rig.client.own.certificate), Buffer.from(rig.server.own.certificate)];
    expect(splitChain(Buffer.concat([a, b]))).toEqual([a, b]);
    expect(splitChain(Buffer.concat([a, b.subarray(0, 100)]))).toEqual([a]);
    expect(splitChain(Buffer.concat(Array.from({ length: 30 }, () => a)))).toHaveLength(10);
  });

  test("never fails and never invents a byte", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const chain = splitChain(Buffer.from([0x30, ...bytes]));
        expect(Buffer.concat(chain).equals(Buffer.from([0x30, ...bytes]).subarray(0, Buffer.concat(chain).length))).toBe(true);
      }),
    );
  });
});

describe("createClientTrust", () => {
  test("asks for the application URI of the certificate, strictly", async () => {
    const asked: unknown[] = [];
    const trust = createClientTrust({
      pki: pkiOf(async (chain, options) => {
        asked.push([chain.length, options]);
        return { trusted: true, thumbprint: "A", firstUse: false };
      }),
      onRefused: () => {},
    });
    const own = Buffer.from(rig.client.own.certificate);
    expect((await trust.checkCertificate(own)).name).toBe("Good");
    expect(asked).toEqual([[1, { of: "client", peer: rig.client.own.applicationUri, trust: "strict" }]]);
    expect((await trust.checkCertificate(Buffer.from("3003020101", "hex"))).name).toBe("BadCertificateInvalid");
    expect((await trust.checkCertificate(Buffer.alloc(0))).name).toBe("BadCertificateInvalid");
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
    expect(trust.refused()).toEqual([`it is ${problem}`]);
  });

  test("a PKI that fails lets nobody in", async () => {
    const trust = createClientTrust({ pki: pkiOf(() => Promise.reject(new Error("disk full"))), onRefused: () => {} });
    expect(await trust.checkCertificate(Buffer.from(rig.client.own.certificate))).toBe(StatusCodes.BadCertificateUntrusted);
  });
});
