import type { Hold } from "../sink.ts";

/** Topics at once: of those beyond, each publish is tried. */
const MAX_TOPICS = 10_000;

interface Held {
  readonly untilMs: number;
  readonly next: Hold["next"];
  readonly detail: string;
}

/**
 * Topics to which the broker takes nothing for now, over all openings of one sink: what comes for them is held without a publish, but for
 * what the delivery tries again. After the time of a topic each publish is tried. Times are monotonic ms.
 */
export class HeldTopics {
  readonly #topics = new Map<string, Held>();

  /** The broker refused a publish to the topic. */
  refused(topic: string, next: Hold["next"], forMs: number, detail: string, nowMs: number): void {
    if (!this.#topics.has(topic) && this.#topics.size < MAX_TOPICS) this.#topics.set(topic, { untilMs: nowMs + forMs, next, detail });
  }

  /** The broker took a publish to the topic. */
  accepted(topic: string): void {
    if (this.#topics.size > 0) this.#topics.delete(topic);
  }

  /** What a publish to the topic would be refused with; undefined: it is to be tried. */
  heldWith(topic: string, nowMs: number): Omit<Held, "untilMs"> | undefined {
    const held = this.#topics.size > 0 ? this.#topics.get(topic) : undefined;
    return held && nowMs < held.untilMs ? held : undefined;
  }
}
