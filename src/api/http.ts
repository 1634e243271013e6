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
  const progress = { reused: false, answered: false };
  const first = await exchange(input, progress);
  // What creates might have been carried out all the same: only what may be repeated is.
  const stale = first.type === "failed" && first.kind === "unreachable" && progress.reused && !progress.answered && input.method !== "POST";
  return stale ? exchange({ ...input, agent: undefined }, progress) : first;
}

/**
 * One request over HTTP or HTTPS. Redirects are not followed: the headers, with a key in them, go to this address alone.
 * Settles within `totalMs`, holds at most `maxBytes`, never throws.
 */
function exchange(input: HttpRequest, progress: { reused: boolean; answered: boolean }): Promise<HttpAnswer> {
  return new Promise((resolve) => {
    const { url, timeouts, signal } = input;
    const overTls = url.protocol === "https:" && input.socketPath === undefined;
    if (signal.aborted) return resolve({ type: "failed", kind: "aborted", message: "stopped" });
    let outgoing: ClientRequest | undefined;
    let step: NodeJS.Timeout | undefined;
    let settled = false;
    const settle = (answer: HttpAnswer): void => {
      if (settled) return;
      settled = true;
      clearTimeout(step);
      clearTimeout(total);
      signal.removeEventListener("abort", onAbort);
      if (answer.type === "failed") outgoing?.destroy();
      resolve(answer);
    };
    const fail = (kind: Failure["kind"], message: string, cause?: unknown): void =>
      settle({ type: "failed", kind, message, ...(cause !== undefined && { cause }) });
    const within = (ms: number, what: string): void => {
      clearTimeout(step);
      step = setTimeout(() => fail("timeout", `${what} within ${formatDuration(ms)}`), ms);
    };
    const onAbort = (): void => fail("aborted", "stopped");
    const total = setTimeout(
      () => fail("timeout", `the answer was not complete within ${formatDuration(timeouts.totalMs)}`),
      timeouts.totalMs,
    );
    signal.addEventListener("abort", onAbort, { once: true });
    within(timeouts.connectMs, "no connection");
    const body = input.body === undefined ? undefined : Buffer.from(input.body);
    try {
      outgoing = (overTls ? httpsRequest : httpRequest)({
        protocol: overTls ? "https:" : "http:",
        ...(input.socketPath !== undefined
          ? { socketPath: input.socketPath }
          : // Node wants an IPv6 address without its brackets.
            { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port }),
        path: url.pathname + url.search,
        method: input.method,
        headers: { ...input.headers, ...(body && { "content-type": "application/json", "content-length": body.length }) },
        agent: input.agent ?? false,
        ...(input.ca !== undefined && { ca: input.ca }),
      });
    } catch (error) {
      return fail("unreachable", messageOf(error), error);
    }
    const connected = (): void => within(timeouts.headersMs, "connected, but no answer");
    outgoing.on("socket", (socket: Socket) => {
      progress.reused = outgoing?.reusedSocket ?? false;
      if (progress.reused) connected();
      else socket.once(overTls ? "secureConnect" : "connect", connected);
    });
    outgoing.on("error", (error) => {
      const { kind, message } = describeError(error);
      fail(kind, message, error);
    });
    outgoing.on("response", (response) => {
      progress.answered = true;
      const chunks: Buffer[] = [];
      let size = 0;
      const waiting = (): void => within(timeouts.idleMs, "the answer stopped in the middle: nothing more");
      waiting();
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > input.maxBytes) return fail("too_large", `the answer is larger than ${input.maxBytes} bytes`);
        chunks.push(chunk);
        waiting();
      });
      response.on("error", () => fail("truncated", "the connection was lost in the middle of the answer"));
      response.on("end", () => {
        if (!response.complete) return fail("truncated", "the connection was lost in the middle of the answer");
        settle({
          type: "answer",
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString("utf8"),
        });
      });
      response.on("close", () => fail("truncated", "the connection was lost in the middle of the answer"));
    });
    outgoing.end(body);
  });
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
