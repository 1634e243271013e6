import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { SourceReport } from "../model/report.ts";
import { GapPublisher, type GapPublisherOptions } from "./gaps.ts";
import type { Opening } from "./opening.ts";

/** Publishes over a sink what is not values: the state of the sources, and the gaps in the values. */
export class Notices {
  /** Undefined: this sink gets no gaps. */
  readonly #gaps: GapPublisher | undefined;
  readonly #log: Log;
  #opening: Opening | undefined;
  #sources: readonly SourceReport[] | undefined;
  #isDescribing = false;
  /** Publications of the current opening that have begun and not succeeded. */
  #unfinished = 0;

  constructor(gaps: GapPublisherOptions | undefined, log: Log) {
    this.#gaps = gaps && new GapPublisher(gaps);
    this.#log = log;
  }

  open(opening: Opening): void {
    this.#opening = opening;
    this.#unfinished = 0;
    void this.#describe();
    void this.#publishGaps();
  }

  close(): void {
    this.#opening = undefined;
  }

  /** Publishes the sources as they are now; a sink that opens later gets them too. */
  describe(sources: readonly SourceReport[]): void {
    this.#sources = sources;
    void this.#describe();
  }

  /** Publishes the gaps that are not published yet. */
  publishGaps(): void {
    void this.#publishGaps();
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

  async #publishGaps(): Promise<void> {
    const opening = this.#opening;
    const gaps = this.#gaps;
    if (!opening || !gaps) return;
    try {
      await this.#tracked(opening, () => gaps.publish(opening.sink, opening.ctx));
    } catch (error) {
      if (error instanceof ReasonError) opening.lose(error);
      else this.#log.debug({ err: error }, "the gaps cannot be read; they are published later");
    }
  }

  async #tracked(opening: Opening, publish: () => Promise<void>): Promise<void> {
    this.#unfinished++;
    await publish();
    if (opening === this.#opening) this.#unfinished--;
  }
}
