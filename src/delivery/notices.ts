import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { SourceReport } from "../model/report.ts";
import { LossPublisher, type LossPublisherOptions } from "./losses.ts";
import type { Opening } from "./opening.ts";

/** Publishes over a sink what is not values: the state of the sources, and the losses in the values. */
export class Notices {
  /** Undefined: this sink gets no losses. */
  readonly #losses: LossPublisher | undefined;
  readonly #log: Log;
  #opening: Opening | undefined;
  #sources: readonly SourceReport[] | undefined;
  #isDescribing = false;
  #lossTimer: NodeJS.Timeout | undefined;
  /** Publications of the current opening that have begun and not succeeded. */
  #unfinished = 0;

  constructor(losses: LossPublisherOptions | undefined, log: Log) {
    this.#losses = losses && new LossPublisher(losses);
    this.#log = log;
  }

  open(opening: Opening): void {
    this.#opening = opening;
    this.#unfinished = 0;
    void this.#describe();
    void this.#publishLosses();
  }

  close(): void {
    this.#opening = undefined;
    clearTimeout(this.#lossTimer);
  }

  /** Publishes the sources as they are now; a sink that opens later gets them too. */
  describe(sources: readonly SourceReport[]): void {
    this.#sources = sources;
    void this.#describe();
  }

  /** Publishes the losses that are not published yet. */
  publishLosses(): void {
    void this.#publishLosses();
  }

  /** A publication of this opening is under way, or was when it failed. */
  isPublishing(): boolean {
    return this.#unfinished > 0;
  }

  async #describe(): Promise<void> {
    const opening = this.#opening;
    if (!opening?.sink.describe || this.#isDescribing) return;
    this.#isDescribing = true;
    try {
      for (let now = this.#sources; now && opening === this.#opening; now = this.#sources === now ? undefined : this.#sources) {
        const sources = now;
        await this.#tracked(opening, async () => opening.sink.describe?.(sources, opening.ctx));
      }
    } catch (error) {
      opening.lose(error);
    } finally {
      this.#isDescribing = false;
      if (this.#opening && opening !== this.#opening) void this.#describe();
    }
  }

  async #publishLosses(): Promise<void> {
    const opening = this.#opening;
    const losses = this.#losses;
    if (!opening || !losses) return;
    try {
      let againMs: number | undefined;
      await this.#tracked(opening, async () => {
        againMs = await losses.publish(opening.sink, opening.ctx);
      });
      if (againMs !== undefined && opening === this.#opening) this.#publishLossesIn(againMs);
    } catch (error) {
      if (error instanceof ReasonError) opening.lose(error);
      else this.#log.debug({ err: error }, "the losses cannot be read; they are published later");
    }
  }

  #publishLossesIn(ms: number): void {
    clearTimeout(this.#lossTimer);
    this.#lossTimer = setTimeout(() => void this.#publishLosses(), ms);
  }

  async #tracked(opening: Opening, publish: () => Promise<void>): Promise<void> {
    this.#unfinished++;
    await publish();
    if (opening === this.#opening) this.#unfinished--;
  }
}
