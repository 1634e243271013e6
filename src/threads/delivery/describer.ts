import { createYielder, type YieldToEventLoop } from "../../base/timer.ts";
import type { DescribedSource, ToDelivery } from "../../delivery/messages.ts";
import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";

/** Copying one for another thread takes about 1.5 µs, in one slice of the thread that reads. */
const VARIABLES_AT_ONCE = 500;

/**
 * Describes the sources to a delivery worker: what changed of their layouts first, in pieces, then all of them in one message. Asked again
 * meanwhile, it starts over when it is through.
 */
export class Describer {
  readonly #post: (message: ToDelivery) => void;
  readonly #sources: () => readonly SourceReport[];
  /** What the worker knows, by source; a source's layout is one object as long as it is the same. */
  #known = new Map<string, Layout>();
  #isWorking = false;
  #isAsked = false;

  constructor(post: (message: ToDelivery) => void, sources: () => readonly SourceReport[]) {
    this.#post = post;
    this.#sources = sources;
  }

  /** The worker is a new one. */
  reset(): void {
    this.#known = new Map();
  }

  /** If no layout has changed the worker has its message when this returns. */
  describe(): void {
    this.#isAsked = true;
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    const yieldToEventLoop = createYielder();
    while (this.#isAsked) {
      this.#isAsked = false;
      const known = this.#known;
      for (const { uuid, layout } of this.#sources())
        if (layout && known.get(uuid) !== layout) {
          await this.#postLayout(layout, yieldToEventLoop);
          known.set(uuid, layout);
        }
      // A new worker has rounds of its own.
      if (known === this.#known) this.#postSources();
    }
    this.#isWorking = false;
  }

  async #postLayout({ source, variables }: Layout, yieldToEventLoop: YieldToEventLoop): Promise<void> {
    for (let from = 0; from === 0 || from < variables.length; from += VARIABLES_AT_ONCE) {
      this.#post({ type: "layout", source, from, variables: variables.slice(from, from + VARIABLES_AT_ONCE) });
      await yieldToEventLoop();
    }
  }

  #postSources(): void {
    const sources = this.#sources();
    const described = sources.map(({ layout, ...source }): DescribedSource => {
      if (layout === null) return { ...source, layout };
      // One that has changed since follows with the next round.
      if (this.#known.get(source.uuid) !== layout) this.#isAsked = true;
      return source;
    });
    this.#known = new Map([...this.#known].filter(([uuid]) => sources.some((source) => source.uuid === uuid)));
    this.#post({ type: "sources", sources: described });
  }
}
