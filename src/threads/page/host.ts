import type { Sample } from "../../agent/live-values.ts";
import { sleep } from "../../base/timer.ts";
import { SupervisedWorker } from "../../lib/thread/host.ts";
import { type Warning, warning } from "../../model/warning.ts";
import type { DataQuestion, DataReply } from "../../service/page/data-messages.ts";
import { SourceFeed } from "../../service/page/feed.ts";
import { type FromPage, PAGE_HEAP, type SourceView, type ToPage } from "../../service/page/messages.ts";
import type { PageHostOptions, ServedPage } from "../../service/page/served.ts";

const STOP_MS = 2000;
const NO_SAMPLES: ReadonlyMap<string, Sample> = new Map();

/** The page in a worker of its own: gives it the state of the service, at most once a second for all who look, and only while somebody does. */
export class PageHost implements ServedPage {
  readonly #options: PageHostOptions;
  readonly #feed: SourceFeed;
  readonly #worker: SupervisedWorker<FromPage>;
  readonly #stop = new AbortController();
  /** One walk over the sources at a time. Never rejects. */
  #walk: Promise<unknown> = Promise.resolve();
  #trouble: string | undefined;

  constructor(options: PageHostOptions) {
    const { entry, workerData, log, agent } = options;
    this.#options = options;
    this.#feed = new SourceFeed(agent);
    this.#worker = new SupervisedWorker({
      entry,
      name: "page",
      workerData,
      resourceLimits: PAGE_HEAP,
      log,
      onMessage: (message) => this.#onMessage(message),
    });
  }

  /** Notes for people, shown in status. */
  notes(): readonly Warning[] {
    return this.#trouble === undefined ? [] : [warning("page_ended", this.#trouble)];
  }

  /** Never throws. */
  stop(): Promise<void> {
    this.#stop.abort();
    return this.#worker.stop(STOP_MS);
  }

  #onMessage(message: FromPage): void {
    const { log } = this.#options;
    if (message.type === "started") this.#feed.forget();
    else if (message.type === "ask") void this.#inTurn(() => this.#answer(message));
    else if (message.type === "question") this.#reply(message);
    else if (message.type === "access") this.#options.data.seen(message.access);
    else if (message.type === "listening") log.info({ url: message.url }, "the page is served");
    else if (message.type === "trouble") {
      if (message.message !== null && message.message !== this.#trouble) log.error({}, message.message);
      this.#trouble = message.message ?? undefined;
    }
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
    if (!this.#stop.signal.aborted) this.#worker.post(message);
  }
}
