import { randomBytes } from "node:crypto";
import { computeSignatureAsync, type NodeId, type SecurityPolicy, verifySignature } from "node-opcua-client";
import type { CertificateLife, OwnCertificate } from "../../src/model/pki.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "../lib/abort.ts";
import type { Channel } from "./client.ts";
import { type Choice, needsCertificate, type Wanted } from "./endpoint.ts";
import { certificateRefused, protocolViolation } from "./failure.ts";
import { makeToken, type Signature, type User } from "./identity.ts";
import { type KeyPair, makeRequest, type RequestOf, type ResponseOf, splitChain } from "./services.ts";
import type { OpcuaSettings } from "./settings.ts";

/** A session of the server's that belongs to us. */
export interface OpenedSession {
  readonly channel: Channel;
  /** A service call of this session's: puts its token on the request. Throws what the channel's does. */
  readonly call: Channel["call"];
  /** What ends it. */
  readonly closeRequest: RequestOf<"CloseSession">;
  /** Without a request the server ends it after this long. */
  readonly timeoutMs: number;
  readonly warnings: readonly Warning[];
  /** The life of the server's certificate; undefined: the security needs none. */
  readonly life: CertificateLife | undefined;
}

/** The collector's certificate with its key. */
export interface Own {
  readonly certificate: OwnCertificate;
  readonly pair: KeyPair;
}

/** Bytes of the nonces of a session (OPC 10000-4, 5.7.2). */
const NONCE_BYTES = 32;
const SESSION_NAME = "collector";
/** How long a session that nobody waits for any more may take to come, so that it can be ended. */
const LATE_MS = 5000;

/** What was chosen before. */
export interface Creation {
  readonly wanted: Wanted;
  readonly choice: Choice;
  readonly chain: readonly Buffer[];
  readonly own: Own | undefined;
  readonly user: User;
  readonly settings: OpcuaSettings;
  readonly warnings: readonly Warning[];
  readonly life: CertificateLife | undefined;
  /** The server may hold a session that could not be ended. */
  onLost(): void;
}

/**
 * CreateSession and ActivateSession (OPC 10000-4, 5.7.2 and 5.7.3). Throws ReasonError or FaultError; the channel is closed then, but where the
 * answer to CreateSession is late: up to LATE_MS more it stays open, so that a session that comes after all can be ended.
 */
export async function createSession(channel: Channel, creation: Creation, ctx: DriverContext): Promise<OpenedSession> {
  const { wanted, choice, own, user, settings } = creation;
  const clientNonce = randomBytes(NONCE_BYTES);
  const created = await answered(
    channel,
    makeRequest("CreateSession", {
      requestHeader: { returnDiagnostics: SERVICE_DIAGNOSTICS },
      clientDescription: {
        applicationUri: own?.certificate.applicationUri ?? "urn:collector",
        productUri: "urn:collector",
        applicationName: { text: "collector" },
        applicationType: CLIENT,
      },
      endpointUrl: wanted.endpointUrl,
      sessionName: SESSION_NAME,
      clientNonce,
      ...(wanted.mode !== "None" && own && { clientCertificate: own.pair.certificate }),
      requestedSessionTimeout: settings.session_timeout,
      maxResponseMessageSize: settings.max_answer_bytes,
    }),
    creation,
    ctx,
  );
  try {
    verifyServer(channel, creation, created, clientNonce);
    const serverCertificate = splitChain(created.serverCertificate ?? Buffer.alloc(0))[0] ?? creation.chain[0] ?? Buffer.alloc(0);
    const serverNonce = created.serverNonce ?? Buffer.alloc(0);
    const tokenCertificate = creation.chain[0] ?? serverCertificate;
    const { token, signature } = await makeToken(user, {
      policyId: choice.token.policyId,
      policyUri: choice.tokenPolicyUri,
      serverCertificate: tokenCertificate,
      serverNonce,
    });
    const ours = wanted.mode === "None" ? undefined : await signed(serverCertificate, serverNonce, own, wanted);
    await channel.call(
      "ActivateSession",
      makeRequest("ActivateSession", {
        requestHeader: { authenticationToken: created.authenticationToken, returnDiagnostics: SERVICE_DIAGNOSTICS },
        ...(ours && { clientSignature: ours }),
        localeIds: [],
        userIdentityToken: token,
        ...(signature && { userTokenSignature: signature }),
      }),
      ctx,
    );
  } catch (error) {
    if (!(await channel.close(closeRequest(created.authenticationToken)))) creation.onLost();
    throw error;
  }
  const granted = created.revisedSessionTimeout;
  return {
    channel,
    call(service, request, bound) {
      (request.requestHeader as { authenticationToken: NodeId }).authenticationToken = created.authenticationToken;
      return channel.call(service, request, bound);
    },
    closeRequest: closeRequest(created.authenticationToken),
    // Some small servers give 0.
    timeoutMs: Number.isFinite(granted) && granted >= 1000 ? granted : settings.session_timeout,
    warnings: [...creation.warnings, ...expiry(own)],
    life: creation.life,
  };
}

/**
 * The answer to CreateSession within its time. One that comes later is a session that nobody wants: it is ended as soon as it is there, which
 * nobody waits for.
 */
async function answered(
  channel: Channel,
  request: RequestOf<"CreateSession">,
  creation: Creation,
  ctx: DriverContext,
): Promise<ResponseOf<"CreateSession">> {
  const { answerMs } = ctx.timeouts;
  const end = new AbortController();
  const answer = channel.call("CreateSession", request, { signal: end.signal, timeouts: { answerMs: answerMs + LATE_MS } });
  try {
    return await bounded(answer, {
      signal: ctx.signal,
      timeoutMs: answerMs,
      onTimeout: () => new ReasonError("TIMEOUT", `no answer of ${channel.where} to CreateSession within ${answerMs} ms`),
      onAbort: () => stoppedWhile(`waiting for the answer of ${channel.where} to CreateSession`, ctx.signal),
    });
  } catch (error) {
    if (!channel.alive()) await channel.close();
    else {
      const late = setTimeout(() => end.abort(), LATE_MS);
      void answer
        .then(
          ({ authenticationToken }) => channel.close(closeRequest(authenticationToken)),
          () => channel.close().then(() => false),
        )
        .then((isEnded) => {
          clearTimeout(late);
          if (!isEnded) creation.onLost();
        });
    }
    throw error;
  }
}

/** Localized text, additional info and inner code of the service itself (OPC 10000-4, 7.33). */
const SERVICE_DIAGNOSTICS = 0x1f;
const CLIENT = 1;

const closeRequest = (authenticationToken: NodeId) =>
  makeRequest("CloseSession", { requestHeader: { authenticationToken }, deleteSubscriptions: true });

/** That it is still the server that we trust, and that it holds the key of its certificate (OPC 10000-4, 5.7.2). */
function verifyServer(
  channel: Channel,
  { wanted, choice, chain, own }: Creation,
  created: ResponseOf<"CreateSession">,
  clientNonce: Buffer,
): void {
  if (needsCertificate(wanted, choice) && (created.serverNonce ?? Buffer.alloc(0)).length < NONCE_BYTES)
    throw protocolViolation(
      `${channel.where} gives a nonce of ${created.serverNonce?.length ?? 0} bytes, at least ${NONCE_BYTES} are required`,
    );
  if (wanted.mode === "None") return;
  const [shown] = splitChain(created.serverCertificate ?? Buffer.alloc(0));
  const [trusted] = chain;
  if (!shown || !trusted || !shown.equals(trusted))
    throw certificateRefused("the server's session has another certificate than its endpoint");
  const isSigned = verifySignature(
    own?.pair.certificate ?? Buffer.alloc(0),
    clientNonce,
    created.serverSignature,
    trusted,
    wanted.policyUri as SecurityPolicy,
  );
  if (!isSigned) throw certificateRefused("the server does not prove that it has the key of its certificate: its signature is wrong");
}

function signed(serverCertificate: Buffer, serverNonce: Buffer, own: Own | undefined, wanted: Wanted): Promise<Signature> {
  return computeSignatureAsync(serverCertificate, serverNonce, own?.pair.key ?? null, wanted.policyUri as SecurityPolicy);
}

function expiry(own: Own | undefined): Warning[] {
  return own?.certificate.notice === undefined ? [] : [warning("own_certificate_expires", own.certificate.notice)];
}
