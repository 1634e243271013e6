import { createHash, X509Certificate } from "node:crypto";
import net from "node:net";
import { escapeControls } from "../../base/plain-text.ts";
import { messageOf } from "../../model/failure.ts";

/** Longest certificate that is looked at, in bytes of DER: RSA 4096 with many names takes 3 KiB. */
export const MAX_CERTIFICATE_BYTES = 32 * 1024;
/** A certificate and the authorities above it. */
export const MAX_CHAIN = 10;
/** Of a subject or a URI that is shown. */
const MAX_SHOWN = 200;

/** What of an X.509 certificate matters to OPC UA (OPC 10000-6, 6.2.2). The texts come from whoever made it: control characters are escaped. */
export interface Certificate {
  readonly der: Uint8Array;
  readonly x509: X509Certificate;
  /** SHA-1 over the DER, upper-case hex: what OPC UA tools show. */
  readonly thumbprint: string;
  /** `CN=…, O=…` in one line, at most 200 characters. */
  readonly subject: string;
  /** The URIs among its subject alternative names, as they are. */
  readonly uris: readonly string[];
  /** The first of them, shown. */
  readonly applicationUri: string | undefined;
  /** DNS names and IP addresses among its subject alternative names. */
  readonly hostNames: readonly string[];
  /** Epoch ms. */
  readonly notBefore: number;
  readonly notAfter: number;
  /**
   * Says of itself that it is an authority (basicConstraints), and is none of the self-signed certificates in which a device says so of its
   * own: where that is trusted, it is for itself only.
   */
  readonly isAuthority: boolean;
  /** False: somebody else signed it. */
  readonly isSelfSigned: boolean;
  /** Keys and signatures that others may break, in words: RSA below 2048 bits, SHA-1, MD5. */
  readonly weaknesses: readonly string[];
}

/** One certificate in DER, of any origin. Throws Error that says what is wrong with it. */
export function parseCertificate(der: Uint8Array): Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) throw new Error(`the certificate is longer than ${MAX_CERTIFICATE_BYTES} bytes`);
  const length = derLength(der);
  if (length === undefined) throw new Error("this is not a certificate: it does not begin like X.509 in DER");
  if (length !== der.length) throw new Error(`the certificate says that it has ${length} bytes, and ${der.length} came`);
  let x509: X509Certificate;
  try {
    x509 = new X509Certificate(der);
  } catch (error) {
    throw new Error(`this is not an X.509 certificate (${messageOf(error)})`, { cause: error });
  }
  const [notBefore, notAfter] = [x509.validFromDate.getTime(), x509.validToDate.getTime()];
  if (!Number.isFinite(notBefore) || !Number.isFinite(notAfter)) throw new Error("the certificate's validity cannot be read");
  try {
    // A key that OpenSSL cannot read serves for nothing, and must not surprise a later step.
    void x509.publicKey;
  } catch (error) {
    throw new Error(`the certificate's public key cannot be read (${messageOf(error)})`, { cause: error });
  }
  const names = alternativeNames(x509.subjectAltName);
  const uris = names.flatMap(([kind, name]) => (kind === "URI" ? [name] : []));
  return {
    // A copy: what came may be a view of something larger, and may be a Buffer, whose slice is one too.
    der: new Uint8Array(der),
    x509,
    thumbprint: thumbprintOf(der),
    subject: shown(x509.subject?.split("\n").join(", ") ?? "(no subject)"),
    uris,
    applicationUri: uris[0] === undefined ? undefined : shown(uris[0]),
    hostNames: names.flatMap(([kind, name]) => (kind === "DNS" || kind === "IP Address" ? [shown(name)] : [])),
    notBefore,
    notAfter,
    isAuthority: x509.ca && !isOfOneApplication(x509, uris),
    isSelfSigned: x509.subject === x509.issuer,
    weaknesses: weaknessesOf(x509),
  };
}

const LEAST_RSA_BITS = 2048;

function weaknessesOf({ publicKey, signatureAlgorithm }: X509Certificate): readonly string[] {
  const bits = publicKey.asymmetricKeyDetails?.modulusLength;
  const hash = /(sha|md)-?[15](?!\d)/i.exec(signatureAlgorithm ?? "")?.[1]?.toLowerCase();
  return [
    ...(bits !== undefined && bits < LEAST_RSA_BITS ? [`an RSA key of ${bits} bits`] : []),
    ...(hash === undefined ? [] : [`a signature with ${hash === "sha" ? "SHA-1" : "MD5"}`]),
  ];
}

/** Extended key usages of who serves and who connects (RFC 5280, 4.2.1.12). */
const PEER_USAGES: ReadonlySet<string> = new Set(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);

/** Signed by itself, and made for one application: it has its URI (OPC 10000-6, 6.2.2), or is for one end of a connection. */
const isOfOneApplication = (x509: X509Certificate, uris: readonly string[]): boolean =>
  x509.subject === x509.issuer && (uris.length > 0 || (x509.keyUsage ?? []).some((usage) => PEER_USAGES.has(usage)));

/** Whether its subject alternative names, or where it has none its common name, name this host name or address. */
export const namesHost = ({ x509 }: Certificate, host: string): boolean =>
  (net.isIP(host) ? x509.checkIP(host.replace(/%.*$/, "")) : x509.checkHost(host)) !== undefined;

/** As `parseCertificate`; undefined where it is none. */
export function tryCertificate(der: Uint8Array): Certificate | undefined {
  try {
    return parseCertificate(der);
  } catch {
    return undefined;
  }
}

/** SHA-1 over the DER, upper-case hex (OPC 10000-6, 6.7.2.3: the thumbprint is what a secure channel names a certificate by). */
export const thumbprintOf = (der: Uint8Array): string => createHash("sha1").update(der).digest("hex").toUpperCase();

const shown = (text: string): string => {
  const safe = escapeControls(text);
  return safe.length > MAX_SHOWN ? `${safe.slice(0, MAX_SHOWN - 1)}…` : safe;
};

/** `URI:urn:x, DNS:host, IP Address:10.0.0.1`, of which Node quotes as a JSON string what could be mistaken for more than one. */
function alternativeNames(text: string | undefined): (readonly [kind: string, name: string])[] {
  const found: (readonly [string, string])[] = [];
  for (const [, kind = "", quoted, plain = ""] of (text ?? "").matchAll(/([A-Za-z][A-Za-z ]*):(?:"((?:[^"\\]|\\.)*)"|([^,]*))(?:, |$)/g)) {
    if (found.length >= 100) break;
    found.push([kind, quoted === undefined ? plain : unquoted(quoted)]);
  }
  return found;
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text;
  }
}

/** Length of the DER element that `bytes` begin with, which has to be a SEQUENCE in the definite form; undefined: they do not (X.690, 8.1.3). */
function derLength(bytes: Uint8Array): number | undefined {
  const [tag, first] = bytes;
  if (tag !== 0x30 || first === undefined || first === 0x80) return undefined;
  if (first < 0x80) return 2 + first;
  const count = first & 0x7f;
  if (count > 3 || bytes.length < 2 + count) return undefined;
  let length = 0;
  for (let i = 0; i < count; i++) length = length * 256 + (bytes[2 + i] ?? 0);
  return 2 + count + length;
}

/**
 * The certificates of a chain that came as one or more byte strings, the peer's own first: OPC UA strings several together
 * (OPC 10000-6, 6.2.6). Those above that cannot be read are left out. Throws Error where the first is none or there are too many.
 */
export function splitChain(parts: readonly Uint8Array[]): Certificate[] {
  const certificates: Certificate[] = [];
  let count = 0;
  for (const part of parts) {
    if (part.length > MAX_CERTIFICATE_BYTES * MAX_CHAIN) throw new Error("the certificates are too long");
    for (let at = 0; at < part.length; ) {
      if (++count > MAX_CHAIN) throw new Error(`more than ${MAX_CHAIN} certificates came`);
      const rest = part.subarray(at);
      const bytes = rest.subarray(0, derLength(rest) ?? rest.length);
      at += bytes.length;
      const certificate = certificates.length === 0 ? parseCertificate(bytes) : tryCertificate(bytes);
      if (certificate) certificates.push(certificate);
    }
  }
  if (certificates.length === 0) throw new Error("no certificate came");
  return certificates;
}

const PEM = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]{1,100000}?)-----END CERTIFICATE-----/g;

/** The certificates of a file, in PEM (RFC 7468) or DER. Throws Error where there is none, or one of them is none. */
export function parseCertificateFile(bytes: Uint8Array): Certificate[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  if (!text.includes("-----BEGIN")) return splitChain([bytes]);
  const found: Certificate[] = [];
  for (const [, body = ""] of text.matchAll(PEM)) {
    if (found.length >= MAX_CHAIN) break;
    found.push(parseCertificate(Buffer.from(body, "base64")));
  }
  if (found.length === 0) throw new Error("the file holds no certificate");
  return found;
}

/** RFC 7468. */
export const toPem = (der: Uint8Array, label = "CERTIFICATE"): string =>
  `-----BEGIN ${label}-----\n${(
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? []
  ).join("\n")}\n-----END ${label}-----\n`;

/** `2026-11-20`; a time that no calendar has is returned as it is. */
export const dayOf = (ms: number): string => {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString().slice(0, 10);
};
