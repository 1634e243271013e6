import { lstatSync, type Stats, unlinkSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { HttpListener } from "../lib/http-listener.ts";
import { connectProblem } from "../lib/port-look.ts";
import type { Context } from "../model/context.ts";
import { errorCode, messageOf } from "../model/failure.ts";

/** The place where a running service is asked: by the people of its user and group, over HTTP. */
export const localSocketPath = (stateDir: string): string => join(stateDir, "collector.sock");

export interface LocalSocketOptions {
  readonly path: string;
  /** By path: what GET answers, as JSON. */
  readonly handlers: Readonly<Record<string, () => object>>;
  /** By path: what POST does with a JSON body, and answers. A LocalRequestError that it throws is the answer. */
  readonly actions?: Readonly<Record<string, (body: unknown) => object>>;
}

/** What was posted cannot be done; the message says what would be right, and nothing of the body. */
export class LocalRequestError extends Error {
  override readonly name = "LocalRequestError";
}

export interface LocalSocket {
  /** Idempotent, never throws. */
  close(): Promise<void>;
}

const PROBE_TIMEOUT_MS = 2000;
/** Each may be a status of some MiB that its client takes slowly. */
const MAX_ANSWERS = 16;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * Answers on a unix socket with mode 0660 until it is closed or the signal aborts. A socket that a dead service left is replaced.
 * Throws Error where another service lives on it, or the path cannot be used; the message says what to do.
 */
export async function startLocalSocket({ path, handlers, actions = {} }: LocalSocketOptions, ctx: Context): Promise<LocalSocket> {
  await makeWay(path);
  const listener = new HttpListener({
    what: "the local socket",
    allow: "GET, POST",
    answer: (request, response) => answer(request, response, { handlers, actions }, ctx),
    limits: { answers: MAX_ANSWERS },
    log: ctx.log,
  });
  try {
    await listener.listen({ path });
  } catch (error) {
    if (errorCode(error) === "") throw error;
    throw new Error(
      `the local socket ${path} cannot be opened (${messageOf(error)}); its folder must exist and this user must be allowed to write there`,
      { cause: error },
    );
  }
  const close = (): Promise<void> => listener.close();
  if (ctx.signal.aborted) await close();
  else ctx.signal.addEventListener("abort", () => void close(), { once: true });
  return { close };
}

type Answers = Required<Pick<LocalSocketOptions, "handlers" | "actions">>;

function answer(request: IncomingMessage, response: ServerResponse, { handlers, actions }: Answers, ctx: Context): void {
  const send = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): void => {
    const text = JSON.stringify(body);
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      connection: "close",
      ...headers,
    });
    response.end(text);
  };
  const attempt = (work: () => object): void => {
    try {
      send(200, work());
    } catch (error) {
      if (error instanceof LocalRequestError) {
        send(400, { detail: error.message });
        return;
      }
      ctx.log.error({ err: error }, "the local socket could not answer");
      if (!response.headersSent) send(500, { detail: "the collector could not answer; see its log" });
      else response.destroy();
    }
  };
  const path = (request.url ?? "").split("?")[0] ?? "";
  const handler = Object.hasOwn(handlers, path) ? handlers[path] : undefined;
  const action = Object.hasOwn(actions, path) ? actions[path] : undefined;
  const method = handler ? "GET" : "POST";
  if (!handler && !action)
    send(404, { detail: `nothing is answered here; known: ${[...Object.keys(handlers), ...Object.keys(actions)].join(", ")}` });
  else if (request.method !== method) send(405, { detail: `only ${method} is answered here` }, { allow: method });
  else if (handler) attempt(handler);
  else if (action)
    takeBody(request, (body) => {
      if (body === undefined) send(400, { detail: `expected a JSON body of at most ${MAX_BODY_BYTES} bytes` }, { connection: "close" });
      else attempt(() => action(body));
    });
}

/** Gives the parsed body once; undefined where it is too long or no JSON. Who breaks off is not answered. */
function takeBody(request: IncomingMessage, take: (body: unknown) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  request.on("data", (chunk: Buffer) => {
    length += chunk.length;
    // The rest is read and dropped; the request's own deadline bounds it.
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    else chunks.length = 0;
  });
  request.on("error", () => undefined);
  request.on("end", () => take(length <= MAX_BODY_BYTES ? parsed(Buffer.concat(chunks)) : undefined));
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Removes what a dead service left. Throws where somebody lives there, or where it is not a socket. */
async function makeWay(path: string): Promise<void> {
  let stats: Stats;
  try {
    stats = lstatSync(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return;
    throw new Error(`the local socket ${path} cannot be looked at: ${messageOf(error)}`, { cause: error });
  }
  if (!stats.isSocket()) throw new Error(`${path} is not a socket, and the collector needs this path for its own; move it away`);
  const code = await connectProblem(path, PROBE_TIMEOUT_MS);
  if (code === "EACCES" || code === "EPERM")
    throw new Error(`${path} belongs to another user's collector; give this one a state_dir of its own`);
  if (code !== "ECONNREFUSED" && code !== "ENOENT")
    throw new Error(
      `another collector is running with this state_dir (it answers on ${path}); stop it, or give this one a state_dir of its own`,
    );
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT")
      throw new Error(`the socket ${path} of an ended collector cannot be removed: ${messageOf(error)}`, { cause: error });
  }
}
