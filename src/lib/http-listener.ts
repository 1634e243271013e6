import { chmodSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { ListenOptions, Socket } from "node:net";
import type { Log } from "../model/context.ts";
import { ConnectionBound, type ConnectionLimits } from "./connection-bound.ts";
import { type Refusal, refuse } from "./http-refusal.ts";
import { listenAt } from "./listen.ts";
import { answerWithoutTls, type Certificate, followCertificate } from "./tls-server.ts";

export interface HttpListenerOptions {
  /** As people name what is served: `the page`. */
  readonly what: string;
  /** Methods that it takes, as the header Allow has them. */
  readonly allow: string;
  /** A whole head of a request has come, from a client that has room. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** Absent: plain HTTP. */
  readonly certificate?: Certificate | undefined;
  readonly limits?: Partial<ConnectionLimits>;
  readonly log: Log;
}

const HEADERS_MS = 10_000;
const MAX_HEADER_BYTES = 16_384;
/**
 * Deadlines of what comes in, so that a client that says nothing holds nothing. Node looks at its deadlines every 30 s where it is not told
 * otherwise.
 */
const SERVER = {
  headersTimeout: HEADERS_MS,
  requestTimeout: 30_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: MAX_HEADER_BYTES,
} as const;
/** sun_path of unix(7) with its end. */
const MAX_PATH_BYTES = 107;
const SOCKET_MODE = 0o660;
/** Nothing comes, and nothing is taken. */
const IDLE_MS = 60_000;

/** What Node's parser gives up with. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: `the request's target and headers have more than ${MAX_HEADER_BYTES} bytes` },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "the request was not complete in time" },
};
const NO_METHOD: Refusal = { status: 405, detail: "no path takes this method" };
const NOT_HTTP: Refusal = { status: 400, detail: "this is not an HTTP request that can be understood" };

/** A port or a local socket on which HTTP is spoken: its deadlines, its bounds, its certificate. Clients that wait keep nobody out. */
export class HttpListener {
  readonly #server: Server;
  readonly #bound: ConnectionBound;
  readonly #unfollow: () => void;
  readonly #options: HttpListenerOptions;
  #closing: Promise<void> | undefined;

  constructor(options: HttpListenerOptions) {
    const { allow, answer, certificate, limits, log } = options;
    this.#options = options;
    const bound = new ConnectionBound(limits);
    const take = (request: IncomingMessage, response: ServerResponse): void => {
      if (bound.admits(request, response)) answer(request, response);
    };
    const tls = certificate && { ...certificate.pem, minVersion: "TLSv1.2" as const, handshakeTimeout: HEADERS_MS };
    const server = tls ? createTlsServer({ ...SERVER, ...tls }, take) : createServer(SERVER, take);
    server.setTimeout(IDLE_MS);
    server.on("clientError", ({ code = "" }: NodeJS.ErrnoException, socket) =>
      refuse(socket, code === "HPE_INVALID_METHOD" ? { ...NO_METHOD, more: `Allow: ${allow}\r\n` } : (REFUSALS[code] ?? NOT_HTTP)),
    );
    if (certificate) answerWithoutTls(server);
    bound.attach(server);
    this.#server = server;
    this.#bound = bound;
    this.#unfollow = certificate ? followCertificate(server, certificate, log) : () => {};
  }

  /** Rejects with Node's error where it cannot listen there, and with words where another has the port or the path is too long for a socket. */
  async listen(place: ListenOptions): Promise<void> {
    const { what, log } = this.#options;
    const server = this.#server;
    if (place.path !== undefined && Buffer.byteLength(place.path) > MAX_PATH_BYTES)
      throw new Error(`${place.path} is too long for a socket (${MAX_PATH_BYTES} bytes at most); choose a shorter state_dir`);
    await listenAt(server, place);
    // The people of its user and group. Until here only its owner may connect: the usual umask takes the right to write from everyone else.
    if (place.path !== undefined) chmodSync(place.path, SOCKET_MODE);
    server.removeAllListeners("error").on("error", (error) => log.warn({ err: error }, `the listener of ${what} reported an error`));
  }

  /** Undefined while it does not listen on one. */
  get port(): number | undefined {
    const at = this.#server.address();
    return typeof at === "object" && at !== null ? at.port : undefined;
  }

  /** The connection of a request has carried a valid key: it makes room for nobody. */
  trust(socket: Socket): void {
    this.#bound.trust(socket);
  }

  /** Ends what is under way. Idempotent, never throws. */
  close(): Promise<void> {
    this.#closing ??= new Promise((done) => {
      this.#unfollow();
      this.#server.close(() => done());
      this.#server.closeAllConnections();
      this.#bound.close();
    });
    return this.#closing;
  }
}
