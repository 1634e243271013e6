import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Context } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";

/** What one path answers. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface HttpListenerOptions {
  /** `address:port`, an IPv6 address in brackets. */
  readonly listen: string;
  /** By path: what GET answers. */
  readonly pages: Readonly<Record<string, () => Page | Promise<Page>>>;
  /** Why it cannot listen; once per kind of trouble. It goes on trying. */
  /** `over`: the trouble that this says the end of. */
  readonly onTrouble: (message: string, over?: string) => void;
  readonly retryMs?: number;
}

export interface HttpListener {
  /** Undefined while it does not listen. */
  port(): number | undefined;
  /** Idempotent, never throws. */
  close(): Promise<void>;
}

const REQUEST_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 5000;
const RETRY_MS = 10_000;
const MAX_CONNECTIONS = 16;
const MAX_HEADER_BYTES = 8192;

/** Serves a few pages that only read, until it is closed or the signal aborts. A port that is in use is tried again and ends nothing. */
export function startHttpListener(options: HttpListenerOptions, ctx: Context): HttpListener {
  const { listen, pages, onTrouble, retryMs = RETRY_MS } = options;
  const colon = listen.lastIndexOf(":");
  const host = listen.slice(0, colon).replace(/^\[|\]$/g, "");
  const port = Number(listen.slice(colon + 1));
  const stop = new AbortController();
  let server: Server | undefined;
  const reported = new Set<string>();

  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const next = serve(pages, ctx);
      try {
        await new Promise<void>((done, fail) => next.once("error", fail).listen(port, host, done));
        next
          .removeAllListeners("error")
          .on("error", (error) => ctx.log.warn({ err: error, listen }, "the HTTP listener reported an error"));
        server = next;
        if (stop.signal.aborted) next.close();
        else ctx.log.info({ listen }, "metrics and health are served");
        for (const trouble of reported) onTrouble(`http.listen: ${listen} is listened on now`, trouble);
        return;
      } catch (error) {
        const trouble = `http.listen: ${listen} cannot be listened on (${messageOf(error)}); it is tried again, or choose another port`;
        if (!reported.has(trouble)) onTrouble(trouble);
        reported.add(trouble);
        await delay(retryMs, undefined, { signal: stop.signal, ref: false }).catch(() => undefined);
      }
    }
  };
  const running = run();
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    stop.abort();
    closing ??= running.then(
      () =>
        new Promise<void>((done) => {
          if (!server) return done();
          server.close(() => done());
          server.closeAllConnections();
        }),
    );
    return closing;
  };
  if (ctx.signal.aborted) void close();
  else ctx.signal.addEventListener("abort", () => void close(), { once: true });
  return {
    port() {
      const at = server?.address();
      return typeof at === "object" && at !== null ? at.port : undefined;
    },
    close,
  };
}

function serve(pages: HttpListenerOptions["pages"], ctx: Context): Server {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS, keepAlive: false, maxHeaderSize: MAX_HEADER_BYTES },
    (request, response) => void answer(request, response, pages, ctx),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(REQUEST_TIMEOUT_MS + ANSWER_TIMEOUT_MS);
  server.on("clientError", (_, socket) => socket.destroy());
  return server;
}

const text = (status: number, body: string): Page => ({ status, contentType: "text/plain; charset=utf-8", body });

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  pages: HttpListenerOptions["pages"],
  { log }: Context,
): Promise<void> {
  request.resume();
  const isHead = request.method === "HEAD";
  const path = (request.url ?? "").split("?")[0] ?? "";
  const make = Object.hasOwn(pages, path) ? pages[path] : undefined;
  let page: Page;
  if (!make) page = text(404, `nothing is served here; known: ${Object.keys(pages).join(", ")}\n`);
  else if (request.method !== "GET" && !isHead) page = text(405, "only GET and HEAD are answered\n");
  else
    try {
      page = await make();
    } catch (error) {
      log.error({ err: error, path }, "a page could not be made");
      page = text(500, "the collector could not answer; see its log\n");
    }
  if (response.destroyed) return;
  response.writeHead(page.status, {
    "content-type": page.contentType,
    "content-length": Buffer.byteLength(page.body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    connection: "close",
    ...(page.status === 405 && { allow: "GET, HEAD" }),
  });
  response.end(isHead ? undefined : page.body);
}
