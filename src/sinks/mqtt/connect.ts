import type { Duplex } from "node:stream";
import { ErrorWithReasonCode, type IConnackPacket, MqttClient, ReasonCodes, Store } from "mqtt";
import mqttPacket from "mqtt-packet";
import packetConstants from "mqtt-packet/constants.js";
import { sleep } from "../../base/timer.ts";
import type { Context } from "../../model/context.ts";
import { messageOf, toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { withDeadline } from "../lib/dial.ts";
import { LinkWindow } from "../lib/link-window.ts";
import { PublishRate } from "../lib/publish-rate.ts";
import { type TlsSettings, tlsReason } from "../lib/tls.ts";
import { type Feed, type Publish, type PublishAnswer, type PublishOutcome, PublishQueue, type UserProperties } from "./publish-queue.ts";
import { Qos0Sender } from "./qos0-sender.ts";
import { type Qos1Answer, Qos1Sender } from "./qos1-sender.ts";
import {
  CONNECTION_RATE_EXCEEDED,
  connectRefused,
  IDENTIFIER_IN_USE,
  isOfRate,
  isOfWill,
  isSuccess,
  isVersionRefusal,
  QUOTA_EXCEEDED,
  RETAIN_NOT_SUPPORTED,
  refusalText,
  refusalType,
  type Said,
  SESSION_TAKEN_OVER,
  saidIn,
} from "./refusal.ts";
import { chooseVersion, OtherVersionError } from "./version.ts";
import { openWay, type WayOptions } from "./way.ts";

// The packet writer keeps a Buffer for each number below 65536: 7 MB of heap for what two bytes' writing saves.
mqttPacket.writeToStream.cacheNumbers = false;
// The packet reader takes a code that is not in its table for a violation of MQTT and ends the connection over it, whatever the code says of
// one publish: mosquitto answers a publish above its message_size_limit with PUBACK 149, which MQTT 5.0, 3.4.2.1, does not list.
for (const table of [packetConstants.MQTT5_PUBACK_PUBREC_CODES, packetConstants.MQTT5_DISCONNECT_CODES])
  for (let code = 0; code <= 0xff; code++) table[code] ??= `code ${code}`;

export interface ConnectOptions extends WayOptions {
  readonly clientId: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** From the last progress to the next PUBACK; after it the connection is thrown away. On a slow link longer, by what a large publish needs. */
  readonly publishTimeoutMs: number;
  /** Whole seconds, 1..65535. */
  readonly keepaliveS: number;
  /** Publishes under way at once; the broker's receive maximum may be lower and wins. */
  readonly window: number;
  /** How many publishes a second the broker accepts, from earlier openings; absent: not known, and nothing is kept. */
  readonly rate?: PublishRate;
  /** What is known of the link from earlier openings; absent: nothing, and nothing is kept. */
  readonly link?: LinkWindow;
  /** Absent: it only listens, and needs none. */
  readonly will?: LastWill;
  /** Largest packet of the broker. Absent: what it sends to one that publishes is small. */
  readonly maxIncomingBytes?: number;
  /** 0: a broker that takes no publish of QoS 1 is enough. Absent: it is not. */
  readonly leastQos?: 0 | undefined;
  /** When the last connection was begun, monotonic ms; absent: connections follow each other without a pause. */
  readonly connects?: { lastMs: number };
  /** What is known of the broker from earlier openings; absent: nothing, and nothing is kept. */
  readonly remembered?: Map<string, string>;
}

/** The broker publishes it once the connection is lost, retained where it keeps messages. */
export interface LastWill {
  readonly topic: string;
  /** A function makes it for each CONNECT. */
  readonly payload: string | (() => Buffer);
  /** The protocol in the messages is not without it, and does not have it retained: a broker that refuses it refuses the connection. */
  readonly isRequired?: boolean;
}

/** A message of a topic that was subscribed to. */
export type TakeMessage = (topic: string, payload: Buffer) => void;

export interface Connection {
  readonly version: 4 | 5;
  /** Publishes under way at once; further ones wait their turn. */
  readonly window: number;
  /** What the broker takes, or what MQTT allows. */
  readonly maxPacketBytes: number;
  readonly canRetain: boolean;
  /** Why the broker did not take the last will; undefined: it has one. */
  readonly refusedWill?: string | undefined;
  /** How much may be sent at once. */
  readonly link: LinkWindow;
  /** Settles once, also by close(). */
  readonly lost: Promise<ReasonError>;
  /** Of the broker's DISCONNECT (MQTT 5.0, 3.14.2.1); undefined: it sent none. */
  endCode(): number | undefined;
  /** QoS 1, or 0 where the broker takes no more. Resolves on PUBACK, or once the broker has read it. Throws ReasonError when the connection is lost. `userProperties` do not go to a broker of MQTT 3.1.1. */
  publish(topic: string, payload: string | Buffer, retain: boolean, userProperties?: UserProperties, qos?: 0 | 1): Promise<PublishOutcome>;
  /** Publishes that are made when the link has room for them. */
  feed(feed: Feed): void;
  /** QoS 1. Resolves with the topics that the broker does not grant. Before the first publish, once. Throws ReasonError. */
  subscribe(topics: readonly string[], take: TakeMessage): Promise<readonly string[]>;
  /** DISCONNECT, so that the broker forgets the last will; without it if publishes are under way. Idempotent, within a second, never throws. */
  close(): Promise<void>;
}

/** MQTT 5.0, 2.1.4: a remaining length has four bytes of seven bits. */
const MAX_PACKET_BYTES = 268_435_455;
/** A broker's packets to us are small. */
const MAX_INCOMING_BYTES = 65_536;
/** With subscriptions several of them may come at once. */
const MAX_SUBSCRIBED_BYTES = 2 ** 20;
/** DISCONNECT, MQTT 5.0, 3.14.2.1: the last will is to be published. */
const WITH_WILL = 4;
const CLOSE_TIMEOUT_MS = 1000;
/** MQTT 5.0, 3.2.2.3.3: without a receive maximum as many as there are packet identifiers. */
const MAX_UNANSWERED = 65_535;
/** Brokers count connects: one a second is taken everywhere. */
const BETWEEN_CONNECTS_MS = 1000;

/** kept: the broker keeps it like a retained message. */
type Will = "kept" | "passing" | "none";

/** Connects, with the version that the broker speaks (version.ts). Throws ReasonError; nothing is left open then. */
export async function connectMqtt(options: ConnectOptions, ctx: Context): Promise<Connection> {
  return await chooseVersion(async (version) => {
    if (version === 4) ctx.log.debug({ endpoint: endpointOf(options) }, "the broker does not take MQTT 5; trying 3.1.1");
    return await attemptWithWill(options, version, ctx);
  }, options.remembered ?? new Map());
}

const endpointOf = ({ host, port }: ConnectOptions): string => `${host}:${port}`;

/**
 * A broker that keeps no messages refuses a last will that is to be kept: it gets one that is not. One that may refuse the will itself is tried
 * once without; what it then takes was refused for its will.
 */
async function attemptWithWill(options: ConnectOptions, version: 4 | 5, ctx: Context): Promise<Connection> {
  if (!options.will) return await attempt(options, version, "none", ctx);
  if (options.will.isRequired) return await attempt(options, version, "passing", ctx);
  try {
    return await attempt(options, version, "kept", ctx);
  } catch (error) {
    const code = codeOf(error);
    if (code === RETAIN_NOT_SUPPORTED) return await attempt(options, version, "passing", ctx);
    if (code === undefined || !isOfWill(code) || wasNotTheWill(options)) throw error;
    try {
      return await attempt(options, version, "none", ctx, messageOf(error));
    } catch (second) {
      if (codeOf(second) !== undefined) options.remembered?.set(NOT_THE_WILL, String(performance.now()));
      throw error;
    }
  }
}

/** When a CONNECT was refused without a will, too, monotonic ms: a wrong password would be tried twice each time, and users are locked out for less. */
const NOT_THE_WILL = "refused without a will";
const ASKED_AGAIN_AFTER_MS = 600_000;
const wasNotTheWill = ({ remembered }: ConnectOptions): boolean => {
  const atMs = remembered?.get(NOT_THE_WILL);
  return atMs !== undefined && performance.now() - Number(atMs) < ASKED_AGAIN_AFTER_MS;
};

/** The code of a refused CONNECT; undefined: it was not refused by one. */
function codeOf(error: unknown): number | undefined {
  const cause = error instanceof ReasonError ? error.cause : undefined;
  return cause instanceof ErrorWithReasonCode && typeof cause.code === "number" ? cause.code : undefined;
}

/** Waits until a second after the last connection that the broker saw. */
async function inTurn({ connects }: ConnectOptions, { signal }: Context): Promise<void> {
  const restMs = connects ? connects.lastMs + BETWEEN_CONNECTS_MS - performance.now() : 0;
  if (restMs > 0) await sleep(restMs, signal);
}

/** `refusedWill`: why the broker did not take it, where this is the try without. */
async function attempt(options: ConnectOptions, version: 4 | 5, will: Will, ctx: Context, refusedWill?: string): Promise<Connection> {
  const { connectTimeoutMs } = options;
  const endpoint = endpointOf(options);
  await inTurn(options, ctx);
  const socket = await openWay(options, ctx);
  if (options.connects) options.connects.lastMs = performance.now();
  const client = createClient(socket, options, version, will);
  const sentMs = performance.now();
  try {
    const connack = await withDeadline(connackOf(client, socket, version, options), connectTimeoutMs, ctx.signal, () => {
      return new ReasonError("TIMEOUT", `the broker ${endpoint} did not answer CONNECT within ${connectTimeoutMs} ms`);
    });
    const link = options.link ?? new LinkWindow();
    link.opened(performance.now() - sentMs);
    return new MqttConnection(client, socket, connack, version, {
      ...options,
      link,
      retains: will !== "passing" || options.will?.isRequired === true,
      refusedWill,
    });
  } catch (error) {
    discard(client, socket);
    if (error instanceof ReasonError && error.cause instanceof OtherVersionError) throw error.cause;
    throw error;
  }
}

function createClient(socket: Duplex, options: ConnectOptions, version: 4 | 5, will: Will): MqttClient {
  return new MqttClient(() => socket, {
    protocolId: "MQTT",
    protocolVersion: version,
    clientId: options.clientId,
    clean: true,
    keepalive: options.keepaliveS,
    timerVariant: "native",
    reconnectPeriod: 0,
    connectTimeout: options.connectTimeoutMs * 2,
    resubscribe: false,
    queueQoSZero: false,
    // A default store forgets itself on end(), and a packet after that is an uncaught TypeError (mqtt 5.16.0).
    outgoingStore: new Store({ clean: false }),
    incomingStore: new Store({ clean: false }),
    ...(options.username !== undefined && { username: options.username }),
    ...(options.password !== undefined && { password: options.password }),
    ...(version === 5 && { properties: { maximumPacketSize: options.maxIncomingBytes ?? MAX_INCOMING_BYTES } }),
    ...(will !== "none" &&
      options.will && {
        will: { topic: options.will.topic, payload: willPayload(options.will), qos: options.leastQos ?? 1, retain: will === "kept" },
      }),
    log: () => {},
  });
}

const willPayload = ({ payload }: LastWill): Buffer => (typeof payload === "string" ? Buffer.from(payload) : payload());

function connackOf(client: MqttClient, socket: Duplex, version: 4 | 5, options: ConnectOptions): Promise<IConnackPacket> {
  const endpoint = endpointOf(options);
  const { tls, sink = "NAME", websocketPath } = options;
  let said: Said | undefined;
  client.on("packetreceive", (packet) => {
    if (packet.cmd === "connack") said = saidIn(packet, options.password);
  });
  const step =
    tls || websocketPath !== undefined
      ? undefined
      : `If it is a port with TLS, type \`sudo collector sink set ${sink} tls=true\`; else look into the broker's log: it says why it closed the connection.`;
  const hint =
    websocketPath !== undefined && !tls
      ? ""
      : tls
        ? `; it may not accept ${tls.cert_file ?? "a client without a certificate (tls.cert_file and tls.key_file of this sink)"}`
        : `; if it is a port with TLS, set tls of this sink: sudo collector sink set ${sink} tls=true`;
  return new Promise((done, fail) => {
    const closed = (error: Error | undefined) => {
      // TLS 1.3: the broker looks at our certificate after the handshake.
      const refused = error && tls && tlsReason(error, endpoint, tls, sink);
      if (refused) return fail(refused);
      const reason = error
        ? withHint(reasonOfClient(error, endpoint), hint, step)
        : new ReasonError("CONNECTION_CLOSED", `the broker ${endpoint} closed the connection before it answered CONNECT${hint}`, {
            nextStep: step,
          });
      fail(version === 5 ? wrapped(reason, false) : reason);
    };
    client.once("connect", done);
    // Before the library sees it, to which it is no MQTT.
    const isPlain = !tls && websocketPath === undefined;
    socket.prependOnceListener("data", (bytes: Buffer) => {
      if (isPlain && isTlsRecord(bytes)) fail(speaksTls(endpoint, sink));
      else if (bytes.toString("latin1", 0, 5) === "HTTP/") fail(speaksHttp(endpoint, sink));
      else if (!FIRST_PACKETS.has(bytes[0] ?? CONNACK))
        fail(violation(`the broker ${endpoint} does not follow MQTT: it answers CONNECT with ${shown(bytes)}`));
    });
    client.on("error", (error) => {
      if (!(error instanceof ErrorWithReasonCode) || typeof error.code !== "number") return closed(error);
      const refused = connectRefused(endpoint, ReasonCodes[error.code as keyof typeof ReasonCodes], error.code, {
        sink: options.sink,
        hasUser: options.username !== undefined,
        said,
        cause: error,
      });
      fail(version === 5 && isVersionRefusal(error.code) ? wrapped(refused, true) : refused);
    });
    socket.once("end", () => closed(undefined));
    socket.once("close", () => closed(undefined));
  });
}

/** RFC 8446, 5.1: an alert or a handshake, of TLS 1.x. */
const isTlsRecord = (bytes: Buffer): boolean => (bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 0x03;

const speaksTls = (endpoint: string, sink: string): ReasonError =>
  new ReasonError(
    "UNKNOWN",
    `${endpoint} speaks TLS; set tls of this sink: sudo collector sink set ${sink} tls=true (tls.ca_file=FILE for an authority of your own), or the port without TLS`,
    {
      condition: "protocol_violation",
      nextStep: `Type \`sudo collector sink set ${sink} tls=true\`, or use the broker's port without TLS.`,
    },
  );

/** MQTT 5.0, 3.2: a server answers CONNECT with CONNACK, or AUTH before it. */
const CONNACK = 0x20;
const FIRST_PACKETS: ReadonlySet<number> = new Set([CONNACK, 0xf0]);
const MAX_SHOWN_BYTES = 16;
const shown = (bytes: Buffer): string => bytes.toString("hex", 0, MAX_SHOWN_BYTES).replace(/..(?=.)/g, "$& ");

/** RFC 9112, 4: a status line. */
const speaksHttp = (endpoint: string, sink: string): ReasonError =>
  new ReasonError("UNKNOWN", `the broker ${endpoint} does not follow MQTT: a web server answers there (HTTP)`, {
    condition: "protocol_violation",
    nextStep: `Correct the port (\`sudo collector sink set ${sink} port=1883\`), or, where the web server passes MQTT on, type \`sudo collector sink set ${sink} websocket_path=/mqtt\`.`,
  });

const withHint = (reason: ReasonError, hint: string, nextStep: string | undefined): ReasonError =>
  hint !== "" && (reason.reason.type === "CONNECTION_CLOSED" || reason.reason.type === "CONNECTION_RESET")
    ? new ReasonError(reason.reason, reason.message + hint, { cause: reason, nextStep })
    : reason;

const wrapped = (reason: ReasonError, saysSo: boolean): ReasonError =>
  new ReasonError(reason.reason, reason.message, {
    cause: new OtherVersionError(reason.message, saysSo, { cause: reason }),
    nextStep: reason.nextStep,
  });

/** Nothing that arrives from now on reaches the library, and no error of the socket is without a listener. */
function silence(client: MqttClient, socket: Duplex): void {
  socket.unpipe();
  socket.on("error", () => {});
  client.on("error", () => {});
  socket.resume();
}

function discard(client: MqttClient, socket: Duplex): void {
  silence(client, socket);
  client.end(true);
  socket.destroy();
}

/** `retains`: nothing is known against messages that are kept. */
type Opened = ConnectOptions & { readonly link: LinkWindow; readonly retains: boolean; readonly refusedWill: string | undefined };

/** One connection to a broker after its CONNACK. Bounds the publishes under way, and is lost once, for one reason. */
class MqttConnection implements Connection {
  readonly version: 4 | 5;
  readonly window: number;
  readonly maxPacketBytes: number;
  readonly canRetain: boolean;
  readonly refusedWill: string | undefined;
  readonly lost: Promise<ReasonError>;
  readonly link: LinkWindow;
  readonly #client: MqttClient;
  readonly #socket: Duplex;
  readonly #endpoint: string;
  readonly #sink: string | undefined;
  readonly #password: string | undefined;
  readonly #tls: TlsSettings | undefined;
  readonly #sender: Qos1Sender;
  readonly #qos0: Qos0Sender;
  readonly #mostQos: number;
  readonly #hasRequiredWill: boolean;
  #maxIncomingBytes: number;
  readonly #publishes: PublishQueue;
  readonly #rate: PublishRate;
  #lose: (reason: ReasonError) => void = () => {};
  #endCode: number | undefined;
  /** Since the last complete packet of the broker. */
  #incomingBytes = 0;
  #closing: Promise<void> | undefined;

  /** Throws ReasonError if the broker does not take QoS 1; the connection is closed then. */
  constructor(client: MqttClient, socket: Duplex, connack: IConnackPacket, version: 4 | 5, options: Opened) {
    const granted = version === 5 ? connack.properties : undefined;
    this.version = version;
    this.window = Math.max(1, Math.min(options.window, granted?.receiveMaximum ?? options.window));
    this.maxPacketBytes = granted?.maximumPacketSize ?? MAX_PACKET_BYTES;
    this.canRetain = options.retains && granted?.retainAvailable !== false;
    this.refusedWill = options.refusedWill;
    this.#client = client;
    this.#socket = socket;
    this.#endpoint = endpointOf(options);
    this.#sink = options.sink;
    this.#password = options.password;
    this.#tls = options.tls;
    this.#sender = new Qos1Sender(socket, version);
    this.#qos0 = new Qos0Sender(socket, version);
    this.#mostQos = granted?.maximumQoS ?? 1;
    this.#hasRequiredWill = options.will?.isRequired === true;
    this.#maxIncomingBytes = options.maxIncomingBytes ?? MAX_INCOMING_BYTES;
    this.link = options.link;
    this.lost = new Promise((done) => {
      this.#lose = done;
    });
    this.#rate = options.rate ?? new PublishRate();
    this.#publishes = new PublishQueue({
      size: this.window,
      receiveMaximum: granted?.receiveMaximum ?? MAX_UNANSWERED,
      window: options.link,
      rate: this.#rate,
      timeoutMs: options.publishTimeoutMs,
      send: (publish, isAgain, settle) => this.#send(publish, isAgain, settle),
      isConfirmed: (publish) => this.#qosOf(publish) === 1,
      refusing: (detail, isOne) => this.#fail(new ReasonError("UNKNOWN", detail, { isOfLimit: !isOne })),
      overdue: (ms) => this.#fail(new ReasonError("TIMEOUT", `the broker ${this.#endpoint} did not acknowledge a publish within ${ms} ms`)),
    });
    if (this.#mostQos === 0 && options.leastQos !== 0) {
      const refused = connectRefused(this.#endpoint, ReasonCodes[155], 155, options);
      this.#fail(refused);
      throw refused;
    }
    this.#listen();
  }

  endCode(): number | undefined {
    return this.#endCode;
  }

  publish(topic: string, payload: string | Buffer, retain: boolean, userProperties?: UserProperties, qos?: 0 | 1): Promise<PublishOutcome> {
    return new Promise((done, fail) => {
      this.#publishes.add({
        key: "",
        isOlder: false,
        make: () => ({ publish: { topic, payload, retain, userProperties, qos, done, fail }, isLast: true }),
        fail,
      });
    });
  }

  feed(feed: Feed): void {
    this.#publishes.add(feed);
  }

  async subscribe(topics: readonly string[], take: TakeMessage): Promise<readonly string[]> {
    this.#maxIncomingBytes = Math.max(this.#maxIncomingBytes, MAX_SUBSCRIBED_BYTES);
    this.#client.on("message", (topic, payload) => take(topic, payload));
    const granted = new Promise<readonly number[]>((done) => {
      this.#client.on("packetreceive", (packet) => packet.cmd === "suback" && done(packet.granted.map(Number)));
    });
    // It fails where one of them is not granted, too.
    this.#client.subscribe([...topics], { qos: 1 }, () => {});
    const lost = this.lost.then((reason) => {
      throw reason;
    });
    const codes = await Promise.race([granted, lost]);
    return topics.filter((_, i) => (codes[i] ?? 0x80) >= 0x80);
  }

  close(): Promise<void> {
    this.#closing ??= this.#disconnect();
    return this.#closing;
  }

  #listen(): void {
    this.#socket.on("data", (chunk: Buffer) => this.#onData(chunk));
    this.#client.on("packetreceive", (packet) => {
      this.#incomingBytes = 0;
      this.#sender.take(packet);
      this.#qos0.take(packet);
    });
    this.#client.on("packetsend", (packet) => this.#qos0.sent(packet));
    this.#client.on("disconnect", (packet) => this.#onDisconnect(packet.reasonCode ?? 0, saidIn(packet, this.#password)));
    this.#client.on("error", (error) =>
      this.#fail((this.#tls && tlsReason(error, this.#endpoint, this.#tls, this.#sink ?? "NAME")) ?? reasonOfClient(error, this.#endpoint)),
    );
    const closed = () => this.#fail(new ReasonError("CONNECTION_CLOSED", `the broker ${this.#endpoint} closed the connection`));
    this.#socket.on("end", closed);
    this.#socket.on("close", closed);
  }

  #onData(chunk: Buffer): void {
    this.#incomingBytes += chunk.length;
    if (this.#incomingBytes > this.#maxIncomingBytes)
      this.#fail(violation(`the broker ${this.#endpoint} sends a packet above ${this.#maxIncomingBytes} bytes without a request`));
  }

  #onDisconnect(code: number, said: Said): void {
    this.#endCode = code;
    const words = refusalText(ReasonCodes[code as keyof typeof ReasonCodes], code, { sink: this.#sink, said });
    // It says why: nobody has to guess.
    const condition = code === SESSION_TAKEN_OVER ? "client_id_taken" : "server_refuses";
    const isOfLimit = isOfRate(code);
    const nowMs = performance.now();
    if (isOfLimit) this.#rate.exceeded(nowMs, nowMs, true);
    const isLasting = code === CONNECTION_RATE_EXCEEDED;
    const why = `the broker ${this.#endpoint} ended the session: ${words}`;
    this.#fail(new ReasonError("CONNECTION_CLOSED", why, { condition, isOfLimit, isLasting }));
  }

  /** True: this is the first failure, so its reason is the one that holds. */
  #end(reason: ReasonError): boolean {
    if (this.#publishes.failure()) return false;
    // First: who hears of it looks at what was under way.
    this.#lose(reason);
    return this.#publishes.fail(reason);
  }

  #fail(reason: ReasonError): void {
    if (this.#end(reason)) discard(this.#client, this.#socket);
  }

  #qosOf({ qos = 1 }: Publish): number {
    return Math.min(qos, this.#mostQos);
  }

  #send(publish: Publish, isAgain: boolean, settle: (answer: PublishAnswer) => void): void {
    if (this.#qosOf(publish) === 0) {
      this.#qos0.send(publish, () => this.#publishes.failure() ?? settle({ type: "accepted" }));
      return;
    }
    const { topic, payload, userProperties, contentType } = publish;
    const retain = (isAgain ? publish.retainAgain?.() : undefined) ?? publish.retain;
    this.#sender.send({ topic, payload, retain, userProperties, contentType }, (answer) => {
      if (this.#publishes.failure()) return;
      const outcome = this.#outcomeOf(topic, answer);
      if (outcome) settle(outcome);
    });
  }

  /** Undefined: the connection is lost over it. */
  #outcomeOf(topic: string, answer: Qos1Answer): PublishAnswer | undefined {
    if (answer.type === "violation") {
      this.#fail(violation(`the broker ${this.#endpoint} answers a publish of QoS 1 with ${answer.cmd.toUpperCase()}`));
      return undefined;
    }
    const { code } = answer;
    if (isSuccess(code)) return { type: "accepted" };
    const said =
      answer.reasonString === undefined ? undefined : saidIn({ properties: { reasonString: answer.reasonString } }, this.#password);
    const text = refusalText(ReasonCodes[code as keyof typeof ReasonCodes], code, { sink: this.#sink, said });
    const notNow = `the broker ${this.#endpoint} does not take a publish now: ${text}`;
    if (code === QUOTA_EXCEEDED) return { type: "over_quota", detail: notNow };
    if (code === IDENTIFIER_IN_USE) {
      this.#fail(new ReasonError("UNKNOWN", notNow));
      return undefined;
    }
    return { type: refusalType(code), detail: `the broker refuses a publish to ${topic}: ${text}` };
  }

  async #disconnect(): Promise<void> {
    const socket = this.#socket;
    const gone = new Promise<void>((done) => {
      if (socket.closed) done();
      else socket.once("close", () => done());
    });
    const reason = new ReasonError("CONNECTION_CLOSED", "closed by the collector");
    if (this.#publishes.isIdle() && this.#end(reason)) {
      silence(this.#client, socket);
      this.#client.end(false, this.#hasRequiredWill && this.version === 5 ? { reasonCode: WITH_WILL } : {});
      const timer = setTimeout(() => socket.destroy(), CLOSE_TIMEOUT_MS);
      await gone;
      clearTimeout(timer);
      return;
    }
    this.#fail(reason);
    await gone;
  }
}

const violation = (message: string): ReasonError => new ReasonError("UNKNOWN", message, { condition: "protocol_violation" });

function reasonOfClient(error: unknown, endpoint: string): ReasonError {
  if (messageOf(error) === "Keepalive timeout")
    return new ReasonError("TIMEOUT", `the broker ${endpoint} did not answer a ping`, { cause: error });
  const known = toReasonError(error);
  return known.condition === "internal_error" ? violation(`the broker ${endpoint} does not follow MQTT: ${known.message}`) : known;
}
