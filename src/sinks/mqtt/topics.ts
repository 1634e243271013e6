import type { Layout } from "../../model/layout.ts";
import { ReasonError } from "../../model/reason.ts";
import { topicProblem } from "../../model/sink-details.ts";

/** A sink's `topic`, taken apart. Made by `parseTopic`. */
export interface TopicPlan {
  /** Texts and placeholders by turns. */
  readonly parts: readonly TopicPart[];
  /** One value a message. */
  readonly perVariable: boolean;
  /** Before `status`, `meta` and `gap`: empty, or ending in `/`. */
  readonly prefix: string;
}

type Placeholder = "source" | "variable" | "machine";
type TopicPart = { readonly text: string } | { readonly placeholder: Placeholder };

/** Words that need no setting. */
export const OWN_PLACEHOLDERS: readonly string[] = ["source", "variable", "machine", "collector"];

/** A source as topics name it. */
export type TopicSource = Pick<Layout["source"], "name" | "machine">;

/** In place of the machine of a source that has none. */
const NO_MACHINE = "no-machine";

/** MQTT 5.0, 4.7.3: at most 65,535 bytes; a name of 200 characters may take 1800 of them twice. */
const MAX_TEMPLATE_BYTES = 60_000;

/**
 * `plant/values` is literal; `{source}`, `{machine}` and `{variable}` make a template; other words are filled in before. Throws ReasonError(UNKNOWN, configuration_invalid)
 * that names the topic and what would be right.
 */
export function parseTopic(topic: string): TopicPlan {
  const problem = problemOf(topic);
  if (problem !== undefined)
    throw new ReasonError("UNKNOWN", `topic: ${JSON.stringify(topic.slice(0, 200))}: ${problem}`, { condition: "configuration_invalid" });
  const parts: TopicPart[] = [];
  let at = 0;
  for (const match of topic.matchAll(/\{(source|variable|machine)\}/g)) {
    if (match.index > at) parts.push({ text: topic.slice(at, match.index) });
    parts.push({ placeholder: match[1] as Placeholder });
    at = match.index + match[0].length;
  }
  if (at < topic.length) parts.push({ text: topic.slice(at) });
  const first = parts[0];
  const before = first && "text" in first ? first.text : "";
  const isLiteral = parts.length === 1 && before !== "";
  return {
    parts,
    perVariable: parts.some((part) => "placeholder" in part && part.placeholder === "variable"),
    prefix: isLiteral ? `${topic}/` : before.slice(0, before.lastIndexOf("/") + 1),
  };
}

/** The place where a batch of `source` goes, or one value of `variable`. */
export function dataTopic({ parts }: TopicPlan, { name: source, machine = NO_MACHINE }: TopicSource, variable: string): string {
  const words = { source, machine, variable };
  let topic = "";
  for (const part of parts) topic += "text" in part ? part.text : escapeLevel(words[part.placeholder]);
  return topic;
}

/** True: topics of values are made of the name of the data source. */
export const namesSource = ({ parts }: Pick<TopicPlan, "parts">): boolean =>
  parts.some((part) => "placeholder" in part && part.placeholder === "source");

/** What to do so that no two variables have one topic; undefined: those of data sources with different names never have. */
export function collisionHint({ parts, perVariable }: TopicPlan): string | undefined {
  if (!perVariable) return undefined;
  if (!namesSource({ parts })) return "put {source} into the topic, or give the variables of all sources different names";
  const isApart = parts.every((part, i) => {
    const after = parts[i + 1];
    if ("text" in part || !after) return true;
    if ("placeholder" in after) return after.placeholder === part.placeholder;
    const next = parts[i + 2];
    return !next || after.text.includes("/") || ("placeholder" in next && next.placeholder === part.placeholder);
  });
  return isApart ? undefined : "put a / between {source} and {variable}, or rename one";
}

/** True: the topic is one of status, metadata or losses: {source} as a part of a level may make it so. */
export function isOwnTopic({ prefix, parts }: TopicPlan, topic: string): boolean {
  if (parts.length === 1 || !topic.startsWith(prefix)) return false;
  const level = topic.slice(prefix.length).split("/", 1)[0] ?? "";
  return level === "status" || level === "meta" || level === "gap";
}

/** A test of whether a topic may be one of this source's, whatever the names of its variables. */
export function createTopicTest({ parts }: TopicPlan, source: string): (topic: string) => boolean {
  const patterns = parts.map((part) => {
    if ("text" in part) return literal(part.text);
    return part.placeholder === "source" ? literal(escapeLevel(source)) : "[^/]+";
  });
  const pattern = new RegExp(`^${patterns.join("")}$`, "s");
  return (topic) => pattern.test(topic);
}

/** Retained, with the last will: whether this collector is online. */
export const collectorStatusTopic = ({ prefix }: TopicPlan): string => `${prefix}status`;
/** Of losses: values that the broker will never get. */
export const lossTopic = ({ prefix }: TopicPlan): string => `${prefix}gap`;
/** Retained: state and reason of one source. */
export const sourceStatusTopic = ({ prefix }: TopicPlan, source: string): string => `${prefix}status/${escapeLevel(source)}`;
/** Retained: the variables of one source. */
export const sourceMetaTopic = ({ prefix }: TopicPlan, source: string): string => `${prefix}meta/${escapeLevel(source)}`;
/** Retained: what the broker has acknowledged of one source. No name of a source or variable leads below `meta`. */
export const manifestTopic = (plan: TopicPlan, source: string): string => `${sourceMetaTopic(plan, source)}/manifest`;
/** Not retained: the same of one minute. */
export const minuteTopic = (plan: TopicPlan, source: string): string => `${sourceMetaTopic(plan, source)}/minute`;

/** Filters for all values of a sink, and for its manifests with the records of minutes. */
export function topicFilters({ parts, prefix }: TopicPlan): { readonly data: string; readonly manifests: readonly string[] } {
  const topic = parts.map((part) => ("text" in part ? part.text : "\0")).join("");
  const levels = topic.split("/").map((level) => (level.includes("\0") ? "+" : level));
  return { data: levels.join("/"), manifests: [`${prefix}meta/+/manifest`, `${prefix}meta/+/minute`] };
}

/**
 * A name as one topic level. Injective: different names stay different. What a topic cannot hold or would read otherwise
 * (`/ + # % $`, NUL and other control characters) becomes `%XX` of its UTF-8 bytes, half of a surrogate pair `%uXXXX`, the empty name `%`;
 * the whole names `status`, `meta` and `gap` begin with `%73`, `%6D` and `%67`, so that no value lands on a topic that is not for values.
 */
export function escapeLevel(name: string): string {
  if (name === "") return "%";
  if (name === "status") return "%73tatus";
  if (name === "meta") return "%6Deta";
  if (name === "gap") return "%67ap";
  let escaped = "";
  for (const character of name) {
    if (/[/+#%$]/.test(character) || hasControl(character)) escaped += percent(character);
    else if (!character.isWellFormed()) escaped += `%u${character.charCodeAt(0).toString(16).toUpperCase()}`;
    else escaped += character;
  }
  return escaped;
}

/** A regular expression for this text alone. */
const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

/** MQTT 5.0, 1.5.4: NUL must not and the other control characters should not be in a topic. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const hasControl = (text: string): boolean => /[\u0000-\u001F\u007F-\u009F]/.test(text);

const percent = (character: string): string =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");

function problemOf(topic: string): string | undefined {
  if (topic.startsWith("$")) return "topics that begin with $ are the broker's own; begin it otherwise";
  if (Buffer.byteLength(topic) > MAX_TEMPLATE_BYTES) return `it is longer than ${MAX_TEMPLATE_BYTES} bytes; shorten it`;
  return topicProblem(topic);
}
