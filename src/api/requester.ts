import * as z from "zod";
import manifest from "../../package.json" with { type: "json" };
import { messageOf } from "../model/failure.ts";
import { AuthorizationForm, type KeyForm } from "./authorization-form.ts";
import { type Agents, Connections, type Route } from "./connections.ts";
import { type HttpAnswer, type HttpRequest, type HttpTimeouts, sendRequest } from "./http.ts";
import { isLoopback } from "./loopback.ts";
import { OS_USER_HEADER } from "./os-user.ts";
import { type HttpProxy, refusalWords } from "./proxy.ts";

export type FailureKind =
  /** No connection, or it was lost. */
  | "unreachable"
  | "timeout"
  | "tls"
  | "too_large"
  | "truncated"
  | "aborted"
  /** The key cannot be read, or is none. */
  | "key_unusable"
  /** A file or setting that the way to the API needs cannot be used: authorities, the certificate of this collector, the proxy. */
  | "route_unusable"
  /** The key would travel in the clear. */
  | "insecure"
  | "unauthorized"
  | "redirect"
  /** Any other status than success. */
  | "http_status"
  | "not_json"
  | "wrong_shape"
  /** A list that cannot be read to its end. */
  | "list_unfinished";

export interface ApiFailure {
  readonly type: "failed";
  readonly kind: FailureKind;
  /** For people: what is wrong, where, and what would be right. Never holds the key. */
  readonly message: string;
  readonly status?: number;
  /** What the server asked for; bounded to an hour. */
  readonly retryAfterMs?: number;
  /** Of a validation error: where in the request each entry of it points (API-V2, 7). */
  readonly refusedAt?: readonly (readonly (string | number)[])[];
  /** The system's or Node's own error, where no answer came. */
  readonly cause?: unknown;
}

export type ApiAnswer =
  | { readonly type: "json"; readonly status: number; readonly value: unknown; readonly etag: string | undefined; readonly bytes: number }
  | { readonly type: "empty" }
  | { readonly type: "not_modified" }
  | ApiFailure;

export interface RequesterOptions {
  /** `{base_url}` of API-V2; a trailing `/api` is tolerated. */
  readonly url: string;
  /** Read for each request, so that a changed key needs no restart. May throw. */
  readonly readKey: () => Promise<string> | string;
  /** Form of the Authorization header; undefined: the one that the server takes (AuthorizationForm). */
  readonly authorization?: KeyForm | undefined;
  /** Read for each request too. May throw, in words for people; absent: straight there, with the authorities of Node and the system. */
  readonly readRoute?: (() => Route) | undefined;
  /** A unix socket of this machine on which the API listens: it is asked there, over plain http, and `url` is its name in messages. */
  readonly socketPath?: string | undefined;
  /** Send the key over plain http to another host. */
  readonly insecure: boolean;
  readonly timeouts: HttpTimeouts;
  /** The operating system's user who asks, for the audit trail of an embedded API; absent: it is not told. */
  readonly osUser?: string | undefined;
}

export interface ApiRequest extends Pick<HttpRequest, "method" | "body" | "maxBytes" | "signal"> {
  /** Below `{base_url}/api`, with its query. */
  readonly path: string;
  readonly ifNoneMatch?: string;
  /** Makes the answer's value of its text; throws SyntaxError where that is not JSON. Absent: JSON.parse, in one go. */
  readonly parse?: (text: string) => Promise<unknown>;
}

export interface Requester {
  /** The place where requests go, without credentials; for messages. */
  readonly base: string;
  /** True: what is sent and answered cannot be read on the way: TLS, or this machine's loopback. */
  readonly confidential: boolean;
  /** One request with the key; never throws, never follows a redirect. */
  send(request: ApiRequest): Promise<ApiAnswer>;
  close(): void;
}

const MAX_RETRY_AFTER_MS = 3_600_000;
/** RFC 9110, 10.1.5: what the server's log shows of who asks. */
const USER_AGENT = `collector/${manifest.version}`;

/** Sends requests with the API key, in the form of the Authorization header that the server takes. Throws TypeError when `url` is none. */
export function createRequester(options: RequesterOptions): Requester {
  const url = new URL(options.url);
  const prefix = `${url.pathname.replace(/\/+$/, "").replace(/\/api$/, "")}/api`;
  const base = `${url.origin}${prefix}`;
  const { socketPath, readRoute = () => ({}) } = options;
  const confidential = socketPath !== undefined || url.protocol === "https:" || isLoopback(url.hostname);
  const connections = new Connections({
    overTls: url.protocol === "https:" && socketPath === undefined,
    connectMs: options.timeouts.connectMs,
  });
  const form = new AuthorizationForm();

  const failed: Fail = (kind, message, rest = {}) => ({
    type: "failed",
    kind,
    message: `${base}: ${message}`,
    ...rest,
  });

  return {
    base,
    confidential,
    async send(request) {
      if (!confidential && !options.insecure)
        return failed("insecure", "the API key would travel in the clear: use an https address, or set api.insecure: true");
      const key = await readKey(options.readKey, request.signal);
      if (request.signal.aborted) return failed("aborted", "stopped");
      if (typeof key !== "string") return failed("key_unusable", key.problem);
      const way = routeOf(readRoute, connections);
      if ("problem" in way) return failed("route_unusable", way.problem);
      const { route, agents } = way;
      const attempt = (as: KeyForm): Promise<HttpAnswer> =>
        sendRequest({
          url: new URL(`${base}${request.path}`),
          method: request.method,
          headers: {
            accept: "application/json",
            "user-agent": USER_AGENT,
            authorization: as === "bearer" ? `Bearer ${key}` : key,
            ...(options.osUser !== undefined && { [OS_USER_HEADER]: options.osUser }),
            ...(request.ifNoneMatch !== undefined && { "if-none-match": request.ifNoneMatch }),
          },
          ...(request.body !== undefined && { body: request.body }),
          timeouts: options.timeouts,
          maxBytes: request.maxBytes,
          socketPath,
          agents,
          proxy: route.proxy,
          signal: request.signal,
        });
      const path = request.path.split("?")[0] ?? "";
      const where = `${request.method} ${path}`;
      const answer = options.authorization ? await attempt(options.authorization) : await inFormTaken(form, path, key, attempt);
      const result =
        answer.type === "failed"
          ? failed(answer.kind, `${where}: ${answer.message}`, { cause: answer.cause })
          : await interpret(answer, where, failed, { parse: request.parse, proxy: route.proxy });
      return result.type === "failed" ? { ...result, message: result.message.replaceAll(key, "<key>") } : result;
    },
    close: () => connections.close(),
  };
}

/** Asks in the form that the server takes, as far as it is known. */
async function inFormTaken(
  form: AuthorizationForm,
  path: string,
  key: string,
  attempt: (as: KeyForm) => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  let as: KeyForm | undefined = form.first(path, key);
  for (;;) {
    const answer = await attempt(as);
    // Without an answer nothing is known of the key.
    as = answer.type === "answer" ? form.answered(path, as, answer.status) : undefined;
    if (as === undefined) return answer;
  }
}

async function readKey(read: RequesterOptions["readKey"], signal: AbortSignal): Promise<string | { readonly problem: string }> {
  let key: string;
  let release = (): void => {};
  const aborted = new Promise<string>((resolve) => {
    release = () => resolve("");
    signal.addEventListener("abort", release, { once: true });
    if (signal.aborted) release();
  });
  try {
    key = (await Promise.race([aborted, read()])).trim();
  } catch (error) {
    // Words of the file system; a key is in none of them.
    return { problem: `the API key cannot be read: ${messageOf(error)}` };
  } finally {
    signal.removeEventListener("abort", release);
  }
  if (key === "") return { problem: "the API key is empty: api.key_file must hold the key on one line" };
  // RFC 9110, 5.5: what a header may hold. Anything else would end in an exception that quotes it.
  if (!/^[\x21-\x7e]{1,4096}$/.test(key)) return { problem: "the API key holds spaces, line breaks or characters beyond ASCII" };
  return key;
}

/** The way to the API as its files and settings have it at this moment; never throws. */
function routeOf(
  read: () => Route,
  connections: Connections,
): { readonly route: Route; readonly agents: Agents } | { readonly problem: string } {
  let route: Route;
  try {
    route = read();
  } catch (error) {
    return { problem: messageOf(error) };
  }
  try {
    return { route, agents: connections.along(route) };
  } catch (error) {
    // OpenSSL's words: none of them holds anything of a key.
    return { problem: `api.tls: certificate, key and authorities cannot be used together: ${messageOf(error)}` };
  }
}

type Fail = (kind: FailureKind, message: string, rest?: Omit<ApiFailure, "type" | "kind" | "message">) => ApiFailure;

async function interpret(
  answer: Extract<HttpAnswer, { type: "answer" }>,
  where: string,
  failed: Fail,
  { parse = JSON.parse, proxy }: { readonly parse?: ((text: string) => unknown) | undefined; readonly proxy?: HttpProxy | undefined },
): Promise<ApiAnswer> {
  const { status, headers, body } = answer;
  if (status === 407 && proxy) return failed("unreachable", `${where}: ${refusalWords(status, proxy)}`);
  if (status === 304) return { type: "not_modified" };
  if (status >= 300 && status < 400)
    return failed(
      "redirect",
      `${where} answered ${status} with a redirect${originOf(headers.location)}, which is not followed: set api.url to the API itself`,
      { status },
    );
  if (status === 401)
    return failed("unauthorized", `${where}: the API key is refused (401): api.key_file must hold a key of this API`, { status });
  if (status < 200 || status >= 300) {
    const retryAfterMs = parseRetryAfter(headers["retry-after"], Date.now());
    const { words, refusedAt } = detailOf(body);
    return failed("http_status", `${where} answered ${status}${words}`, {
      status,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(refusedAt && { refusedAt }),
    });
  }
  if (status === 204) return { type: "empty" };
  if (body.trim() === "") return failed("not_json", `${where} answered ${status} with an empty body instead of JSON`, { status });
  try {
    return { type: "json", status, value: await parse(body), etag: headers.etag, bytes: Buffer.byteLength(body) };
  } catch {
    const type = headers["content-type"]?.split(";")[0]?.slice(0, 50) ?? "an unnamed type";
    const html = /^\s*</.test(body);
    return failed(
      "not_json",
      html
        ? `${where} answered ${status} with a page (${type}) instead of JSON: is api.url the address of the configuration API?`
        : `${where} answered ${status} with damaged or truncated JSON`,
      { status },
    );
  }
}

function originOf(location: string | undefined): string {
  try {
    return location === undefined ? "" : ` to ${new URL(location).origin}`;
  } catch {
    return "";
  }
}

const MAX_DETAIL_CHARACTERS = 200;
const MAX_DETAIL_ENTRIES = 5;
const validationSchema = z.object({
  detail: z.array(z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string() })).min(1),
});

/** The server's own sentence, if it is one, or those of its validation (API-V2, 7): short, on one line. */
function detailOf(body: string): { readonly words: string; readonly refusedAt?: ApiFailure["refusedAt"] } {
  const short = (text: string): string => text.replaceAll(/[\p{Cc}\s]+/gu, " ").slice(0, MAX_DETAIL_CHARACTERS);
  try {
    const value: unknown = JSON.parse(body.slice(0, 100_000));
    if (typeof value === "object" && value !== null && "detail" in value && typeof value.detail === "string")
      return { words: `: ${short(value.detail)}` };
    const refused = validationSchema.safeParse(value);
    if (refused.success) {
      const entries = refused.data.detail;
      const sentences = entries
        .slice(0, MAX_DETAIL_ENTRIES)
        .map(({ loc, msg }) => short(`${loc.slice(1).join(".") || loc.join(".")}: ${msg}`));
      return { words: `: ${sentences.join("; ")}`, refusedAt: entries.map(({ loc }) => loc) };
    }
  } catch {
    // A page of a proxy: its status says enough.
  }
  return { words: "" };
}

/** RFC 9110, 10.2.3: seconds or a date; as milliseconds from `now`, 0 to an hour. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
