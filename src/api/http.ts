import { type Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { formatDuration } from "../model/duration.ts";
import { messageOf } from "../model/failure.ts";

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
  /** Certificate authorities (PEM) instead of the system's. */
  readonly ca?: string | undefined;
  /** A unix socket to connect to instead of the address, over plain HTTP. */
  readonly socketPath?: string | undefined;
  /** Keeps connections; undefined: a connection of its own. */
  readonly agent?: Agent | undefined;
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

/** As `exchange`, once more on a fresh connection where a kept one turned out to be closed before anything was answered. */
export async function sendRequest(input: HttpRequest): Promise<HttpAnswer> {
  const progress: Progress = { reused: false, answered: false };
  const first = await exchange(input, progress);
  // What creates might have been carried out all the same: only what may be repeated is.
  const stale = first.type === "failed" && first.kind === "unreachable" && progress.reused && !progress.answered && input.method !== "POST";
  return stale ? exchange({ ...input, agent: undefined }, progress) : first;
}

/**
 * One request over HTTP or HTTPS. Redirects are not followed: the headers, with a key in them, go to this address alone.
 * Settles within `totalMs`, holds at most `maxBytes`, never throws.
 */
function exchange(input: HttpRequest, progress: Progress): Promise<HttpAnswer> {
  if (input.signal.aborted) return Promise.resolve({ type: "failed", kind: "aborted", message: "stopped" });
  return new Exchange(input, progress).start();
}

/** What is known of a request that failed. */
interface Progress {
  /** It went over a kept connection. */
  reused: boolean;
  /** An answer began. */
  answered: boolean;
}

/** One request under way: each step of it has a deadline, and the first outcome counts. */
class Exchange {
  readonly #input: HttpRequest;
  readonly #progress: Progress;
  readonly #overTls: boolean;
  readonly #result = Promise.withResolvers<HttpAnswer>();
  readonly #total: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#fail("aborted", "stopped");
  #outgoing: ClientRequest | undefined;
  #step: NodeJS.Timeout | undefined;
  #isSettled = false;

  constructor(input: HttpRequest, progress: Progress) {
    const { url, timeouts, signal, socketPath } = input;
    this.#input = input;
    this.#progress = progress;
    this.#overTls = url.protocol === "https:" && socketPath === undefined;
    this.#total = setTimeout(
      () => this.#fail("timeout", `the answer was not complete within ${formatDuration(timeouts.totalMs)}`),
      timeouts.totalMs,
    );
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  start(): Promise<HttpAnswer> {
    const { body, timeouts } = this.#input;
    this.#within(timeouts.connectMs, "no connection");
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
    const { url, method, headers, socketPath, agent, ca } = this.#input;
    return (this.#overTls ? httpsRequest : httpRequest)({
      protocol: this.#overTls ? "https:" : "http:",
      ...(socketPath !== undefined
        ? { socketPath }
        : // Node wants an IPv6 address without its brackets.
          { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port }),
      path: url.pathname + url.search,
      method,
      headers: { ...headers, ...(body && { "content-type": "application/json", "content-length": body.length }) },
      agent: agent ?? false,
      ...(ca !== undefined && { ca }),
    });
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

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused: nothing listens there",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "the network is unreachable",
  ETIMEDOUT: "the connection timed out",
  ENOTFOUND: "the name is not known",
  EAI_AGAIN: "the name server does not answer",
};

function describeError(error: Error): { readonly kind: Failure["kind"]; readonly message: string } {
  const inner = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
  const code = "code" in inner && typeof inner.code === "string" ? inner.code : "";
  if (/^(ERR_TLS_CERT|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH)/.test(code))
    return {
      kind: "tls",
      message: `the server's certificate is not accepted: ${inner.message} (${code}); api.ca names the authorities to trust`,
    };
  if (/^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/.test(code))
    return { kind: "tls", message: `TLS cannot be agreed on with what answers (${code})` };
  if (code.startsWith("HPE_")) return { kind: "unreachable", message: `what answers does not speak HTTP (${code})` };
  const words = WORDS[code];
  return { kind: "unreachable", message: words === undefined ? inner.message : `${words} (${code})` };
}
