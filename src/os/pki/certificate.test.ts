import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type Certificate,
  MAX_CERTIFICATE_BYTES,
  MAX_CHAIN,
  namesHost,
  parseCertificate,
  parseCertificateFile,
  splitChain,
  toPem,
} from "./certificate.ts";
import { makeCertificate, makeKey } from "./make.ts";
import { type TestCertificate, testCertificate } from "./testing.ts";

const NOW = Date.parse("2026-11-20T09:00:00Z");
let own: Uint8Array;
let other: TestCertificate;
beforeAll(async () => {
  const names = { applicationUri: "urn:collector:1", name: "collector 1", dns: ["ipc-7"], ip: ["10.0.0.3", "fd00::1"] };
  own = await makeCertificate(await makeKey(), names, NOW);
  other = await testCertificate("other");
});

/** Everything a caller may look at must be there: a certificate that parses and cannot be shown would fail later. */
const show = ({ x509: _, ...words }: Certificate): string => JSON.stringify(words);

describe("parseCertificate", () => {
  it("says what OPC UA needs of a certificate", () => {
    const { x509: _x509, der: _der, ...words } = parseCertificate(own);
    expect(words).toEqual({
      thumbprint: expect.stringMatching(/^[0-9A-F]{40}$/),
      subject: "CN=collector 1, O=collector",
      uris: ["urn:collector:1"],
      applicationUri: "urn:collector:1",
      hostNames: ["ipc-7", "10.0.0.3", expect.stringMatching(/^fd00:/i)],
      notBefore: NOW - 86_400_000,
      notAfter: NOW + 1825 * 86_400_000,
      isAuthority: false,
      isSelfSigned: true,
      weaknesses: [],
    });
  });

  it("says which hosts it names, however they are written", () => {
    const certificate = parseCertificate(own);
    for (const host of ["ipc-7", "IPC-7", "10.0.0.3", "fd00::1", "FD00:0:0::1", "fd00::1%eth0"])
      expect(namesHost(certificate, host), host).toBe(true);
    for (const host of ["ipc-8", "10.0.0.4", "10.0.0", "fd00::2", "", "*"]) expect(namesHost(certificate, host), host).toBe(false);
  });

  it("refuses what is cut off at any byte", () => {
    for (let length = 0; length < own.length; length++) expect(() => parseCertificate(own.subarray(0, length)), `${length}`).toThrow();
  });

  it("refuses what has something behind it, and what is too long", () => {
    expect(() => parseCertificate(Buffer.concat([own, Buffer.alloc(1)]))).toThrow(/says that it has/);
    expect(() => parseCertificate(new Uint8Array(MAX_CERTIFICATE_BYTES + 1))).toThrow(/longer than/);
  });

  it("refuses or shows whatever comes, and throws nothing but words", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          show(parseCertificate(bytes));
        } catch (error) {
          expect((error as Error).message).toMatch(/certificate/);
        }
      }),
    );
  });

  it("refuses or shows a certificate with any byte changed", () => {
    fc.assert(
      fc.property(fc.nat(own.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const bytes = Uint8Array.from(own);
        bytes[at] = (bytes[at] ?? 0) ^ change;
        try {
          const certificate = parseCertificate(bytes);
          expect(show(certificate)).not.toBe(show(parseCertificate(own)));
        } catch (error) {
          expect((error as Error).message).toMatch(/certificate/);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("lets no name forge a line, another name or the terminal's colours", async () => {
    const evil = await testCertificate("a\nCN=collector\u001b[2J", { uri: "urn:a, URI:urn:collector:1" });
    const { subject, applicationUri } = parseCertificate(evil.der);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
    expect(subject).not.toMatch(/[\u0000-\u001f]/);
    expect(applicationUri).toBe("urn:a, URI:urn:collector:1");
  });

  it("shows a subject of any length in bounds", async () => {
    expect(parseCertificate((await testCertificate("x".repeat(5000))).der).subject).toHaveLength(200);
  });
});

describe("splitChain", () => {
  it("takes certificates apart that came as one byte string", () => {
    const thumbprints = [own, other.der].map((der) => parseCertificate(der).thumbprint);
    expect(splitChain([Buffer.concat([own, other.der])]).map(({ thumbprint }) => thumbprint)).toEqual(thumbprints);
    expect(splitChain([own, other.der]).map(({ thumbprint }) => thumbprint)).toEqual(thumbprints);
  });

  it("leaves out what cannot be read above the first, and refuses it in its place", () => {
    expect(splitChain([own, randomBytes(50)])).toHaveLength(1);
    expect(splitChain([Buffer.concat([own, randomBytes(50)])])).toHaveLength(1);
    expect(() => splitChain([randomBytes(50), own])).toThrow();
  });

  it("refuses none and too many", () => {
    expect(() => splitChain([])).toThrow(/no certificate/);
    expect(() => splitChain([new Uint8Array()])).toThrow(/no certificate/);
    expect(() => splitChain(Array.from({ length: MAX_CHAIN + 1 }, () => own))).toThrow(/more than/);
    expect(() => splitChain([Buffer.alloc(1024 * 1024, 0x30)])).toThrow(/too long/);
  });
});

describe("parseCertificateFile", () => {
  it("takes DER, and PEM with text around it", () => {
    const pem = `subject=whatever\n${toPem(own)}\nmore\n${toPem(other.der)}`;
    expect(parseCertificateFile(own)[0]?.thumbprint).toBe(parseCertificateFile(Buffer.from(pem))[0]?.thumbprint);
    expect(parseCertificateFile(Buffer.from(pem))).toHaveLength(2);
  });

  it("refuses a key, text, and nothing", () => {
    expect(() => parseCertificateFile(Buffer.from(other.keyPem))).toThrow(/holds no certificate/);
    expect(() => parseCertificateFile(Buffer.from("hello"))).toThrow(/not a certificate/);
    expect(() => parseCertificateFile(Buffer.alloc(0))).toThrow(/no certificate/);
  });
});
