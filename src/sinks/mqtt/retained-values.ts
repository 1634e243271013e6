import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import type { RetainedTopics } from "./retained-topics.ts";
import { createTopicTest, dataTopic, type TopicPlan } from "./topics.ts";

/** One value that is about to be published. */
interface Candidate {
  readonly topic: string;
  /** Of its readout, epoch ms. */
  readonly time: number;
  /** Newer values of its topic may have been published before it. */
  readonly isLate: boolean;
}

/** Decides which values the broker keeps, over all openings of one sink: the newest of each variable that is published, and no other. */
export class RetainedValues {
  /** Those that the broker may have. */
  readonly #topics: RetainedTopics;
  /** By topic: the time of the value that the broker keeps, epoch ms. */
  readonly #newest = new Map<string, number>();
  /** What `#desired` was made of. */
  #layouts: readonly (Layout | null)[] | undefined;
  /** Topics of the variables that are published; undefined: not known yet. */
  #desired: ((topic: string) => boolean) | undefined;

  constructor(topics: RetainedTopics) {
    this.#topics = topics;
  }

  /**
   * True: the broker is to keep this value; it counts as kept from then on. An older one never replaces a newer one: after a step of the
   * clock, what is not late is newer whatever its time says.
   */
  keeps({ topic, time, isLate }: Candidate): boolean {
    if (this.#desired?.(topic) === false) return false;
    if (isLate && time < (this.#newest.get(topic) ?? Number.NEGATIVE_INFINITY)) return false;
    this.#newest.set(topic, time);
    this.#topics.add(topic);
    return true;
  }

  /** No newer value of its topic was published since. */
  isNewest({ topic, time }: { readonly topic: string; readonly time?: number }): boolean {
    return this.#newest.get(topic) === time;
  }

  /** The topics to clear, now that these are the sources; none while nothing has changed. `plan` undefined: no value is to be kept. */
  toClear(plan: TopicPlan | undefined, sources: readonly SourceReport[]): readonly string[] {
    const layouts = sources.map(({ layout }) => layout);
    const before = this.#layouts;
    if (before && before.length === layouts.length && before.every((layout, i) => layout === layouts[i])) return [];
    this.#layouts = layouts;
    const desired = plan ? testOf(plan, sources) : () => false;
    this.#desired = desired;
    return [...this.#topics].filter((topic) => !desired(topic));
  }

  /** All that the broker may have. */
  all(): readonly string[] {
    return [...this.#topics];
  }

  /** The broker keeps nothing at this topic any more. */
  cleared(topic: string): void {
    this.#topics.delete(topic);
    this.#newest.delete(topic);
  }

  /** A new opening: what could not be cleared in the one before is tried again. */
  opened(): void {
    this.#layouts = undefined;
  }

  /** Saves what outlasts the process; `forget`: deletes that instead. Never throws. */
  close(forget: boolean): void {
    this.#topics.close(forget);
  }
}

/** Of a source whose variables are not known yet, everything may be published. */
function testOf(plan: TopicPlan, sources: readonly SourceReport[]): (topic: string) => boolean {
  const known = new Set<string>();
  const unknown: ((topic: string) => boolean)[] = [];
  for (const { name, layout } of sources)
    if (!layout) unknown.push(createTopicTest(plan, name));
    else for (const variable of layout.variables) if (!variable.exploration) known.add(dataTopic(plan, layout.source, variable.name));
  return (topic) => known.has(topic) || unknown.some((isOf) => isOf(topic));
}
