import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { quote } from "../lib/text.ts";
import { codeOf, isBusy, isTooMuch, STATUS, type StatusName } from "./status-codes.ts";

/** A status that a server gave instead of doing what it was asked. */
export interface ServerStatus {
  readonly code: number;
  /** From the specification's list; null where it has none. */
  readonly name: string | null;
  readonly description: string | null;
  /** The server's own words. */
  readonly reason: string | null;
}

const TRUST_US =
  "put the collector's certificate among the trusted ones of the server (often it lies there among the rejected ones already); `collector pki list` shows its thumbprint";

/** What a status means for the person at the machine, and what to do. Each is told from every other. */
const WORDS: Partial<Record<StatusName, string>> = {
  BadCertificateUntrusted: `the server does not trust the collector's certificate: ${TRUST_US}`,
  BadSecurityChecksFailed: `the server does not accept the collector's certificate and does not say why, mostly because it does not trust it: ${TRUST_US}`,
  BadCertificateChainIncomplete: "the server misses the issuer of the collector's certificate: give it the issuer's certificate",
  BadCertificateRevoked: "the server holds the collector's certificate for revoked: make a new one with `collector pki renew`",
  BadCertificateRevocationUnknown:
    "the server finds no revocation list for the collector's certificate: give it the list, or let it do without",
  BadCertificateInvalid: "the server cannot use the collector's certificate: look into the server's log",
  BadCertificateUseNotAllowed: "the server misses a key usage in the collector's certificate: make a new one with `collector pki renew`",
  BadCertificateTimeInvalid:
    "the server holds the collector's certificate for expired or not valid yet: compare the clocks of both, then `collector pki list` for its dates",
  BadCertificateIssuerTimeInvalid: "the certificate of the issuer has expired or is not valid yet: compare the clocks of both",
  BadCertificateHostNameInvalid:
    "the server does not find the collector's host in the collector's certificate: make a new one with `collector pki renew`",
  BadCertificateUriInvalid:
    "the application URI that the collector gave is not that of its certificate: make a new one with `collector pki renew`",
  BadInvalidTimestamp: "the clocks of server and collector are too far apart: set both by the same time server",
  BadIdentityTokenRejected:
    "the server rejects the user: check user name and password, or the user certificate, and that the server knows it",
  BadIdentityTokenInvalid: "the server cannot use the user token: check user_identity and token_security_policy",
  BadUserAccessDenied: "the server knows the user and does not let it in, or the password is wrong: check password and rights",
  BadUserSignatureInvalid:
    "the server does not accept the signature of the user certificate: certificate and key in pki/users must belong together",
  BadApplicationSignatureInvalid:
    "the server does not accept the collector's signature: `collector pki renew`, and trust the new certificate at the server",
  BadTooManySessions: "the server has no session free: close other clients, or raise its limit",
  BadTcpServerTooBusy: "the server takes no more connections at the moment",
  BadTcpNotEnoughResources: "the server has no resources for another connection",
  BadTooManySubscriptions: "the server has no subscription free: use read_mode plain, or raise its limit",
  BadServerTooBusy: "the server is too busy at the moment",
  BadTcpEndpointUrlInvalid: "the server does not know this path: check endpoint_url",
  BadSecurityPolicyRejected: "the server does not take this security policy: check security_settings",
  BadSecurityModeRejected: "the server does not take this security mode: check security_settings",
  BadTooManyOperations: "the server refuses so many at once: it is asked for fewer (max_nodes sets the most)",
  BadEncodingLimitsExceeded: "the answer would be too large: it is asked for less (max_nodes sets the most)",
  BadResponseTooLarge: "the answer would be too large: it is asked for less (max_nodes sets the most)",
  BadRequestTooLarge: "the request is too large for the server: it is asked for less (max_nodes sets the most)",
  BadTcpMessageTooLarge: "the message is too large for the server: it is asked for less (max_nodes sets the most)",
  BadSessionIdInvalid: "the server has ended the session: a new one is opened",
  BadSessionClosed: "the server has ended the session: a new one is opened",
  BadSessionNotActivated: "the server does not hold the session for activated: a new one is opened",
  BadTcpSecureChannelUnknown: "the server has forgotten the secure channel: a new one is opened",
  BadShutdown: "the server is shutting down",
  BadServerHalted: "the server has halted",
};

const WORDS_OF = new Map(Object.entries(WORDS).map(([name, words]) => [STATUS[name as StatusName] as number, words]));

/** `0x80210000`. */
const hexCode = (code: number): string => `0x${(code >>> 0).toString(16).toUpperCase().padStart(8, "0")}`;

/** `BadNodeIdUnknown (0x80340000): The node id refers to …`. */
export function describeCode({ code, name, description }: Pick<ServerStatus, "code" | "name" | "description">): string {
  return `${name ?? "a status"} (${hexCode(code)}): ${description ?? "not in the specification"}`;
}

/** `BadIdentityTokenRejected (0x80210000) to ActivateSession: …; the server says: "…"`. */
function describeStatus({ code, name, description, reason }: ServerStatus, to: string): string {
  const words = WORDS_OF.get(codeOf(code)) ?? description ?? "not in the specification";
  const own = reason === null ? "" : `; the server says: ${quote(reason, 300)}`;
  return `${name ?? "a status"} (${hexCode(code)}) to ${to}: ${words}${own}`;
}

/** What a server says of a session or channel that it has ended or forgotten (OPC 10000-4, 7.39). */
const LOST: ReadonlySet<number> = new Set([
  STATUS.BadSessionIdInvalid,
  STATUS.BadSessionClosed,
  STATUS.BadSessionNotActivated,
  STATUS.BadSecureChannelIdInvalid,
  STATUS.BadSecureChannelClosed,
  STATUS.BadTcpSecureChannelUnknown,
]);

/** The source failed with what the server said (API-V2, 2.3). */
export function errorResponse(status: ServerStatus, to: string): ReasonError {
  const { code, name, description, reason } = status;
  return new ReasonError({ type: "OPC_UA_ERROR_RESPONSE", code: code >>> 0, name, description, reason }, describeStatus(status, to), {
    sessionLost: LOST.has(codeOf(code)),
  });
}

/** A refused request within a good session: the request's fault, or the end of the session. */
export function requestFailure(status: ServerStatus, to: string): FaultError | ReasonError {
  if (isTooMuch(status.code)) return new FaultError("device_error", describeStatus(status, to));
  if (isBusy(status.code)) return new FaultError("device_error", describeStatus(status, to), { scope: "busy" });
  return errorResponse(status, to);
}

/** Certificates that we do not accept: the API has no reason for that. */
export const certificateRefused = (words: string): ReasonError => new ReasonError("UNKNOWN", words, { condition: "certificate_refused" });

export const protocolViolation = (words: string): ReasonError => new ReasonError("UNKNOWN", words, { condition: "protocol_violation" });
