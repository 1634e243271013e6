import { readFile } from "node:fs/promises";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { literalAddress } from "../../src/model/address.ts";
import type { VendorGatewayDetails } from "../../src/model/details.ts";
import { messageOf } from "../../src/model/failure.ts";
import type { CertificateLife, Pki } from "../../src/model/pki.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { ConnectInput, DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { type Carrier, layered, openTls } from "../lib/layer.ts";
import type { GatewaySettings } from "./settings.ts";

type Input = ConnectInput<VendorGatewayDetails, GatewaySettings>;

/** A connection as the settings want it, and what people should know of it. */
export interface Secured {
  readonly connection: Connection;
  readonly warnings: readonly Warning[];
  /** The life of the gateway's certificate. Absent: the security needs none. */
  readonly life?: CertificateLife;
}

const CHUNK_BYTES = 65_536;

/** TLS goes over TCP as it is. */
const PLAIN: Carrier = {
  maxPayloadBytes: CHUNK_BYTES,
  maxFrameBytes: CHUNK_BYTES,
  wrap: (payload) => payload,
  frameLength: (bytes, start) => bytes.length - start,
  unwrap: (frame) => frame,
};

/** With forward secrecy: a key that is found later opens nothing that was recorded. */
const PSK_CIPHERS = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:ECDHE-PSK-CHACHA20-POLY1305:DHE-PSK-AES128-GCM-SHA256";
const MAX_CHAIN = 10;

/** Throws ReasonError, and the connection is closed: the handshake fails, the certificate is not trusted, the key is missing. */
export async function secure(connection: Connection, input: Input, ctx: DriverContext): Promise<Secured> {
  const { security } = input.settings;
  if (security === "none") return { connection, warnings: [] };
  try {
    return await (security === "psk" ? byKey(connection, input, ctx) : byCertificate(connection, input, ctx));
  } catch (error) {
    void connection.close();
    throw error;
  }
}

async function byKey(connection: Connection, { settings, secrets }: Input, ctx: DriverContext): Promise<Secured> {
  const key = keyOf(secrets["password"]);
  const { connection: inner, socket } = await openTls(
    connection,
    layered(connection, PLAIN),
    {
      minVersion: "TLSv1.2",
      ciphers: PSK_CIPHERS,
      pskCallback: () => ({ psk: key, identity: settings.psk_identity }),
      // No authority: a gateway that shows a certificate instead of knowing the key is refused.
      ca: [],
      rejectUnauthorized: true,
      checkServerIdentity: () => undefined,
    },
    ctx,
  ).catch((error: unknown) => {
    throw keyRefused(error, settings.psk_identity);
  });
  if (!hasCertificate(socket)) return { connection: inner, warnings: [] };
  const refused = certificateRefused("the gateway shows a certificate instead of knowing the key");
  inner.fail(refused, "destroy");
  throw refused;
}

/** Throws ReasonError without a word of the key. */
function keyOf(secret: string | undefined): Buffer {
  if (secret === undefined)
    throw new ReasonError("UNKNOWN", "the key of the gateway is not on this machine; type: sudo collector secret set SOURCE", {
      condition: "secret_missing",
    });
  if (!/^(?:[0-9a-fA-F]{2}){16,64}$/.test(secret.trim()))
    throw new ReasonError("UNKNOWN", "the key of the gateway must have 32 to 128 hexadecimal digits, as openssl rand -hex 32 makes them", {
      condition: "configuration_invalid",
    });
  return Buffer.from(secret.trim(), "hex");
}

function keyRefused(error: unknown, identity: string): unknown {
  if (!(error instanceof ReasonError) || error.reason.type === "TIMEOUT") return error;
  const advice = `security is psk: has the gateway the same key, under the name ${identity}?`;
  const isTls = error.condition === "protocol_violation" || error.condition === "certificate_refused";
  return new ReasonError(error.reason, `${error.message}; ${advice}`, {
    cause: error,
    sessionLost: false,
    ...(isTls ? { condition: "server_refuses" } : error.condition && { condition: error.condition }),
  });
}

const hasCertificate = (socket: TLSSocket): boolean => Object.keys(socket.getPeerCertificate() as PeerCertificate | object).length > 0;

async function byCertificate(connection: Connection, { details, settings }: Input, ctx: DriverContext): Promise<Secured> {
  if (!ctx.pki)
    throw new ReasonError("UNKNOWN", "security certificate needs a state folder to keep certificates in (state_dir)", {
      condition: "configuration_invalid",
    });
  const own = await ownPair(ctx.pki);
  const { connection: inner, socket } = await openTls(
    connection,
    layered(connection, PLAIN),
    {
      minVersion: "TLSv1.2",
      ...own,
      // It is judged below, by what people trust on this machine.
      rejectUnauthorized: false,
      ...(literalAddress(details.host) === undefined && { servername: details.host }),
    },
    ctx,
  );
  try {
    return { connection: inner, ...(await trust(chainOf(socket), ctx.pki, { details, settings }, ctx)) };
  } catch (error) {
    inner.fail(error instanceof ReasonError ? error : certificateRefused(messageOf(error)), "close");
    throw error;
  }
}

/** What the collector shows where the gateway asks for it. */
async function ownPair(pki: Pki): Promise<{ readonly cert: string; readonly key: string }> {
  try {
    const { certificateFile, privateKeyFile } = await pki.own();
    return { cert: await readFile(certificateFile, "utf8"), key: await readFile(privateKeyFile, "utf8") };
  } catch (error) {
    throw new ReasonError("UNKNOWN", `security certificate needs the collector's own certificate: ${messageOf(error)}`, {
      cause: error,
      condition: "configuration_invalid",
    });
  }
}

/** DER, the gateway's own first. */
function chainOf(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  for (let next = socket.getPeerX509Certificate(); next && chain.length < MAX_CHAIN; next = next.issuerCertificate) chain.push(next.raw);
  return chain;
}

async function trust(
  chain: readonly Uint8Array[],
  pki: Pki,
  { details: { host, port }, settings }: Pick<Input, "details" | "settings">,
  ctx: DriverContext,
): Promise<Omit<Secured, "connection">> {
  if (chain.length === 0) throw certificateRefused("the gateway has no certificate");
  const verdict = await pki.judge(chain, { of: "server", peer: `gateway ${host}:${port}`, trust: settings.trust, hosts: [host] });
  if (!verdict.trusted) throw certificateRefused(verdict.words);
  if (verdict.firstUse) ctx.log.info({ thumbprint: verdict.thumbprint }, "trusted the gateway's certificate on first use");
  const unnamed = warning(
    "certificate_unnamed",
    `the gateway's certificate does not name ${host}; it is trusted by its thumbprint ${verdict.thumbprint}`,
  );
  return { warnings: verdict.hosts.length > 0 ? [] : [unnamed], life: verdict.life };
}

const certificateRefused = (words: string): ReasonError => new ReasonError("UNKNOWN", words, { condition: "certificate_refused" });
