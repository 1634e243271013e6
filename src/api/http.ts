import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { formatDuration } from "../base/duration.ts";
import { errorCode, messageOf } from "../model/failure.ts";
import { certificateWords, tlsWords } from "./certificate-words.ts";
import type { Agents } from "./connections.ts";
import { firstOf, networkWords } from "./network-words.ts";
import type { HttpProxy } from "./proxy.ts";
import { ProxyError } from "./tunnel.ts";

/** Deadlines of one request, in milliseconds. */
export interface HttpTimeouts {
  /** From the start to an open connection: name, TCP, TLS. */
  readonly connectMs: number;
  /** From an open connection to the answer's headers. */
  readonly headersMs: number;
  /** Between two pieces of the answer's body. */
  readonly idleMs: number;
  /** The request as a whole. */
  readonly totalMs: number;
}

export interface HttpRequest {
  readonly url: URL;
  readonly method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeouts: HttpTimeouts;
  /** Bound of the answer's body, in bytes. */
  readonly maxBytes: number;
  /** A unix socket to connect to instead of the address, over plain HTTP. */
  readonly socketPath?: string | undefined;
  readonly agents: Agents;
  /** On the way to the address; the agents open tunnels through it where the address is https. */
  readonly proxy?: HttpProxy | undefined;
  readonly signal: AbortSignal;
}

export type HttpAnswer =
  | { readonly type: "answer"; readonly status: number; readonly headers: IncomingMessage["headers"]; readonly body: string }
  | {
      readonly type: "failed";
      readonly kind: "unreachable" | "timeout" | "tls" | "too_large" | "truncated" | "aborted";
      /** What went wrong, without the address; for people. */
      readonly message: string;
      /** The system's or Node's own error, where there is one. */
      readonly cause?: unknown;
    };

type Failure = Extract<HttpAnswer, { type: "failed" }>;

/** Works as `exchange` does, once more on a fresh connection where a kept one turned out to be closed before anything was answered. */
export async function sendRequest(input: HttpRequest): Promise<HttpAnswer> {
  const progress: Progress = { reused: false, answered: false };
  const first = await exchange(input, progress);
  // What creates might have been carried out all the same: only what may be repeated is.
  const stale = first.type === "failed" && first.kind === "unreachable" && progress.reused && !progress.answered && input.method !== "POST";
  return stale ? exchange(input, progress, true) : first;
}

/**
 * One request over HTTP or HTTPS. Redirects are not followed: the headers, with a key in them, go to this address alone.
 * Settles within `totalMs`, holds at most `maxBytes`, never throws.
 */
function exchange(input: HttpRequest, progress: Progress, onItsOwn = false): Promise<HttpAnswer> {
  if (input.signal.aborted) return Promise.resolve({ type: "failed", kind: "aborted", message: "stopped" });
  return new Exchange(input, progress, onItsOwn).start();
}

/** What is known of a request that failed. */
interface Progress {
  /** It went over a kept connection. */
  reused: boolean;
  /** An answer began. */
  answered: boolean;
}

interface Target {
  readonly host?: string;
  readonly port?: string | number;
  readonly path: string;
  readonly socketPath?: string;
  readonly more?: Readonly<Record<string, string>>;
}

/** One request under way: each step of it has a deadline, and the first outcome counts. */
class Exchange {
  readonly #input: HttpRequest;
  readonly #progress: Progress;
  readonly #overTls: boolean;
  readonly #onItsOwn: boolean;
  readonly #result = Promise.withResolvers<HttpAnswer>();
  readonly #total: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#fail("aborted", "stopped");
  #outgoing: ClientRequest | undefined;
  #step: NodeJS.Timeout | undefined;
  #isSettled = false;

  /** `onItsOwn`: over a fresh connection, which is closed afterwards. */
  constructor(input: HttpRequest, progress: Progress, onItsOwn: boolean) {
    const { url, timeouts, signal, socketPath } = input;
    this.#input = input;
    this.#progress = progress;
    this.#onItsOwn = onItsOwn;
    this.#overTls = url.protocol === "https:" && socketPath === undefined;
    this.#total = setTimeout(
      () => this.#fail("timeout", `the answer was not complete within ${formatDuration(timeouts.totalMs)}`),
      timeouts.totalMs,
    );
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  start(): Promise<HttpAnswer> {
    const { body, timeouts, proxy } = this.#input;
    this.#within(timeouts.connectMs, proxy ? `no connection through the proxy ${proxy.name}` : "no connection");
    try {
      const bytes = body === undefined ? undefined : Buffer.from(body);
      const outgoing = this.#request(bytes);
      this.#outgoing = outgoing;
      outgoing.on("socket", (socket: Socket) => this.#onSocket(socket, outgoing.reusedSocket));
      outgoing.on("error", (error) => {
        const { kind, message } = describeError(error);
        this.#fail(kind, message, error);
      });
      outgoing.on("response", (response) => this.#onResponse(response));
      outgoing.end(bytes);
    } catch (error) {
      this.#fail("unreachable", messageOf(error), error);
    }
    return this.#result.promise;
  }

  #request(body: Buffer | undefined): ClientRequest {
    const { method, headers, agents } = this.#input;
    const { host, port, path, socketPath, more } = this.#target();
    return (this.#overTls ? httpsRequest : httpRequest)({
      protocol: this.#overTls ? "https:" : "http:",
      ...(socketPath !== undefined ? { socketPath } : { host, port }),
      path,
      method,
      headers: { ...headers, ...more, ...(body && { "content-type": "application/json", "content-length": body.length }) },
      agent: this.#onItsOwn ? agents.single() : agents.kept,
    });
  }

  /** The place where the request goes, and what it says there beside its own headers. */
  #target(): Target {
    const { url, socketPath, proxy } = this.#input;
    const path = url.pathname + url.search;
    if (socketPath !== undefined) return { socketPath, path };
    // Node wants an IPv6 address without its brackets.
    if (!proxy || this.#overTls) return { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port, path };
    // RFC 9112, 3.2.2: a proxy is given the whole address. Over TLS, the agent has a tunnel to it instead.
    const { authorization } = proxy;
    const more = { host: url.host, ...(authorization !== undefined && { "proxy-authorization": authorization }) };
    return { host: proxy.host, port: proxy.port, path: `${url.origin}${path}`, more };
  }

  #onSocket(socket: Socket, isReused: boolean): void {
    const connected = (): void => this.#within(this.#input.timeouts.headersMs, "connected, but no answer");
    this.#progress.reused = isReused;
    if (isReused) connected();
    else socket.once(this.#overTls ? "secureConnect" : "connect", connected);
  }

  #onResponse(response: IncomingMessage): void {
    const { timeouts, maxBytes } = this.#input;
    this.#progress.answered = true;
    const chunks: Buffer[] = [];
    let size = 0;
    const waiting = (): void => this.#within(timeouts.idleMs, "the answer stopped in the middle: nothing more");
    const truncated = (): void => this.#fail("truncated", "the connection was lost in the middle of the answer");
    waiting();
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return this.#fail("too_large", `the answer is larger than ${maxBytes} bytes`);
      chunks.push(chunk);
      waiting();
    });
    response.on("error", truncated);
    response.on("end", () => {
      if (!response.complete) return truncated();
      const { statusCode: status = 0, headers } = response;
      this.#settle({ type: "answer", status, headers, body: Buffer.concat(chunks).toString("utf8") });
    });
    response.on("close", truncated);
  }

  #within(ms: number, what: string): void {
    clearTimeout(this.#step);
    this.#step = setTimeout(() => this.#fail("timeout", `${what} within ${formatDuration(ms)}`), ms);
  }

  #fail(kind: Failure["kind"], message: string, cause?: unknown): void {
    this.#settle({ type: "failed", kind, message, ...(cause !== undefined && { cause }) });
  }

  #settle(answer: HttpAnswer): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#step);
    clearTimeout(this.#total);
    this.#input.signal.removeEventListener("abort", this.#onAbort);
    if (answer.type === "failed") this.#outgoing?.destroy();
    this.#result.resolve(answer);
  }
}

function describeError(error: Error): { readonly kind: Failure["kind"]; readonly message: string } {
  if (error instanceof ProxyError) return { kind: "unreachable", message: error.message };
  const code = errorCode(firstOf(error));
  const certificate = certificateWords(error);
  if (certificate !== undefined) return { kind: "tls", message: certificate };
  if (/^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/.test(code)) return { kind: "tls", message: tlsWords(code) };
  return { kind: "unreachable", message: networkWords(error) };
}
