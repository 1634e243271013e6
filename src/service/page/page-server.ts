import type { IncomingMessage, ServerResponse } from "node:http";
import { sleep } from "../../base/timer.ts";
import { createThrottle, type Throttle } from "../../lib/throttle.ts";
import type { Log } from "../../model/context.ts";
import { COOKIE, isOwnName, TokenGate } from "./access.ts";
import type { Asset } from "./assets.ts";
import type { BufferTrends } from "./buffer-trends.ts";
import { type DataAnswer, jsonAnswer } from "./data-answer.ts";
import type { SeenAccess } from "./data-messages.ts";
import { answerData } from "./data-routes.ts";
import { html } from "./html.ts";
import type { LivePages } from "./live-pages.ts";
import type { PageHead } from "./messages.ts";
import { addressOf, type PageAddress } from "./pages.ts";
import type { Questions } from "./questions.ts";
import { type Page, shell } from "./shell.ts";
import { LOGIN_EVENT } from "./viewers.ts";

export interface PageServerOptions {
  readonly pages: LivePages;
  readonly questions: Pick<Questions, "ask">;
  readonly buffer: Pick<BufferTrends, "read"> | undefined;
  /** Somebody was let in, or was not. */
  readonly seen: (access: SeenAccess) => void;
  readonly assets: Readonly<Record<string, Asset>>;
  /** File with the token that opens the pages; undefined: they are open. */
  readonly tokenFile: string | undefined;
  /** PEM of the server's certificate; undefined: plain HTTP. */
  readonly cert: string | undefined;
  readonly log: Log;
}

const MAX_BODY_BYTES = 8192;
const MAX_URL = 4096;
const EVENT_STREAM = "text/event-stream";
/** The latest about a source, on its page without scripts. */
const EVENTS = { type: "events", after: 0, search: "", limit: 50 } as const;

/** Nothing comes from another host, nothing runs that is not a file of ours, and nobody may frame the page. */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "cache-control": "no-store",
};

/** The HTTP side of the page: who may see it, and what each path answers. It only reads. */
export class PageServer {
  readonly #options: PageServerOptions;
  readonly #gate: TokenGate;
  readonly #throttle: Throttle = createThrottle();
  #status: { readonly head: PageHead; readonly answer: DataAnswer } | undefined;

  constructor(options: PageServerOptions) {
    this.#options = options;
    this.#gate = new TokenGate(options.tokenFile);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    response.on("error", () => undefined);
    try {
      await this.#route(request, response);
    } catch (error) {
      this.#options.log.error({ err: error }, "a page could not be made");
      if (response.headersSent) response.destroy();
      else this.#message(response, 500, "The page could not be made; the collector's log says why.");
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers, url = "/" } = request;
    if (!isOwnName(headers.host, this.#options.cert))
      return this.#message(response, 421, "This machine is not known by that name; ask for it by its address.");
    if (url.length > MAX_URL) return this.#message(response, 414, "The address is too long.");
    const [path = "/"] = url.split("?", 1);
    if (method === "POST" && (path === "/login" || path === "/logout")) return this.#post(path, request, response);
    request.resume();
    if (method !== "GET" && method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return this.#message(response, 405, "Only GET and HEAD are answered here: the page changes nothing.");
    }
    const { assets } = this.#options;
    const asset = Object.hasOwn(assets, path) ? assets[path] : undefined;
    if (asset) return send(response, 200, asset.contentType, asset.body, method);
    if (!this.#gate.admits(headers)) {
      // A browser without a session has shown nothing that could be wrong.
      if (headers.authorization !== undefined) this.#options.seen({ what: "refused", address: request.socket.remoteAddress });
      return this.#refuse(path, headers, response);
    }
    if (path === "/events") return this.#events(url, request, response, method);
    if (path.startsWith("/data/")) return this.#data(url, response, method);
    return this.#page(url, response, method);
  }

  async #page(url: string, response: ServerResponse, method: string): Promise<void> {
    const address = addressOf(url);
    const page = address && (await this.#load(address));
    if (!page) return this.#message(response, 404, "There is no such page, or no data source of this name.");
    const text = shell({ page, isLive: true, isLoggedIn: !this.#gate.isOpen, nowMs: Date.now() });
    send(response, 200, "text/html; charset=utf-8", text, method);
  }

  async #load(address: PageAddress): Promise<Page | undefined> {
    const { pages, questions } = this.#options;
    await pages.refresh(address);
    const source = address.type === "source" ? pages.state.find(address.name) : undefined;
    const reply = source && (await questions.ask({ ...EVENTS, about: source.name }));
    return pages.page(address, reply?.events);
  }

  #events(url: string, request: IncomingMessage, response: ServerResponse, method: string): void {
    const { pages } = this.#options;
    const query = new URL(url, "http://localhost").searchParams;
    const address = addressOf(query.get("path") ?? "/");
    if (pages.viewers.isFull) {
      response.setHeader("retry-after", "10");
      this.#message(response, 503, "Too many browsers look at this page already.");
      return;
    }
    const seen = request.headers["last-event-id"] ?? query.get("version") ?? "";
    const isAdmitted = (): boolean => this.#gate.admits(request.headers);
    if (!address) this.#message(response, 404, "There is no such page.");
    else if (method === "HEAD") send(response, 200, EVENT_STREAM, "", method);
    else pages.watch(address, String(seen), response, isAdmitted);
  }

  /** Answers in JSON. */
  async #data(url: string, response: ServerResponse, method: string): Promise<void> {
    const { pages, questions, buffer } = this.#options;
    await pages.refresh();
    const { head } = pages.state;
    const isStatus = url.split("?", 1)[0] === "/data/status";
    if (!head) sendData(response, jsonAnswer(503, { detail: "the collector is starting" }), method);
    else if (isStatus) sendData(response, this.#statusOf(head), method);
    else
      sendData(
        response,
        await answerData(url, { questions, buffer, source: (name) => pages.state.find(name), version: head.version }),
        method,
      );
  }

  /** Written once for all who ask within one state: that of many sources has megabytes. */
  #statusOf(head: PageHead): DataAnswer {
    if (this.#status?.head !== head) {
      const answer = jsonAnswer(200, { ...head, sources: this.#options.pages.state.sources });
      this.#status = { head, answer: { ...answer, body: Buffer.from(answer.body) } };
    }
    return this.#status.answer;
  }

  #refuse(path: string, { accept }: IncomingMessage["headers"], response: ServerResponse): void {
    // A browser says nothing of a refused stream to the page, which could not lead to the log-in.
    if (path === "/events" && accept === EVENT_STREAM) {
      send(response, 200, EVENT_STREAM, LOGIN_EVENT, "GET");
      return;
    }
    response.setHeader("www-authenticate", 'Bearer realm="collector"');
    if (path === "/events" || path.startsWith("/data/")) this.#message(response, 401, "Log in first.");
    else this.#html(response, 401, loginPage(undefined));
  }

  async #post(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A form of another site is sent with its origin; a browser that is not told to hide it says it.
    if (!isOwnOrigin(request)) {
      request.resume();
      return this.#message(response, 403, "This form is not of this page.");
    }
    const body = await bodyOf(request);
    if (path === "/logout") {
      this.#gate.close(request.headers.cookie);
      this.#options.seen({ what: "logout", address: request.socket.remoteAddress });
      response.setHeader("set-cookie", this.#cookie("", 0));
      return redirect(response, "/");
    }
    if (this.#gate.isOpen) return redirect(response, "/");
    const token = body === undefined ? "" : (new URLSearchParams(body).get("token") ?? "");
    if (this.#gate.isToken(token)) {
      this.#options.seen({ what: "login", address: request.socket.remoteAddress });
      response.setHeader("set-cookie", this.#cookie(this.#gate.open(), undefined));
      return redirect(response, "/");
    }
    const wait = this.#throttle.failed(request.socket.remoteAddress ?? "");
    if (!wait) {
      response.setHeader("retry-after", "5");
      return this.#message(response, 429, "Too many wrong tokens wait already; try again in a moment.");
    }
    await sleep(wait.delayMs);
    wait.done();
    this.#options.seen({ what: "refused", address: request.socket.remoteAddress });
    this.#options.log.warn({ address: request.socket.remoteAddress }, "the page refused a wrong token");
    this.#html(response, 401, loginPage("That is not the token."));
  }

  #cookie(value: string, maxAge: number | undefined): string {
    const secure = this.#options.cert !== undefined ? "; Secure" : "";
    return `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict${secure}${maxAge === undefined ? "" : `; Max-Age=${maxAge}`}`;
  }

  #message(response: ServerResponse, status: number, words: string): void {
    this.#html(response, status, {
      title: "Collector",
      main: html`<h1>Collector</h1><p>${words}</p><p><a href="/">To the overview</a></p>`,
    });
  }

  #html(response: ServerResponse, status: number, page: Page): void {
    if (response.destroyed) return;
    send(response, status, "text/html; charset=utf-8", shell({ page, isLive: false, isLoggedIn: false, nowMs: Date.now() }), "GET");
  }
}

const loginPage = (problem: string | undefined): Page => ({
  title: "Log in: Collector",
  main: html`<h1>Log in</h1>
<form method="post" action="/login">
${problem !== undefined && html`<p role="alert" class="state bad">${"✗"} ${problem}</p>`}
<p><label for="token">Token</label> <input id="token" name="token" type="password" autocomplete="current-password" required autofocus></p>
<p>It is the first line of the file that <code>page.token_file</code> names in the collector's settings.</p>
<button type="submit">Log in</button>
</form>`,
});

function isOwnOrigin({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
}

/** Undefined: it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return length <= MAX_BODY_BYTES ? Buffer.concat(chunks).toString("utf8") : undefined;
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { location, "content-length": 0 });
  response.end();
}

function sendData(response: ServerResponse, { status, contentType, body, fileName }: DataAnswer, method: string): void {
  if (fileName !== undefined && !response.destroyed) response.setHeader("content-disposition", `attachment; filename="${fileName}"`);
  send(response, status, contentType, body, method);
}

function send(response: ServerResponse, status: number, contentType: string, body: string | Buffer, method: string): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) });
  response.end(method === "HEAD" ? undefined : body);
}
