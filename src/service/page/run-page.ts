import type { MessagePort } from "node:worker_threads";
import { HttpListener } from "../../lib/http-listener.ts";
import { logOver } from "../../lib/thread/log.ts";
import { readTls } from "../../lib/tls-server.ts";
import { createBudget } from "../../model/budget.ts";
import type { Log } from "../../model/context.ts";
import { readToken } from "./access.ts";
import type { Asset } from "./assets.ts";
import { BufferTrends } from "./buffer-trends.ts";
import { LivePages } from "./live-pages.ts";
import type { FromPage, PageWorkerData, ToPage } from "./messages.ts";
import { PageServer } from "./page-server.ts";
import { Questions } from "./questions.ts";
import { notListened, placeOf, untilListening, urlOf } from "./until-listening.ts";

/** Those of viewers among them, who keep theirs. */
const MAX_ANSWERS = 128;
/** Log-ins and refusals that become events, so that a program that tries tokens costs the service nothing: so many at once, then one each time it is filled. */
const [MAX_ACCESSES, ACCESS_REFILL_MS] = [20, 3000];
const CERTIFICATE = { setting: "page.tls", what: "the page" } as const;

export interface RunPageOptions extends PageWorkerData {
  readonly assets: Readonly<Record<string, Asset>>;
  readonly retryMs?: number;
}

interface Served {
  readonly url: string;
  close(): Promise<void>;
}

/** The page in a thread of its own: serves it from `listen` until `stop` comes. It tells what keeps it from listening, and tries again. Never rejects. */
export async function runPage(port: MessagePort, options: RunPageOptions): Promise<void> {
  const post = (message: FromPage): void => port.postMessage(message);
  const log = logOver(post);
  const stop = new AbortController();
  const may = Promise.withResolvers<number | undefined>();
  post({ type: "started" });
  const pages = new LivePages({ post, named: options.named });
  const questions = new Questions(post);
  port.on("message", (message: ToPage) => {
    if (message.type === "stop") stop.abort();
    else if (message.type === "listen") may.resolve(message.port);
    else if (message.type === "reply") questions.take(message.id, message.reply);
    else pages.take(message);
  });
  const stopped = aborted(stop.signal);
  const atPort = await Promise.race([may.promise, stopped.then(() => undefined)]);
  const served = await untilListening(() => listen(options, atPort, { pages, questions, post, log }), {
    onTrouble: (message) => post({ type: "trouble", message }),
    signal: stop.signal,
    retryMs: options.retryMs,
  });
  if (served) post({ type: "listening", url: served.url });
  await stopped;
  pages.close();
  questions.close();
  await served?.close();
  post({ type: "stopped" });
  port.close();
}

interface Serving {
  readonly pages: LivePages;
  readonly questions: Questions;
  readonly post: (message: FromPage) => void;
  readonly log: Log;
}

/** `atPort`: instead of the port of the settings. */
async function listen(options: RunPageOptions, atPort: number | undefined, { pages, questions, post, log }: Serving): Promise<Served> {
  const { listen: at, tls: files, tokenFile, bufferFile, assets } = options;
  const { host, port } = placeOf(at);
  const certificate = files && { ...CERTIFICATE, files, pem: readTls(files, CERTIFICATE.setting) };
  if (tokenFile !== undefined) readToken(tokenFile);
  const accesses = createBudget(MAX_ACCESSES, ACCESS_REFILL_MS, () => performance.now());
  const page = new PageServer({
    pages,
    questions,
    buffer: bufferFile === undefined ? undefined : new BufferTrends(bufferFile),
    seen: (access) => (accesses.take() ? post({ type: "access", access }) : undefined),
    assets,
    tokenFile,
    cert: certificate?.pem.cert,
    log,
  });
  const listener = new HttpListener({
    what: CERTIFICATE.what,
    allow: "GET, HEAD, POST",
    answer: (request, response) => void page.answer(request, response),
    certificate,
    limits: { answers: MAX_ANSWERS },
    log,
  });
  try {
    await listener.listen({ host, port: atPort ?? port });
  } catch (error) {
    await listener.close();
    throw notListened(at, error);
  }
  return {
    url: urlOf(certificate ? "https" : "http", host, listener.port ?? 0),
    close: () => listener.close(),
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener("abort", () => done(), { once: true });
  });
