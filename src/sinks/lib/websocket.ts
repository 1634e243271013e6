import { type ClientRequest, type IncomingMessage, STATUS_CODES } from "node:http";
import { Duplex } from "node:stream";
import { type RawData, WebSocket } from "ws";
import { escapeControls, withoutCredentials } from "../../base/plain-text.ts";
import { clip } from "../../model/bounded-failure.ts";
import { errorCode, messageOf, toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { withDeadline } from "./dial.ts";

/** MQTT 5.0, 6: the subprotocol. */
const SUBPROTOCOL = "mqtt";
/** Nothing is subscribed to: what a broker sends are answers, of which it may put many into one message. */
const MAX_MESSAGE_BYTES = 262_144;
/** Servers in front of brokers bound a message (AWS: 128 KiB); MQTT 5.0, 6, lets a packet begin in one and end in another. */
const MAX_SENT_BYTES = 65_536;
/** Frames of one message; the library's types do not know this option. */
const FRAGMENTS = { maxFragments: 1024 };
/** Pings and messages without content that a broker may send in PINGS_MS. */
const MAX_PINGS = 60;
const PINGS_MS = 10_000;
/** Longest text of a server that is repeated, in characters. */
const MAX_SAID = 200;

export interface WebSocketTarget {
  /** `host:port`, an IPv6 address in brackets. */
  readonly endpoint: string;
  readonly path: string;
  readonly isSecure: boolean;
  readonly timeoutMs: number;
  /** How a command names the sink. */
  readonly sink: string;
  /** Gives the words for an error of TLS: a server looks at our certificate after the handshake of TLS 1.3. */
  readonly explainTls: (error: unknown) => ReasonError | undefined;
}

/**
 * MQTT over WebSocket (RFC 6455; MQTT 5.0, 6) over a socket that is connected, as a stream of bytes in binary messages. Throws
 * ReasonError that says what the server answered and what to change; the socket is destroyed then.
 */
export async function openWebSocket(socket: Duplex, target: WebSocketTarget, signal: AbortSignal): Promise<Duplex> {
  const { endpoint, timeoutMs } = target;
  let stream: WebSocketStream | undefined;
  try {
    const opening = opened(socket, target, (made) => {
      stream = made;
    });
    return await withDeadline(opening, timeoutMs, signal, () => {
      return new ReasonError("TIMEOUT", `${endpoint} did not answer the WebSocket request within ${timeoutMs} ms`, {
        nextStep: PORT_STEP,
      });
    });
  } catch (error) {
    stream?.on("error", () => {}).destroy();
    socket.on("error", () => {}).destroy();
    throw error;
  }
}

const PORT_STEP =
  "Compare port, tls and websocket_path of this sink with the broker's manual: its port for WebSocket is another than the one for MQTT.";

function opened(socket: Duplex, target: WebSocketTarget, made: (stream: WebSocketStream) => void): Promise<WebSocketStream> {
  const { endpoint, path, isSecure } = target;
  return new Promise((done, fail) => {
    const client = new WebSocket(`${isSecure ? "wss" : "ws"}://${endpoint}${path}`, [SUBPROTOCOL], {
      // The request goes over the socket that the collector's own way has opened.
      createConnection: () => socket,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: MAX_MESSAGE_BYTES,
      ...FRAGMENTS,
      // Answered by the stream, which counts them.
      autoPong: false,
      skipUTF8Validation: true,
    });
    // Its body is left unread: it may have no end, and the socket is destroyed.
    client.once("unexpected-response", (_request: ClientRequest, response: IncomingMessage) => fail(refused(response, target)));
    const stream = new WebSocketStream(client, socket, endpoint);
    made(stream);
    client.once("open", () => done(stream));
    stream.once("error", (error) => fail(handshakeFailure(error, target)));
    stream.once("close", () => fail(handshakeFailure(undefined, target)));
  });
}

/** Explains a status that opens no WebSocket. */
function refused({ statusCode = 0, headers }: IncomingMessage, { endpoint, path, sink }: WebSocketTarget): ReasonError {
  const status = `${statusCode}${STATUS_CODES[statusCode] === undefined ? "" : ` ${STATUS_CODES[statusCode]}`}`;
  const location = headers.location;
  const [words, nextStep] = stepOf(statusCode, location, { path, sink });
  return new ReasonError("UNKNOWN", `${endpoint} answers the WebSocket request for ${path} with ${status}: ${words}`, {
    condition: "server_refuses",
    nextStep,
  });
}

function stepOf(
  status: number,
  location: string | undefined,
  { path, sink }: Pick<WebSocketTarget, "path" | "sink">,
): readonly [string, string] {
  if (status >= 300 && status < 400)
    return [
      `it names another address${location === undefined ? "" : ` (${said(location)})`}, which is not followed`,
      `Set host, port, tls and websocket_path of this sink to that address: \`sudo collector sink set ${sink} websocket_path=PATH\`.`,
    ];
  if (status === 401 || status === 403 || status === 407)
    return [
      "it wants a log-in or a right in HTTP, which MQTT over WebSocket does not have; user and password of this sink go to the broker behind it",
      "Let the server in front of the broker pass WebSocket requests without a log-in, or use the broker's own port for WebSocket.",
    ];
  if (status === 404 || status === 405)
    return [
      "there is no WebSocket at this path",
      `Set the path of the broker's manual, mostly /mqtt: \`sudo collector sink set ${sink} websocket_path=PATH\`; it is ${JSON.stringify(path)} now.`,
    ];
  if (status === 429 || status >= 500)
    return ["the server, or what it forwards to, is not ready; it is tried again", "Look at the broker, and at the server in front of it."];
  return ["it speaks HTTP and opens no WebSocket", PORT_STEP];
}

const violation = (message: string, cause?: unknown): ReasonError =>
  new ReasonError("UNKNOWN", message, { condition: "protocol_violation", cause, nextStep: PORT_STEP });

/** Undefined: the connection ended without a word. */
function handshakeFailure(error: unknown, { endpoint, explainTls }: WebSocketTarget): ReasonError {
  const ofTls = explainTls(error);
  if (ofTls) return ofTls;
  const words = error === undefined ? "" : messageOf(error);
  if (/^Server sent no subprotocol|invalid subprotocol/.test(words))
    return violation(`${endpoint} opens a WebSocket that is not for MQTT: it does not name the subprotocol ${SUBPROTOCOL}`, error);
  if (/^(Invalid (Upgrade|Sec-WebSocket)|Server (sent|indicated))/.test(words))
    return violation(`${endpoint} does not follow WebSocket: ${said(words)}`, error);
  const code = errorCode(error);
  if (code.startsWith("HPE_")) return violation(`${endpoint} does not speak HTTP, which WebSocket begins with (${code})`, error);
  // Node's words for an end of the connection have a reset's code, without its number.
  const isEnd = error === undefined || (code === "ECONNRESET" && error instanceof Error && !("errno" in error));
  const closed = () => `${endpoint} closed the connection in the WebSocket handshake; its port may be one without WebSocket`;
  if (isEnd) return new ReasonError("CONNECTION_CLOSED", closed(), { cause: error, nextStep: PORT_STEP });
  return toReasonError(error);
}

const said = (text: string): string => escapeControls(clip(withoutCredentials(text), MAX_SAID));

/** A failure with a code: the MQTT library passes on no error without one. */
class WebSocketFailure extends ReasonError {
  readonly code = "WEBSOCKET";
}

/** RFC 6455, 7.4.1: what a close code says. */
const CLOSE_WORDS: Readonly<Record<number, string>> = {
  1001: "going away",
  1002: "protocol error",
  1003: "data of this kind is not accepted",
  1007: "data does not fit the type of the message",
  1008: "against the server's policy",
  1009: "message too big",
  1010: "an extension is missing",
  1011: "the server has a fault",
  1012: "the server restarts",
  1013: "try again later",
  1014: "the server behind it answers wrongly",
};
/** Ends that say nothing: a normal one, none, and a connection that broke. */
const WITHOUT_A_WORD: ReadonlySet<number> = new Set([1000, 1005, 1006]);

/** Bytes of MQTT in the binary messages of a WebSocket. Ends where the WebSocket does; a close code that says more is its error. */
class WebSocketStream extends Duplex {
  readonly #client: WebSocket;
  readonly #socket: Duplex;
  readonly #endpoint: string;
  #pings = 0;
  #pingsSinceMs = 0;

  constructor(client: WebSocket, socket: Duplex, endpoint: string) {
    super();
    this.#client = client;
    this.#socket = socket;
    this.#endpoint = endpoint;
    client.on("message", (data, isBinary) => this.#onMessage(data, isBinary));
    client.on("ping", (data) => this.#onPing(data));
    client.on("pong", () => this.#count());
    client.on("error", (error) => this.destroy(this.#failureOf(error)));
    client.on("close", (code, reason) => this.#onClose(code, reason));
  }

  override _read(): void {
    if (this.#client.isPaused) this.#client.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk, done);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    // A packet is written in several pieces: each message has a head and a mask of its own.
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  #send(bytes: Buffer, done: (error?: Error | null) => void): void {
    let at = 0;
    for (; at + MAX_SENT_BYTES < bytes.length; at += MAX_SENT_BYTES)
      this.#client.send(bytes.subarray(at, at + MAX_SENT_BYTES), { binary: true });
    this.#client.send(bytes.subarray(at), { binary: true }, (error) => done(error));
  }

  override _final(done: () => void): void {
    this.#client.close(1000);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#client.on("error", () => {});
    this.#client.terminate();
    this.#socket.on("error", () => {}).destroy();
    done(error);
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    const bytes = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
    if (!isBinary) this.#fail("sends a text message, and MQTT is in binary ones");
    else if (bytes.length === 0) this.#count();
    else if (!this.push(bytes)) this.#client.pause();
  }

  /** Answers a ping, unless a server that reads nothing has left an earlier answer in memory. */
  #onPing(data: Buffer): void {
    this.#count();
    if (!this.destroyed && this.#client.readyState === WebSocket.OPEN && this.#client.bufferedAmount === 0) this.#client.pong(data);
  }

  /** A frame without content. */
  #count(): void {
    const nowMs = performance.now();
    if (nowMs - this.#pingsSinceMs > PINGS_MS) {
      this.#pingsSinceMs = nowMs;
      this.#pings = 0;
    }
    if (++this.#pings > MAX_PINGS) this.#fail(`sends more than ${MAX_PINGS} pings in ${PINGS_MS / 1000} s`);
  }

  #fail(what: string): void {
    this.destroy(new WebSocketFailure("UNKNOWN", `the broker ${this.#endpoint} ${what}`, { condition: "protocol_violation" }));
  }

  /** Words for the library's errors; those of the system stay what they are. */
  #failureOf(error: Error): Error {
    const code = errorCode(error);
    if (!code.startsWith("WS_ERR_")) return error;
    const words =
      code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"
        ? `sends a message above ${MAX_MESSAGE_BYTES} bytes`
        : `does not follow WebSocket: ${said(error.message)}`;
    return new WebSocketFailure("UNKNOWN", `the broker ${this.#endpoint} ${words}`, { condition: "protocol_violation", cause: error });
  }

  #onClose(code: number, reason: Buffer): void {
    if (WITHOUT_A_WORD.has(code)) {
      this.push(null);
      return;
    }
    const words = CLOSE_WORDS[code] ?? "a code of its own";
    const told = reason.length === 0 ? "" : `; it says ${JSON.stringify(said(reason.toString()))}`;
    this.destroy(
      new WebSocketFailure("CONNECTION_CLOSED", `the broker ${this.#endpoint} closed the WebSocket: ${words} (code ${code})${told}`),
    );
  }
}
