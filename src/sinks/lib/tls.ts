import { open } from "node:fs/promises";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect, type PeerCertificate, TLSSocket } from "node:tls";
import { errorCode, messageOf, toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { withDeadline } from "./dial.ts";
import { isClose } from "./in-flight-window.ts";

/** TLS as the settings have it; without files: the authorities that Node knows, and no certificate of our own. */
export interface TlsSettings {
  readonly ca_file?: string | undefined;
  readonly cert_file?: string | undefined;
  readonly key_file?: string | undefined;
  /** Checked instead of the host's name, and asked for (SNI). */
  readonly server_name?: string | undefined;
  /** Asked for by ALPN (RFC 7301). */
  readonly alpn?: string | undefined;
}

/** The server of a TLS connection. */
interface TlsServer {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  /** How a command names the sink, for next steps. */
  readonly sink: string;
}

const MAX_FILE_BYTES = 1_048_576;

/**
 * TLS 1.2 or later over a connected socket, with the server's certificate and name checked. The files are read again each time, so that
 * renewed certificates are taken with the next connection. Throws ReasonError that says what is wrong with which certificate or file.
 */
export async function secure(
  socket: Socket,
  settings: TlsSettings,
  { host, port, timeoutMs, sink }: TlsServer,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const endpoint = `${host}:${port}`;
  socket.on("error", () => {});
  let secured: TLSSocket | undefined;
  try {
    const name = settings.server_name ?? host;
    const options: ConnectionOptions = {
      socket,
      host: name,
      ...(isIP(name) === 0 && { servername: name }),
      minVersion: "TLSv1.2",
      ...(settings.alpn !== undefined && { ALPNProtocols: [settings.alpn] }),
      ...(await filesOf(settings)),
    };
    const made = connect(options);
    secured = made;
    await withDeadline(handshake(made, endpoint, settings, sink), timeoutMs, signal, () => {
      return new ReasonError("TIMEOUT", `${endpoint} did not finish the TLS handshake within ${timeoutMs} ms; is it a port with TLS?`, {
        nextStep: noTlsStep(sink),
      });
    });
    return made;
  } catch (error) {
    secured?.on("error", () => {});
    secured?.destroy();
    socket.destroy();
    throw tlsReason(error, endpoint, settings, sink) ?? withQuestion(toReasonError(error), sink);
  }
}

const noTlsStep = (sink: string): string =>
  `If it is a port without TLS, type \`sudo collector sink set ${sink} tls=false\`, or give the sink the port with TLS; else look at the server's own log.`;

/** A port without TLS takes the first bytes of TLS for garbage, and closes. */
const withQuestion = (reason: ReasonError, sink: string): ReasonError =>
  isClose(reason.reason.type)
    ? new ReasonError(reason.reason, `${reason.message}, in the TLS handshake; if it is a port without TLS, remove tls from this sink`, {
        cause: reason,
        nextStep: noTlsStep(sink),
      })
    : reason;

async function filesOf(settings: TlsSettings): Promise<Pick<ConnectionOptions, "ca" | "cert" | "key">> {
  const read = (field: "ca_file" | "cert_file" | "key_file") => readField(field, settings[field]);
  const [ca, cert, key] = [await read("ca_file"), await read("cert_file"), await read("key_file")];
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

async function readField(field: string, file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  const wrong = (why: string, cause?: unknown) =>
    new ReasonError("UNKNOWN", `tls.${field}: ${file}: ${why}`, { condition: "configuration_invalid", cause });
  let content: Buffer;
  try {
    const handle = await open(file);
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_FILE_BYTES + 1));
      content = buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw wrong(messageOf(error), error);
  }
  if (content.length > MAX_FILE_BYTES) throw wrong(`it is larger than ${MAX_FILE_BYTES} bytes; name a PEM file`);
  if (!content.includes("-----BEGIN ")) throw wrong("it is not PEM; convert it with openssl x509 -in FILE -inform der, or openssl pkey");
  return content;
}

function handshake(socket: TLSSocket, endpoint: string, settings: TlsSettings, sink: string): Promise<void> {
  return new Promise((done, fail) => {
    const closed = () => new ReasonError("CONNECTION_CLOSED", `${endpoint} closed the connection`);
    // Node's own words for a FIN have the code of a reset, and not its number.
    const isFin = (error: unknown) => errorCode(error) === "ECONNRESET" && error instanceof Error && !("errno" in error);
    const failed = (error: unknown) => fail(tlsReason(error, endpoint, settings, sink) ?? (isFin(error) ? closed() : error));
    socket.once("error", failed);
    socket.once("close", () => failed(closed()));
    socket.once("secureConnect", () => {
      socket.off("error", failed);
      done();
    });
  });
}

/** Version, and whose certificate the server has, as the handshake left it. */
export function peerWords(socket: Duplex): string {
  if (!(socket instanceof TLSSocket)) return "TLS";
  const { subject, issuer, valid_to: until, subjectaltname: names }: Partial<PeerCertificate> = socket.getPeerCertificate() ?? {};
  const whose = [subject?.CN, names].filter((text) => text !== undefined && text !== "").join(", ");
  const end = until === undefined ? "" : `, valid until ${new Date(until).toISOString()}`;
  return `${socket.getProtocol() ?? "TLS"}: a certificate of ${whose === "" ? "no name" : whose}, by ${issuer?.CN ?? issuer?.O ?? "an issuer without a name"}${end}`;
}

/** OpenSSL's verification codes, as Node passes them on. */
const SERVER: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "has expired; renew it on the broker, and look at this machine's clock with `timedatectl`",
  CERT_NOT_YET_VALID: "is not valid yet; look at this machine's clock with `timedatectl`",
  DEPTH_ZERO_SELF_SIGNED_CERT: "is self-signed; name it as tls.ca_file of this sink if it is the right one",
  SELF_SIGNED_CERT_IN_CHAIN: "comes from an authority that is not known here; name the authority's certificate as tls.ca_file of this sink",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "comes from an authority that is not known here; name the authority's certificate as tls.ca_file of this sink, or let the broker send its whole chain",
  UNABLE_TO_GET_ISSUER_CERT: "comes from an authority that is not known here; name the whole chain in tls.ca_file of this sink",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "comes from an authority that is not known here; name the authority's certificate as tls.ca_file of this sink",
  CERT_REVOKED: "has been revoked; renew it on the broker",
  CERT_SIGNATURE_FAILURE: "has a signature that is wrong; is tls.ca_file of this sink that of another authority of the same name?",
};

/** The certificate that a person may add, by the code that says that it is not known. */
const UNKNOWN_HERE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "the server's certificate",
  SELF_SIGNED_CERT_IN_CHAIN: "the certificate of the server's authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the certificate of the server's authority",
  UNABLE_TO_GET_ISSUER_CERT: "the certificates of the server's authorities",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the certificate of the server's authority",
};

/** From the server itself: what comes over the network may be another's. */
const fileStep = (what: string, sink: string): string =>
  `Copy ${what} (PEM) from the server to this machine, as ca.pem, and type \`sudo collector sink set ${sink} tls.ca_file=ca.pem\`.`;

/** Says what TLS found wrong; undefined: it is not an error of TLS. `sink`: how a command names it. */
export function tlsReason(
  error: unknown,
  endpoint: string,
  { cert_file, server_name, alpn }: TlsSettings,
  sink: string,
): ReasonError | undefined {
  const code = errorCode(error);
  const refused = (text: string, nextStep?: string) =>
    new ReasonError("UNKNOWN", text, { condition: "certificate_refused", cause: error, nextStep });
  const words = SERVER[code];
  const unknown = UNKNOWN_HERE[code];
  if (words !== undefined)
    return refused(`the certificate of ${endpoint} ${words} (${code})`, unknown === undefined ? undefined : fileStep(unknown, sink));
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return refused(
      `the certificate of ${endpoint} is for another name: ${messageOf(error).replace(/^.*?altnames: /, "")}; ${
        server_name === undefined ? "set host or tls.server_name of this sink to a name in it" : "correct tls.server_name of this sink"
      }`,
    );
  if (
    /ALERT_(CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED)|HANDSHAKE_FAILURE/.test(
      code,
    )
  )
    return refused(
      cert_file === undefined
        ? `${endpoint} wants a certificate of this collector; set tls.cert_file and tls.key_file of this sink (${code})`
        : `${endpoint} does not accept the certificate ${cert_file}; it has to come from an authority that the broker knows and be valid (${code})`,
    );
  if (/ALERT_NO_APPLICATION_PROTOCOL/.test(code))
    return new ReasonError(
      "UNKNOWN",
      alpn === undefined
        ? `${endpoint} wants an application protocol by its name (ALPN); set tls.alpn of this sink to the one of its manual (${code})`
        : `${endpoint} does not know the application protocol ${JSON.stringify(alpn)}; correct tls.alpn of this sink (${code})`,
      { condition: "server_refuses", cause: error },
    );
  if (/^ERR_(OSSL|CRYPTO)_/.test(code))
    return new ReasonError(
      "UNKNOWN",
      `tls.cert_file and tls.key_file cannot be used together: ${messageOf(error)}; the key has to be the certificate's own, in PEM without a passphrase`,
      { condition: "configuration_invalid", cause: error },
    );
  if (/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)/.test(code))
    return new ReasonError("UNKNOWN", `${endpoint} does not speak TLS; correct the port, or remove tls from this sink (${code})`, {
      condition: "protocol_violation",
      cause: error,
      nextStep: noTlsStep(sink),
    });
  if (/^ERR_(SSL|TLS)_/.test(code))
    return new ReasonError("UNKNOWN", `TLS with ${endpoint} failed: ${messageOf(error)} (${code})`, {
      condition: "protocol_violation",
      cause: error,
    });
  return undefined;
}
