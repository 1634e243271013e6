import { createHash, generateKeyPair, type KeyObject, webcrypto, X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { CertificatePurpose, createSelfSignedCertificate } from "node-opcua-crypto";

/** A certificate with its key, in memory: hand it to a later start and the server keeps its identity. */
export interface SimulatorCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS#8. */
  readonly privateKey: string;
  readonly der: Uint8Array;
  /** SHA-1 over the DER, upper-case hex. */
  readonly thumbprint: string;
}

export interface CertificateWish {
  readonly applicationUri: string;
  readonly commonName?: string;
  /** now: for the coming ten years; expired: until yesterday; not_yet_valid: from tomorrow. */
  readonly validity?: "now" | "expired" | "not_yet_valid";
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  /** A key of its own, where another certificate of this process must not share it. Takes about 100 ms. */
  readonly freshKey?: boolean;
  /** user: the certificate of a person, who logs in with it. */
  readonly of?: "application" | "user";
}

const DAY_MS = 86_400_000;
const makeKey = async (): Promise<KeyObject> => (await promisify(generateKeyPair)("rsa", { modulusLength: 2048 })).privateKey;
let sharedKey: Promise<KeyObject> | undefined;

/** Makes a self-signed certificate (RSA 2048, SHA-256) as OPC 10000-6, 6.2.2 has them. The key is made once per process unless a fresh one is wished. */
export async function makeCertificate(wish: CertificateWish): Promise<SimulatorCertificate> {
  sharedKey ??= makeKey();
  const key = await (wish.freshKey ? makeKey() : sharedKey);
  const privateKey = key.export({ type: "pkcs8", format: "pem" }).toString();
  const signer = await webcrypto.subtle.importKey(
    "pkcs8",
    key.export({ type: "pkcs8", format: "der" }),
    { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
    true,
    ["sign"],
  );
  const [from, to] = { now: [-1, 3650], expired: [-30, -1], not_yet_valid: [1, 30] }[wish.validity ?? "now"] as [number, number];
  const { cert } = await createSelfSignedCertificate({
    privateKey: signer,
    subject: `CN=${wish.commonName ?? "Simulator"}/O=Simulator`,
    applicationUri: wish.applicationUri,
    dns: [...(wish.dns ?? ["localhost"])],
    ip: [...(wish.ip ?? ["127.0.0.1"])],
    notBefore: new Date(Date.now() + from * DAY_MS),
    notAfter: new Date(Date.now() + to * DAY_MS),
    purpose: wish.of === "user" ? CertificatePurpose.ForUserAuthentication : CertificatePurpose.ForApplication,
  });
  return certificateOf(cert, privateKey);
}

export function certificateOf(certificate: string, privateKey: string): SimulatorCertificate {
  const der = new Uint8Array(new X509Certificate(certificate).raw);
  return { certificate, privateKey, der, thumbprint: createHash("sha1").update(der).digest("hex").toUpperCase() };
}

/** Writes both into the folder; the names are those that are given back. */
export async function writeCertificate(
  folder: string,
  name: string,
  { certificate, privateKey }: SimulatorCertificate,
): Promise<{ readonly certificateFile: string; readonly privateKeyFile: string }> {
  const certificateFile = path.join(folder, `${name}.pem`);
  const privateKeyFile = path.join(folder, `${name}.key.pem`);
  await writeFile(certificateFile, certificate);
  await writeFile(privateKeyFile, privateKey, { mode: 0o600 });
  return { certificateFile, privateKeyFile };
}
