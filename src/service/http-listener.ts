import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { HttpListener } from "../lib/http-listener.ts";
import type { Context } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import { type RaiseAlarm, warning } from "../model/warning.ts";

/** What one path answers. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface PagesOptions {
  /** `address:port`, an IPv6 address in brackets. */
  readonly listen: string;
  /** By path: what GET answers. */
  readonly pages: Readonly<Record<string, () => Page | Promise<Page>>>;
  /** Why it cannot listen; once per kind of trouble. It goes on trying. */
  /** `over`: the trouble that this says the end of. */
  readonly onTrouble: RaiseAlarm;
  readonly retryMs?: number;
}

export interface PagesListener {
  /** Undefined while it does not listen. */
  port(): number | undefined;
  /** Idempotent, never throws. */
  close(): Promise<void>;
}

const RETRY_MS = 10_000;
/** Each may be a text of some MiB that its client takes slowly. */
const MAX_ANSWERS = 16;

/** Serves a few pages that only read, until it is closed or the signal aborts. A port that is in use is tried again and ends nothing. */
export function startHttpListener(options: PagesOptions, ctx: Context): PagesListener {
  const { listen, pages, onTrouble, retryMs = RETRY_MS } = options;
  const colon = listen.lastIndexOf(":");
  const host = listen.slice(0, colon).replace(/^\[|\]$/g, "");
  const port = Number(listen.slice(colon + 1));
  const stop = new AbortController();
  const { log } = ctx;
  let listener: HttpListener | undefined;
  const reported = new Set<string>();

  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const answerPage = (request: IncomingMessage, response: ServerResponse): void => void answer(request, response, pages, ctx);
      const next = new HttpListener({
        what: "metrics and health",
        allow: "GET, HEAD",
        answer: answerPage,
        limits: { answers: MAX_ANSWERS },
        log,
      });
      try {
        await next.listen({ host, port });
        listener = next;
        if (stop.signal.aborted) void next.close();
        else log.info({ listen }, "metrics and health are served");
        if (reported.size > 0) onTrouble(warning("port_in_use", `http.listen: ${listen} is listened on now`, "http"), true);
        return;
      } catch (error) {
        const trouble = `http.listen: ${listen} cannot be listened on (${messageOf(error)}); it is tried again, or choose another port`;
        if (!reported.has(trouble)) onTrouble(warning("port_in_use", trouble, "http"));
        reported.add(trouble);
        await delay(retryMs, undefined, { signal: stop.signal, ref: false }).catch(() => undefined);
      }
    }
  };
  const running = run();
  const close = (): Promise<void> => {
    stop.abort();
    return running.then(() => listener?.close());
  };
  if (ctx.signal.aborted) void close();
  else ctx.signal.addEventListener("abort", () => void close(), { once: true });
  return { port: () => listener?.port, close };
}

const text = (status: number, body: string): Page => ({ status, contentType: "text/plain; charset=utf-8", body });

async function answer(request: IncomingMessage, response: ServerResponse, pages: PagesOptions["pages"], { log }: Context): Promise<void> {
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
