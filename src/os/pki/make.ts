import { createHash, createPublicKey, generateKeyPair, type KeyObject, webcrypto } from "node:crypto";
import { promisify } from "node:util";

/** Host names, and addresses, that a certificate takes from the machine. */
const MAX_NAMES = 16;
/** Basic128Rsa15 and Basic256 take keys of at most 2048 bits, the current policies of at least that (OPC 10000-7, asymmetric key lengths). */
const KEY_BITS = 2048;
export const DAY_MS = 86_400_000;
/** Clocks of controllers lag: a certificate is valid a day before it was made. */
const BACKDATED_MS = DAY_MS;
export const VALIDITY_DAYS = 5 * 365;
/** If a machine without a battery has lost the time, its clock says 1970: no certificate of ours is that old. */
export const EARLIEST_MS = Date.UTC(2026, 0, 1);

export interface CertificateSubject {
  readonly applicationUri: string;
  /** Common name. */
  readonly name: string;
  readonly dns: readonly string[];
  readonly ip: readonly string[];
}

/** A new RSA key. */
export async function makeKey(): Promise<KeyObject> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: KEY_BITS, publicExponent: 0x10001 });
  return privateKey;
}

/** Which key it is: 16 hex digits of the SHA-256 over its public half (SubjectPublicKeyInfo), given that or the private one. */
export function keyId(key: KeyObject): string {
  const spki = (key.type === "private" ? createPublicKey(key) : key).export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("hex").slice(0, 16);
}

/**
 * A self-signed application instance certificate (OPC 10000-6, 6.2.2), DER: RSA and SHA-256, valid from a day before `nowMs` for five years.
 * The library that writes it is loaded here and nowhere else: who only reads certificates does not pay for it.
 */
export async function makeCertificate(
  key: KeyObject,
  { applicationUri, name, dns, ip }: CertificateSubject,
  nowMs: number,
): Promise<Uint8Array> {
  const x509 = await loadX509();
  const keys = await keyPairOf(key);
  const from = Math.max(nowMs, EARLIEST_MS);
  const { KeyUsageFlags: usage } = x509;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [name] }, { O: ["collector"] }],
    notBefore: new Date(from - BACKDATED_MS),
    notAfter: new Date(from + VALIDITY_DAYS * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      // 6.2.2: self-signed certificates have keyCertSign as well, although they are no authority.
      new x509.KeyUsagesExtension(
        usage.digitalSignature | usage.nonRepudiation | usage.keyEncipherment | usage.dataEncipherment | usage.keyCertSign,
        true,
      ),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth], false),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      new x509.SubjectAlternativeNameExtension(namesOf({ applicationUri, dns, ip })),
    ],
  });
  return new Uint8Array(certificate.rawData);
}

/** A request (PKCS #10, DER) for an authority to sign a certificate for this key, with what OPC 10000-6, 6.2.2 wants of it. */
export async function makeSigningRequest(key: KeyObject, subject: CertificateSubject): Promise<Uint8Array> {
  const x509 = await loadX509();
  const { KeyUsageFlags: usage } = x509;
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [subject.name] }, { O: ["collector"] }],
    signingAlgorithm: ALGORITHM,
    keys: await keyPairOf(key),
    extensions: [
      new x509.KeyUsagesExtension(usage.digitalSignature | usage.nonRepudiation | usage.keyEncipherment | usage.dataEncipherment, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth], false),
      new x509.SubjectAlternativeNameExtension(namesOf(subject)),
    ],
  });
  return new Uint8Array(request.rawData);
}

const ALGORITHM = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };

async function keyPairOf(key: KeyObject): Promise<webcrypto.CryptoKeyPair> {
  const { subtle } = webcrypto;
  return {
    privateKey: await subtle.importKey("pkcs8", key.export({ type: "pkcs8", format: "der" }), ALGORITHM, false, ["sign"]),
    publicKey: await subtle.importKey("spki", createPublicKey(key).export({ type: "spki", format: "der" }), ALGORITHM, true, ["verify"]),
  };
}

const namesOf = ({ applicationUri, dns, ip }: Omit<CertificateSubject, "name">) => [
  { type: "url" as const, value: applicationUri },
  ...dns.slice(0, MAX_NAMES).map((value) => ({ type: "dns", value }) as const),
  ...ip.slice(0, MAX_NAMES).map((value) => ({ type: "ip", value }) as const),
];

/** Loaded when first needed: it takes a tenth of a second and 20 MB. */
export async function loadX509(): Promise<X509> {
  await import("reflect-metadata");
  const loaded: X509 & { readonly default?: X509 } = await import("@peculiar/x509");
  // In the bundle what a CommonJS module exports is its default alone.
  return loaded.default ?? loaded;
}

type X509 = typeof import("@peculiar/x509");
