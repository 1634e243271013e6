import { ClientSecureChannelLayer, MessageSecurityMode, ReadRequest, setErrorLogger, setWarningLogger } from "node-opcua-client";
import type { SecurityMode } from "../../src/model/details.ts";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext, Endpoint, Tap } from "../driver.ts";
import { bounded, stoppedWhile } from "../lib/abort.ts";
import type { Connection } from "../lib/connection.ts";
import { openTcp } from "../lib/tcp.ts";
import type { Own } from "./answers.ts";
import { errorResponse, protocolViolation, requestFailure, type ServerStatus } from "./failure.ts";
import { fence } from "./fence.ts";
import { Incoming } from "./incoming.ts";
import { KeptRead } from "./kept-read.ts";
import { createChunksOf, createRequestBodies, type Encodable, encodingBytes, plainChunk } from "./plain.ts";
import { type KeyPair, type RequestOf, type ResponseOf, SERVICES, type Service } from "./services.ts";
import { STATUS } from "./status-codes.ts";
import { headerStatus, ServiceFaulted, serviceFault, statusOf } from "./statuses.ts";
import { type Granted, Transport } from "./transport.ts";

// It writes to the console what the driver tells in its own words; a peer could fill the log with it.
setErrorLogger(() => {});
setWarningLogger(() => {});

const MODES = {
  None: MessageSecurityMode.None,
  Sign: MessageSecurityMode.Sign,
  SignAndEncrypt: MessageSecurityMode.SignAndEncrypt,
} as const;
const CHANNEL_LIFETIME_MS = 3_600_000;
const CHANNEL_RENEWAL_MS = 0.75 * CHANNEL_LIFETIME_MS;
/** node-opcua's own time-out of a request is only a net below ours. */
const NET_MS = 120_000;

export interface ChannelOptions {
  readonly endpoint: Endpoint;
  readonly endpointUrl: string;
  readonly mode: SecurityMode;
  readonly policyUri: string;
  /** DER; what the channel is opened to, and nothing else. */
  readonly serverCertificate: Buffer | undefined;
  readonly own: KeyPair | undefined;
  readonly maxAnswerBytes: number;
  /** An answer was larger than that, and had no end. */
  onTooLarge(): void;
  /** What a tap never sees: a password that goes out as it is. */
  readonly secret?: Buffer | undefined;
}

/** What bounds one call. */
export type CallContext = Pick<DriverContext, "signal"> & {
  readonly timeouts: Pick<DriverContext["timeouts"], "answerMs">;
  /** The source is read without it: a refusal or no answer in time costs this call alone, and not the channel. */
  readonly isAside?: boolean;
};

const CLOSE_SESSION_MS = 1000;

/** TCP, HEL and ACK, and OpenSecureChannel. Throws ReasonError; nothing stays open then. */
export async function openChannel(options: ChannelOptions, ctx: DriverContext): Promise<Channel> {
  const channel = new Channel(await openTcp(options.endpoint, ctx), options, ctx.tap);
  await channel.open(options.endpointUrl, ctx);
  return channel;
}

/** A call under way: node-opcua does not call back for all that goes wrong. */
interface Waiting {
  reject(failure: ReasonError): void;
  extend(): void;
}

/** The server has answered, and the driver takes nothing from it; the channel is good. */
class UnusableAnswer extends Error {}

/** What node-opcua does with a callback. */
type Work<T> = (done: (error: Error | null | undefined, value?: T) => void) => void;

/** A secure channel. After its first failure it takes no more calls but the request that closes the session. */
export class Channel {
  /** `host:port`. */
  readonly where: string;
  /** Milliseconds by which the server's clock is ahead, as the channel's token said. */
  clockAheadMs = 0;
  readonly #connection: Connection;
  readonly #policyUri: string;
  readonly #isSecure: boolean;
  /** What leaves an encrypted channel is shown as it is before encryption. */
  readonly #tap: Tap | undefined;
  readonly #transport: Transport;
  readonly #layer: ClientSecureChannelLayer;
  readonly #listeners: ((failure: ReasonError) => void)[] = [];
  readonly #waiting = new Set<Waiting>();
  /** Requests whose answers the driver takes apart, by their number on the channel. */
  readonly #ownAnswers = new Map<number, Own>();
  #incoming: Incoming | undefined;
  #isHooked = false;
  #failure: ReasonError | undefined;
  #closing: Promise<boolean> | undefined;

  constructor(connection: Connection, options: ChannelOptions, tap: Tap | undefined) {
    const { where } = connection;
    const { mode, policyUri } = options;
    this.where = where;
    this.#connection = connection;
    this.#policyUri = policyUri;
    this.#isSecure = mode !== "None";
    this.#tap = tap && withoutSecret(tap, options.secret);
    const bodyOf = createRequestBodies();
    this.#transport = new Transport(connection, {
      endpointUrl: options.endpointUrl,
      maxAnswerBytes: options.maxAnswerBytes,
      onError: ({ code, reason }) => errorResponse(statusOf(code, reason), `the connection to ${where}`),
      onTooLarge: options.onTooLarge,
      onProgress: () => {
        for (const call of this.#waiting) call.extend();
      },
      tap: this.#isSecure ? undefined : this.#tap,
      encrypted: mode === "None" ? "nothing" : mode === "Sign" ? "opening" : "all",
      isLogIn: createChunksOf(ACTIVATE_SESSION),
      before: (chunk) => {
        if (!this.#isHooked) this.#hook();
        this.#isHooked = true;
        if (!this.#isSecure) refuseOutside(bodyOf(chunk));
      },
    });
    this.#layer = layerOf(options, this.#transport);
    this.#layer.on("send_request", (request) => refuseOutside(encodingBytes(request as unknown as Encodable)));
    connection.onLost((failure) => this.lose(failure));
  }

  /** Throws ReasonError; nothing stays open then. */
  async open(endpointUrl: string, ctx: CallContext): Promise<void> {
    try {
      await this.#exchange<true>((done) => this.#layer.create(endpointUrl, (error) => done(error, true)), "OpenSecureChannel", ctx);
      this.clockAheadMs = this.#layer.timeDrift;
    } catch (error) {
      const known = error instanceof ReasonError ? (this.#connection.failure() ?? error) : this.#errorOf(error, "OpenSecureChannel");
      await this.close();
      if (known instanceof ReasonError) throw known;
      throw new ReasonError("UNKNOWN", known.message, { cause: known, condition: "protocol_violation" });
    }
  }

  /**
   * One service call. Throws FaultError: the server refuses this request and the session is good; ReasonError: the channel or session has
   * failed, and the channel is lost.
   */
  async call<S extends Service>(service: S, request: RequestOf<S>, ctx: CallContext): Promise<ResponseOf<S>> {
    if (this.#failure) throw this.#failure;
    // What the server does not take is not sent: half a message would cost the channel.
    if (exceeds(request, this.#transport.parameters)) throw refusal(statusOf(STATUS.BadRequestTooLarge, null), service);
    try {
      return await this.#ask(service, request, ctx);
    } catch (error) {
      if (error instanceof FaultError) throw error;
      const known = error instanceof ReasonError ? (this.#connection.failure() ?? error) : this.#errorOf(error, service, ctx.isAside);
      if (known instanceof ReasonError) this.lose(known);
      throw known;
    }
  }

  failure(): ReasonError | undefined {
    return this.#failure;
  }

  alive(): boolean {
    return this.#failure === undefined && this.#connection.alive();
  }

  /** Called once, when it is lost or closed. */
  onLost(listener: (failure: ReasonError) => void): void {
    if (this.#failure) listener(this.#failure);
    else this.#listeners.push(listener);
  }

  /** Declares it lost: no more calls. */
  lose(failure: ReasonError): void {
    if (this.#failure) return;
    const known = this.#connection.failure() ?? failure;
    this.#failure = known;
    for (const call of this.#waiting) call.reject(known);
    for (const listener of this.#listeners.splice(0)) listener(known);
  }

  /**
   * `closeRequest` is tried even on a channel that has failed, as long as TCP stands; true: the server has confirmed it. Bounded in time,
   * idempotent, never throws.
   */
  close(closeRequest?: RequestOf<"CloseSession">): Promise<boolean> {
    this.#closing ??= this.#close(closeRequest);
    return this.#closing;
  }

  async #close(closeRequest: RequestOf<"CloseSession"> | undefined): Promise<boolean> {
    this.lose(new ReasonError("CONNECTION_CLOSED", `the connection to ${this.where} was closed by the collector`));
    const [connection, layer] = [this.#connection, this.#layer];
    const bound = { signal: AbortSignal.timeout(CLOSE_SESSION_MS), timeouts: { answerMs: CLOSE_SESSION_MS } };
    let isConfirmed = false;
    try {
      if (closeRequest && connection.alive()) {
        await this.#exchange((done) => layer.performMessageTransaction(closeRequest, done), "CloseSession", bound);
        isConfirmed = true;
      }
    } catch {
      // The server ends the session by its time-out; what counts is that nothing here waits for it.
    }
    try {
      if (connection.alive()) await this.#exchange<true>((done) => layer.close(() => done(null, true)), "CloseSecureChannel", bound);
    } catch {
      // Hanging up says the same.
    }
    layer.dispose();
    await connection.close();
    layer.removeAllListeners();
    return isConfirmed;
  }

  async #ask<S extends Service>(service: S, request: RequestOf<S>, ctx: CallContext): Promise<ResponseOf<S>> {
    const { where } = this;
    const [, Response] = SERVICES[service];
    const send: Work<object> = (done) => {
      this.#layer.performMessageTransaction(request, done);
      if (!Response) this.#ownAnswers.set(request.requestHeader.requestHandle, request instanceof KeptRead ? request : {});
    };
    const response = await this.#exchange<object>(send, service, ctx);
    if (!Response) {
      if (!isAnswer(response, service)) throw protocolViolation(`${where} answers ${service} with something else`);
      return response as ResponseOf<typeof service>;
    }
    if (!(response instanceof Response)) throw protocolViolation(`${where} answers ${service} with ${response.constructor.name}`);
    const status = response.responseHeader.serviceResult;
    if (status.value >>> 30 > 1) throw refusal(headerStatus(response.responseHeader, status.value), service, ctx.isAside);
    return response as ResponseOf<typeof service>;
  }

  #exchange<T>(work: Work<T>, what: string, ctx: CallContext): Promise<T> {
    const { where } = this;
    const { answerMs } = ctx.timeouts;
    const call: Waiting = { reject: () => {}, extend: () => {} };
    const answered = new Promise<T>((resolve, reject) => {
      call.reject = reject;
      this.#waiting.add(call);
      work((error, value) => {
        const answer = this.#incoming?.current;
        if (answer?.unusable !== undefined) reject(new UnusableAnswer(answer.unusable));
        else if (answer?.content) resolve(answer.content as T);
        else if (error || value === undefined) reject(serviceFault(error, answer) ?? error ?? new Error("no answer"));
        else resolve(value);
      });
    });
    return bounded(answered, {
      signal: ctx.signal,
      timeoutMs: answerMs,
      onTimeout: () => {
        const words = `no answer of ${where} to ${what} within ${answerMs} ms`;
        return ctx.isAside ? new FaultError("no_answer", words, { scope: "silent" }) : new ReasonError("TIMEOUT", words);
      },
      onAbort: () => stoppedWhile(`waiting for the answer of ${where} to ${what}`, ctx.signal),
      onBegin: (extend) => {
        call.extend = extend;
      },
    }).finally(() => this.#waiting.delete(call));
  }

  /** Before the first chunk leaves: node-opcua has its message builder by then. */
  #hook(): void {
    const builder = this.#layer._getMessageBuilder();
    if (this.#isSecure && this.#tap) tapBodies(this.#layer, builder, this.#policyUri, this.#tap);
    if (!builder) return;
    this.#incoming = new Incoming(builder, {
      earlyEnd: () => this.#transport.earlyEnd(),
      ownOf: (requestId) => {
        const own = this.#ownAnswers.get(requestId);
        this.#ownAnswers.delete(requestId);
        return own;
      },
      onGarbled: (error) => this.lose(this.#garbled(error)),
    });
  }

  #garbled(error: unknown): ReasonError {
    return protocolViolation(`${this.where}: the server's answer cannot be taken apart: ${messageOf(error)}`);
  }

  /** What node-opcua calls back with: a fault of the server's, or its own words for what the connection knows better. */
  #errorOf(error: unknown, service: string, isAside = false): ReasonError | FaultError {
    const status = error instanceof ServiceFaulted ? error.status : undefined;
    if (status) return refusal(status, service, isAside);
    if (error instanceof UnusableAnswer && !BEFORE_A_SESSION.has(service))
      return new FaultError("device_error", `${this.where}: ${service}: ${error.message}`);
    return this.#connection.failure() ?? this.#failure ?? protocolViolation(`${this.where}: ${service}: ${messageOf(error)}`);
  }
}

function layerOf({ mode, policyUri, own, serverCertificate }: ChannelOptions, transport: Transport): ClientSecureChannelLayer {
  return new ClientSecureChannelLayer({
    connectionStrategy: { maxRetry: 0 },
    defaultSecureTokenLifetime: CHANNEL_LIFETIME_MS,
    // A server may grant more than a timer takes, which would then fire at once, again and again.
    tokenRenewalInterval: CHANNEL_RENEWAL_MS,
    defaultTransactionTimeout: NET_MS,
    transportTimeout: NET_MS,
    securityMode: MODES[mode],
    securityPolicy: policyUri as NonNullable<ConstructorParameters<typeof ClientSecureChannelLayer>[0]["securityPolicy"]>,
    transportFactory: { create: () => transport as unknown as NodeOpcuaTransport },
    ...(serverCertificate && { serverCertificate }),
    ...(own && {
      parent: { getCertificate: () => own.certificate, getCertificateChain: () => [own.certificate], getPrivateKey: () => own.key },
    }),
  });
}

type NodeOpcuaTransport = ReturnType<NonNullable<ConstructorParameters<typeof ClientSecureChannelLayer>[0]["transportFactory"]>["create"]>;

/** Without a session no request is at fault: whatever the server says then is why the source cannot be read. */
const BEFORE_A_SESSION: ReadonlySet<string> = new Set(["OpenSecureChannel", "GetEndpoints", "CreateSession", "ActivateSession"]);
const refusal = (status: ServerStatus, service: string, isAside = false): ReasonError | FaultError =>
  BEFORE_A_SESSION.has(service) ? errorResponse(status, service) : requestFailure(status, service, isAside);

/** The last look before anything is sent, on what is encoded and not on what we meant. */
function refuseOutside(body: Uint8Array | undefined): void {
  const wrong = body && fence(body);
  if (wrong !== undefined) throw new ReasonError("UNKNOWN", `not sent: ${wrong}`, { condition: "internal_error" });
}

/** Encrypted chunks tell a tap nothing: it gets the same messages as chunks without security. */
function tapBodies(
  layer: ClientSecureChannelLayer,
  builder: ReturnType<ClientSecureChannelLayer["_getMessageBuilder"]>,
  policyUri: string,
  tap: Tap,
): void {
  layer.on("send_request", (request, type) => tap("out", plainChunk(type, layer.channelId, policyUri, request as unknown as Encodable)));
  builder?.on("full_message_body", (body) => tap("in", plainChunk("MSG", layer.channelId, policyUri, body)));
}

/** Frames are kept, and sent around with questions: of the one request that may hold a password in the clear, a tap gets stars for it. */
function withoutSecret(tap: Tap, secret: Buffer | undefined): Tap {
  if (!secret || secret.length === 0) return tap;
  const bodyOf = createRequestBodies();
  return (direction, frame) => {
    const copy = Buffer.from(frame);
    const body = direction === "out" ? bodyOf(copy) : undefined;
    if (!body || body.length < 4 || body.readUInt16LE(0) !== 1 || body.readUInt16LE(2) !== ACTIVATE_SESSION) return tap(direction, frame);
    for (let at = body.indexOf(secret); at >= 0; at = body.indexOf(secret, at + secret.length)) body.fill("*", at, at + secret.length);
    return tap(direction, copy);
  };
}

/** Number of its encoding (OPC 10000-6, A.3). */
const ACTIVATE_SESSION = 467;

/** Lists of nodes that were found to fit: those of a Read are the same each time, and counting their bytes costs as much as encoding them. */
const FITTING = new WeakSet<object>();

/** Only where the server has a limit is the size worth knowing. 80 bytes of a chunk are headers and padding at most. */
function exceeds(request: { binaryStoreSize(): number }, granted: Granted | undefined): boolean {
  if (!granted || (granted.maxMessageSize === 0 && granted.maxChunkCount === 0)) return false;
  const list = request instanceof ReadRequest ? (request.nodesToRead ?? undefined) : undefined;
  if (list && FITTING.has(list)) return false;
  const size = request.binaryStoreSize() + 4;
  const body = granted.sendBufferSize - 80;
  if ((granted.maxMessageSize > 0 && size > granted.maxMessageSize) || (granted.maxChunkCount > 0 && size > granted.maxChunkCount * body))
    return true;
  if (list) FITTING.add(list);
  return false;
}

const isAnswer = (response: object, service: Service): boolean => (service === "Read" ? "values" : "notifications") in response;
