import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import { collisionHint, isOwnTopic, type TopicPlan } from "./topics.ts";

interface Owner {
  readonly source: string;
  readonly variable: string;
  /** Of source and variable. */
  readonly key: string;
}

const keyOf = (sourceUuid: string, variableUuid: string): string => `${sourceUuid} ${variableUuid}`;

/**
 * Which variable a topic belongs to, of a template that gives several the same, over all openings of one sink. The first one keeps it: two
 * on one topic would look like one that jumps.
 */
export class TopicOwners {
  readonly #owners = new Map<string, Owner>();
  #layouts: readonly (Layout | null)[] = [];
  /** Counts the changes after which a refused topic may be free. */
  changes = 0;

  /** Takes the topic for a variable. Why it is refused, or undefined. */
  claim(plan: TopicPlan, topic: string, { source, variables }: Layout, place: number): string | undefined {
    if (isOwnTopic(plan, topic)) return `${topic}, the topic of ${source.name}, is for the collector's own status; use another template`;
    const variable = variables[place];
    const hint = collisionHint(plan);
    if (!variable || hint === undefined) return undefined;
    const key = keyOf(source.uuid, variable.uuid);
    const owner = this.#owners.get(topic);
    if (owner && owner.key !== key)
      return `${topic}, the topic of ${variable.name} of ${source.name}, is that of ${owner.variable} of ${owner.source}; ${hint}`;
    if (!owner) this.#owners.set(topic, { source: source.name, variable: variable.name, key });
    return undefined;
  }

  /** Frees the topics of variables that are gone or have another name. */
  describe(sources: readonly SourceReport[]): void {
    const layouts = sources.map(({ layout }) => layout);
    if (layouts.length === this.#layouts.length && layouts.every((layout, i) => layout === this.#layouts[i])) return;
    this.#layouts = layouts;
    if (this.#owners.size === 0) return;
    const names = new Map<string, string>();
    for (const layout of layouts)
      for (const { uuid, name } of layout?.variables ?? [])
        names.set(keyOf(layout?.source.uuid ?? "", uuid), `${layout?.source.name} ${name}`);
    for (const [topic, { key, source, variable }] of this.#owners)
      if (names.get(key) !== `${source} ${variable}`) this.#owners.delete(topic);
    this.changes++;
  }
}
