import type { Sample } from "../../agent/live-values.ts";
import { sleep } from "../../base/timer.ts";
import { Doorway } from "../../lib/doorway.ts";
import { SupervisedWorker } from "../../lib/thread/host.ts";
import { type Warning, warning } from "../../model/warning.ts";
import type { DataQuestion, DataReply } from "../../service/page/data-messages.ts";
import { SourceFeed } from "../../service/page/feed.ts";
import { type FromPage, PAGE_HEAP, type SourceView, type ToPage } from "../../service/page/messages.ts";
import type { PageHostOptions, ServedPage } from "../../service/page/served.ts";
import { notListened, placeOf, untilListening, urlOf } from "../../service/page/until-listening.ts";

const STOP_MS = 2000;
const NO_SAMPLES: ReadonlyMap<string, Sample> = new Map();

/**
 * The page in a worker of its own: gives it the state of the service, at most once a second for all who look, and only while somebody does.
 * The worker takes about 15 MiB: where whoever looks is at this machine it begins with the first one.
 */
export class PageHost implements ServedPage {
  readonly #options: PageHostOptions;
  readonly #feed: SourceFeed;
  /** Undefined: nobody has come yet. */
  #worker: SupervisedWorker<FromPage> | undefined;
  #doorway: Doorway | undefined;
  /** The doorway's, where it was there first. */
  #port: number | undefined;
  readonly #stop = new AbortController();
  /** One walk over the sources at a time. Never rejects. */
  #walk: Promise<unknown> = Promise.resolve();
  /** Why it is not served. */
  #why: string | undefined;

  constructor(options: PageHostOptions) {
    const { tls, tokenFile } = options.workerData;
    this.#options = options;
    this.#feed = new SourceFeed(options.agent);
    // The worker reads certificate and token, and says at the start what is wrong with them.
    if (tls || tokenFile !== undefined) this.#begin();
    else void this.#awaitFirst();
  }

  /** Notes for people, shown in status. */
  notes(): readonly Warning[] {
    return this.#why === undefined ? [] : [warning("page_ended", this.#why)];
  }

  /** Never throws. */
  stop(): Promise<void> {
    this.#stop.abort();
    this.#doorway?.close();
    return this.#worker?.stop(STOP_MS) ?? Promise.resolve();
  }

  async #awaitFirst(): Promise<void> {
    const { listen: at } = this.#options.workerData;
    const { host, port } = placeOf(at);
    const listen = async (): Promise<number> => {
      this.#doorway?.close();
      const doorway = new Doorway(() => this.#begin());
      this.#doorway = doorway;
      await doorway.listen({ host, port }).catch((error: unknown) => Promise.reject(notListened(at, error)));
      return doorway.port ?? port;
    };
    this.#port = await untilListening(listen, { onTrouble: (words) => this.#trouble(words), signal: this.#stop.signal });
    if (this.#port !== undefined) this.#served(urlOf("http", host, this.#port));
  }

  #begin(): void {
    const { entry, workerData, log } = this.#options;
    this.#worker = new SupervisedWorker({
      entry,
      name: "page",
      workerData,
      resourceLimits: PAGE_HEAP,
      log,
      onMessage: (message) => this.#onMessage(message),
    });
  }

  #served(url: string): void {
    this.#options.log.info({ url }, "the page is served");
  }

  #onMessage(message: FromPage): void {
    if (message.type === "started") {
      this.#feed.forget();
      this.#doorway?.vacate();
      this.#post({ type: "listen", port: this.#port });
    } else if (message.type === "ask") void this.#inTurn(() => this.#answer(message));
    else if (message.type === "question") this.#reply(message);
    else if (message.type === "access") this.#options.data.seen(message.access);
    else if (message.type === "listening") this.#listens(message.url);
    else if (message.type === "trouble") this.#trouble(message.message);
  }

  /** The log has said so before, where the doorway was first. */
  #listens(url: string): void {
    const { host } = placeOf(this.#options.workerData.listen);
    if (this.#port === undefined) this.#served(url);
    else this.#doorway?.lead({ host, port: this.#port });
  }

  #trouble(words: string | null): void {
    if (words !== null && words !== this.#why) this.#options.log.error({}, words);
    this.#why = words ?? undefined;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#walk.then(() => (this.#stop.signal.aborted ? undefined : work()));
    this.#walk = done.catch((error: unknown) => this.#options.log.error({ err: error }, "the page could not be told what has changed"));
    return this.#walk as Promise<void>;
  }

  async #answer({ id, scope, looks }: Extract<FromPage, { type: "ask" }>): Promise<void> {
    const samples = scope === "all" ? new Map<string, Sample>() : undefined;
    const changes = samples && (await this.#feed.changes(samples));
    if (changes) this.#post(changes);
    const views: SourceView[] = [];
    for (const look of looks) {
      const view = this.#feed.view(look);
      if (view) views.push(view);
      // Each is a slice of its own: timers and sockets have their turn between them.
      await sleep(0);
    }
    this.#post({
      type: "answer",
      id,
      head: this.#options.head(),
      samples: samples ?? NO_SAMPLES,
      views,
      hours: this.#options.data.hours(),
    });
  }

  /** Questions of viewers are rare, and each is a slice of its own. */
  #reply({ id, question }: Extract<FromPage, { type: "question" }>): void {
    this.#post({ type: "reply", id, reply: this.#replyTo(question) });
  }

  #replyTo(question: DataQuestion): DataReply | undefined {
    try {
      return this.#options.data.reply(question);
    } catch (error) {
      this.#options.log.error({ err: error, question: question.type }, "a question of the page could not be answered");
      return undefined;
    }
  }

  #post(message: ToPage): void {
    if (!this.#stop.signal.aborted) this.#worker?.post(message);
  }
}
