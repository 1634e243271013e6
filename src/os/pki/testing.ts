import { KeyObject, randomBytes, webcrypto } from "node:crypto";
import { DAY_MS, loadX509 } from "./make.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** A certificate for tests, with its key; elliptic curves, because they are quick to make. */
export interface TestCertificate {
  readonly name: string;
  readonly der: Uint8Array;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly keyPem: string;
}

export interface TestCertificateOptions {
  /** Signs it; absent: it signs itself. */
  readonly issuer?: TestCertificate;
  /** Epoch ms; default: yesterday and in a year. */
  readonly notBefore?: number;
  readonly notAfter?: number;
  /** An authority, with this many authorities below it at most. */
  readonly authority?: { readonly pathLength?: number };
  readonly critical?: string;
  /** Default: one of its name; an authority has none. */
  readonly uri?: string;
  readonly serial?: string;
  readonly keys?: webcrypto.CryptoKeyPair;
  /** RSA with 1024 bits, signed with SHA-1; of a certificate that signs itself. */
  readonly weak?: true;
}

const WEAK = { name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-1" };

export async function testCertificate(name: string, options: TestCertificateOptions = {}): Promise<TestCertificate> {
  const x509 = await loadX509();
  const {
    issuer,
    authority,
    uri = authority ? undefined : `urn:test:${name}`,
    notBefore = Date.now() - DAY_MS,
    notAfter = Date.now() + 365 * DAY_MS,
  } = options;
  const algorithm = options.weak ? WEAK : ALGORITHM;
  const keys = options.keys ?? ((await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as webcrypto.CryptoKeyPair);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: options.serial ?? randomBytes(8).toString("hex").replace(/^./, "1"),
    subject: [{ CN: [name] }],
    issuer: [{ CN: [issuer?.name ?? name] }],
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(authority !== undefined, authority?.pathLength, true),
      ...(uri === undefined ? [] : [new x509.SubjectAlternativeNameExtension([{ type: "url", value: uri }])]),
      ...(options.critical === undefined ? [] : [new x509.Extension(options.critical, true, new Uint8Array([0x30, 0x00]))]),
    ],
  });
  return {
    name,
    der: new Uint8Array(certificate.rawData),
    keys,
    keyPem: String(KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" })),
  };
}

/** What `authority` says to have revoked, in DER. */
export async function testRevocations(
  authority: TestCertificate,
  serials: readonly string[],
  ofMs = Date.now() - DAY_MS,
): Promise<Uint8Array> {
  const x509 = await loadX509();
  const crl = await x509.X509CrlGenerator.create({
    issuer: `CN=${authority.name}`,
    thisUpdate: new Date(ofMs),
    nextUpdate: new Date(Date.now() + DAY_MS),
    signingAlgorithm: ALGORITHM,
    signingKey: authority.keys.privateKey,
    entries: serials.map((serialNumber) => ({ serialNumber, revocationDate: new Date(Date.now() - DAY_MS) })),
  });
  return new Uint8Array(crl.rawData);
}

/** The certificate that `authority` makes of a request (PKCS #10, DER): with its names, or with another application URI. */
export async function signRequest(request: Uint8Array, authority: TestCertificate, days: number, uri?: string): Promise<Uint8Array> {
  const x509 = await loadX509();
  const asked = new x509.Pkcs10CertificateRequest(new Uint8Array(request));
  if (!(await asked.verify())) throw new Error("the request is not signed by its key");
  const names = asked.extensions.filter(({ type }) => type === "2.5.29.17");
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: randomBytes(8).toString("hex").replace(/^./, "1"),
    subject: asked.subject,
    issuer: [{ CN: [authority.name] }],
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + days * DAY_MS),
    signingAlgorithm: ALGORITHM,
    publicKey: await asked.publicKey.export(),
    signingKey: authority.keys.privateKey,
    extensions: uri === undefined ? names : [new x509.SubjectAlternativeNameExtension([{ type: "url", value: uri }])],
  });
  return new Uint8Array(certificate.rawData);
}
