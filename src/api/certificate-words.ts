import { errorCode, messageOf } from "../model/failure.ts";
import { firstOf } from "./network-words.ts";

/** OpenSSL's words for certificates whose dates do not fit this machine's clock. */
const DATES: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID: "is not valid yet",
  CERT_HAS_EXPIRED: "has expired",
};

/** Why the server's certificate is refused, for people; undefined: it is none of a certificate's errors. `now` is this machine's clock. */
export function certificateWords(error: Error, now = new Date()): string | undefined {
  const inner = firstOf(error);
  const code = errorCode(inner);
  const date = DATES[code];
  if (date !== undefined) {
    const clock = now.toISOString().slice(0, 16).replace("T", " ");
    return (
      `the server's certificate, or that of an authority above it, ${date} (${code}) by the clock of this machine, which shows ${clock} UTC: ` +
      "correct the clock if it is wrong (timedatectl), else have the certificate renewed"
    );
  }
  if (!/^(ERR_TLS_CERT|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH)/.test(code)) return undefined;
  const remedy =
    code === "ERR_TLS_CERT_ALTNAME_INVALID" ? "api.url needs a name that is in it" : "api.tls.ca_file names the authorities to trust";
  return `the server's certificate is not accepted: ${messageOf(inner)} (${code}); ${remedy}`;
}

/** What a failed handshake is about, by its code. */
export function tlsWords(code: string): string {
  // The alerts of a server that asks for a certificate of its client (RFC 8446, 6.2).
  if (/ALERT_(CERTIFICATE_|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED)|CERTIFICATE_REQUIRED/.test(code))
    return `the server does not accept the certificate of this collector, or wants one: see api.tls.cert_file and api.tls.key_file (${code})`;
  return `TLS cannot be agreed on with what answers (${code})`;
}
