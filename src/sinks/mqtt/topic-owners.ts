import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { collisionHint, isOwnTopic, namesSource, type TopicPlan } from "./topics.ts";

interface Owner {
  readonly source: string;
  readonly variable: string;
  /** Of source and variable. */
  readonly key: string;
}

/** The data source that has a name, where several have it. */
interface NameOwner {
  readonly uuid: string;
  layout: Layout | null;
}

const MAX_WARNINGS = 5;

const keyOf = (sourceUuid: string, variableUuid: string): string => `${sourceUuid} ${variableUuid}`;

/**
 * Whom a topic belongs to that several would have: variables, of a template that keeps them not apart, and data sources of one name. The
 * first one keeps it, over all openings of one sink: two on one topic would look like one that jumps.
 */
export class TopicOwners {
  readonly #owners = new Map<string, Owner>();
  /** By name of the data source. */
  readonly #names = new Map<string, NameOwner>();
  /** By uuid: data sources that have the name of another one. */
  #namesakes: ReadonlyMap<string, SourceReport> = new Map();
  #layouts: readonly (Layout | null)[] = [];
  /** Counts the changes after which a refused topic may be free. */
  changes = 0;

  /** Takes the topic for a variable. Why it is refused, or undefined. */
  claim(plan: TopicPlan, topic: string, layout: Layout, place: number): string | undefined {
    const { source, variables } = layout;
    if (isOwnTopic(plan, topic)) return `${topic}, the topic of ${source.name}, is for the collector's own status; use another template`;
    const variable = variables[place];
    const namesake = this.#claimName(plan, topic, layout, variable?.name);
    if (namesake !== undefined) return namesake;
    const hint = collisionHint(plan);
    if (!variable || hint === undefined) return undefined;
    const key = keyOf(source.uuid, variable.uuid);
    const owner = this.#owners.get(topic);
    if (owner && owner.key !== key)
      return `${topic}, the topic of ${variable.name} of ${source.name}, is that of ${owner.variable} of ${owner.source}; ${hint}`;
    if (!owner) this.#owners.set(topic, { source: source.name, variable: variable.name, key });
    return undefined;
  }

  /** Frees the topics of sources and variables that are gone or have another name. */
  describe(sources: readonly SourceReport[]): void {
    this.#describeNames(sources);
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

  /** True: the topics that are made of the name alone, status and metadata, are this source's. */
  ownsName({ uuid, name }: Pick<SourceReport, "uuid" | "name">): boolean {
    return (this.#names.get(name)?.uuid ?? uuid) === uuid;
  }

  /** Names that several sources have. */
  warnings(plan: TopicPlan): readonly Warning[] {
    const values = namesSource(plan) ? "values of the second on a topic of the first are refused, and " : "";
    return [...this.#namesakes.values()].slice(0, MAX_WARNINGS).map(({ uuid, name }) => {
      const first = this.#names.get(name)?.uuid;
      const text = `the data sources ${first} and ${uuid} are both named ${name}: ${values}status and metadata are those of the first; rename one`;
      return warning("names_shared", text, name);
    });
  }

  #claimName(plan: TopicPlan, topic: string, layout: Layout, variable: string | undefined): string | undefined {
    const { uuid, name } = layout.source;
    // What waits of a source that is configured no more goes to its topic, whoever has the name now.
    if (!namesSource(plan) || !this.#namesakes.has(uuid)) return undefined;
    const owner = this.#names.get(name);
    if (!owner || owner.uuid === uuid) return undefined;
    const isShared = !plan.perVariable || owner.layout?.variables.some((one) => one.name === variable && !one.exploration);
    const what = plan.perVariable ? `${variable} of ${name}` : name;
    return isShared
      ? `${topic}, the topic of ${what} (${uuid}), is that of another data source of this name (${owner.uuid}); rename one`
      : undefined;
  }

  #describeNames(sources: readonly SourceReport[]): void {
    const now = new Map(sources.map((source) => [source.uuid, source]));
    for (const [name, { uuid }] of this.#names) {
      if (now.get(uuid)?.name === name) continue;
      this.#names.delete(name);
      this.changes++;
    }
    for (const { uuid, name, layout } of sources) {
      const owner = this.#names.get(name);
      if (!owner) this.#names.set(name, { uuid, layout });
      else if (owner.uuid === uuid && owner.layout !== layout) {
        owner.layout = layout;
        this.changes++;
      }
    }
    this.#namesakes = new Map(sources.flatMap((source) => (this.ownsName(source) ? [] : [[source.uuid, source]])));
  }
}
