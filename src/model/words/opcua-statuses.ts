/** What is known of a status with which an OPC UA server refuses (OPC 10000-4, 7.39). */
export interface KnownStatus {
  /** Why, as a clause: it begins in lower case and has no full stop. The driver's detail and the catalogue say it. */
  readonly cause: string;
  /** What to do, in sentences, with the command to type between backticks. The catalogue alone says it. */
  readonly nextStep: string;
  /** It is about the collector's own certificate: whoever reads it wants to know which one that is. */
  readonly isAboutOwnCertificate?: true;
}

const TRUST =
  "Move the collector's certificate to the trusted ones of the server, which usually has it among the rejected ones; `collector pki list` shows its thumbprint.";
const RENEW = "Type `sudo collector pki renew`, and trust the new certificate on the server.";
const REVOCATIONS = "Give the server the revocation list, or let it do without one; `collector pki list` shows the certificate.";
const SERVER_LOG = "Look into the server's log for what it misses; `collector pki list` shows the certificate.";
const CLOCKS =
  "Compare the clocks of both; `collector pki list` shows from when to when the certificate is valid, `sudo collector pki renew` makes a new one.";
const USER = "Correct the user name, set the password with `sudo collector secret set SOURCE`, or correct the user's rights on the server.";
const SECURITY = "Correct security_settings of the data source, or switch on what it wants on the server.";
const CLIENTS = "Close other OPC UA clients of this server; a session that the collector has lost ends after its time-out.";
const BUSY = "Close other OPC UA clients of this server, or read more seldom.";
const SUBSCRIPTIONS = "Set read_mode: plain in the settings of the data source, or raise the server's limit.";
const LESS = "Nothing: the collector asks for less, and says so in its notes. max_nodes in the settings of the data source sets the most.";
const AGAIN = "Nothing: a new session is opened. If it comes again and again, look into the log of the server.";

const ofOurCertificate = (cause: string, nextStep: string): KnownStatus => ({ cause, nextStep, isAboutOwnCertificate: true });
const of = (cause: string, nextStep: string): KnownStatus => ({ cause, nextStep });

const KNOWN: Readonly<Record<string, KnownStatus>> = {
  BadCertificateUntrusted: ofOurCertificate("the server does not trust the collector's certificate", TRUST),
  BadSecurityChecksFailed: ofOurCertificate(
    "the server does not accept the collector's certificate and does not say why, mostly because it does not trust it",
    TRUST,
  ),
  BadCertificateChainIncomplete: ofOurCertificate(
    "the server misses the issuer of the collector's certificate",
    "The collector's certificate is self-signed: add it to the trusted ones of the server; `collector pki list` shows its thumbprint.",
  ),
  BadNoValidCertificates: ofOurCertificate("the collector has given no certificate that the server takes", TRUST),
  BadCertificateInvalid: ofOurCertificate("the server cannot use the collector's certificate", SERVER_LOG),
  BadCertificatePolicyCheckFailed: ofOurCertificate(
    "the collector's certificate is not as the server's security policy wants it",
    SERVER_LOG,
  ),
  BadCertificateRevoked: ofOurCertificate("the server holds the collector's certificate for revoked", RENEW),
  BadCertificateIssuerRevoked: ofOurCertificate("the server holds the issuer of the collector's certificate for revoked", RENEW),
  BadCertificateRevocationUnknown: ofOurCertificate("the server finds no revocation list for the collector's certificate", REVOCATIONS),
  BadCertificateIssuerRevocationUnknown: ofOurCertificate(
    "the server finds no revocation list for the issuer of the collector's certificate",
    REVOCATIONS,
  ),
  BadCertificateUseNotAllowed: ofOurCertificate("the server misses a key usage in the collector's certificate", RENEW),
  BadCertificateIssuerUseNotAllowed: ofOurCertificate(
    "the server misses a key usage in the certificate of the issuer of the collector's",
    RENEW,
  ),
  BadCertificateTimeInvalid: ofOurCertificate("the server rejects the collector's certificate: expired or not yet valid", CLOCKS),
  BadCertificateIssuerTimeInvalid: ofOurCertificate("the server rejects our issuer's certificate: expired or not yet valid", CLOCKS),
  BadCertificateHostNameInvalid: ofOurCertificate("the server does not find the collector's host in the collector's certificate", RENEW),
  BadCertificateUriInvalid: ofOurCertificate("the application URI that the collector gave is not that of its certificate", RENEW),
  BadApplicationSignatureInvalid: of("the server does not accept the collector's signature", RENEW),
  BadInvalidTimestamp: of(
    "the clocks of the server and of this machine are too far apart",
    "Set both by the same time server; `timedatectl` shows the state of this machine's clock.",
  ),

  BadIdentityTokenRejected: of("the server rejects the user: name or password, or the user certificate, is wrong or not known there", USER),
  BadUserAccessDenied: of("the server denies it to this user: the password is wrong, or rights are missing", USER),
  BadIdentityTokenInvalid: of(
    "the server cannot use the user token",
    "Correct user_identity and token_security_policy of the data source.",
  ),
  BadUserSignatureInvalid: of(
    "the server does not accept the signature of the user certificate",
    "Certificate and key in pki/users must belong together: `sudo collector pki user NAME CERTIFICATE KEY` puts them there.",
  ),
  BadSecurityPolicyRejected: of("the server does not take this security policy", SECURITY),
  BadSecurityModeRejected: of("the server does not take this security mode", SECURITY),
  BadTcpEndpointUrlInvalid: of(
    "the server does not know the path in endpoint_url",
    "Correct endpoint_url; the server's own tools show its address, `collector browse opcua endpoint_url=URL` tries one.",
  ),

  BadTooManySessions: of("the server has no session free: it has as many sessions open as it takes", CLIENTS),
  BadTcpServerTooBusy: of("the server takes no more connections at the moment", CLIENTS),
  BadTcpNotEnoughResources: of("the server has no resources for another connection", CLIENTS),
  BadServerTooBusy: of("the server is too busy at the moment", BUSY),
  BadTooManySubscriptions: of("the server has no subscription free", SUBSCRIPTIONS),
  BadTooManyMonitoredItems: of("the server watches as many variables as it can", SUBSCRIPTIONS),

  BadTooManyOperations: of("the server refuses so many at once", LESS),
  BadEncodingLimitsExceeded: of("the answer would be too large", LESS),
  BadResponseTooLarge: of("the answer would be too large", LESS),
  BadRequestTooLarge: of("the request is too large for the server", LESS),
  BadTcpMessageTooLarge: of("the message is too large for the server", LESS),
  BadOutOfMemory: of("the server has not memory enough for it", LESS),

  BadSessionIdInvalid: of("the server has ended the session", AGAIN),
  BadSessionClosed: of("the server has ended the session", AGAIN),
  BadSessionNotActivated: of("the server does not hold the session for activated", AGAIN),
  BadTcpSecureChannelUnknown: of("the server has forgotten the secure channel", AGAIN),
  BadSecureChannelIdInvalid: of("the server has forgotten the secure channel", AGAIN),
  BadSecureChannelClosed: of("the server has closed the secure channel", AGAIN),
  BadShutdown: of("the server is shutting down", AGAIN),
  BadServerHalted: of("the server has halted", AGAIN),
};

/** The names that `knownStatus` knows. */
export const KNOWN_STATUSES: readonly string[] = Object.keys(KNOWN);

/** By the specification's name, such as BadTooManySessions; undefined: nothing is known but the name. */
export const knownStatus = (name: string | null): KnownStatus | undefined =>
  name !== null && Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined;
