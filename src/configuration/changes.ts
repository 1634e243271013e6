import { isDeepStrictEqual } from "node:util";
import { configuredIntervalMs, type SourceInput } from "../agent/source-spec.ts";
import { formatDuration } from "../base/duration.ts";
import { LargeMap } from "../base/large-map.ts";
import { withoutCredentials } from "../base/plain-text.ts";
import type { YieldToEventLoop } from "../base/timer.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { isSecretName } from "../lib/loggable.ts";
import type { Variable } from "../model/variable.ts";
import type { DesiredState } from "./desired-state.ts";

/** Names, and entries that have changed, in one line. */
const NAMED = 10;
/** Changes that are kept of one configuration, and of the variables of one source. */
const MAX_CHANGES = 100;
const MAX_VARIABLES = 10;
const MAX_VALUE = 80;

/** A field that is another, in words; with its values where they are no secret and short. */
export interface FieldChange {
  readonly text: string;
  readonly before?: string;
  readonly after?: string;
}

/** A change of a source, a sink, or a variable as SOURCE/VARIABLE. */
export interface ConfigurationChange extends FieldChange {
  readonly about: string;
}

export interface Changes {
  /** The clauses of one line; empty: nothing that a person knows by a name. */
  readonly clauses: readonly string[];
  /** One by one; at most a hundred. */
  readonly changes: readonly ConfigurationChange[];
}

/**
 * The changes of a configuration, by name. A value is told as it was and as it is, never a secret's. Unchanged things are the same objects mostly,
 * which makes this cheap; goes by slices.
 */
export async function changesOf(before: DesiredState, now: DesiredState, yieldToEventLoop: YieldToEventLoop): Promise<Changes> {
  const sources = compared(before.sources, now.sources, ({ record }) => record.uuid);
  const sinks = compared(before.sinks, now.sinks, ({ uuid }) => uuid);
  const [addedSources, removedSources] = [sources.added.map(sourceName), sources.removed.map(sourceName)];
  const [addedSinks, removedSinks] = [sinks.added.map(sinkName), sinks.removed.map(sinkName)];
  const clauses: string[] = [
    ...listed("added", addedSources),
    ...listed("removed", removedSources),
    ...listed("added the data sink", addedSinks),
    ...listed("removed the data sink", removedSinks),
  ];
  const changes: ConfigurationChange[] = [
    ...addedSources.map((about) => ({ about, text: "added the data source" })),
    ...removedSources.map((about) => ({ about, text: "removed the data source" })),
    ...addedSinks.map((about) => ({ about, text: "added the data sink" })),
    ...removedSinks.map((about) => ({ about, text: "removed the data sink" })),
  ].slice(0, MAX_CHANGES);
  let unnamed = 0;
  const add = (about: string, fields: readonly FieldChange[], variables: readonly ConfigurationChange[]): void => {
    if (fields.length === 0) return;
    if (clauses.length < NAMED) clauses.push(`${about}: ${fields.map(({ text }) => text).join(", ")}`);
    else unnamed++;
    for (const one of [...fields.map((field) => ({ about, ...field })), ...variables]) if (changes.length < MAX_CHANGES) changes.push(one);
  };
  for (const [was, is] of sources.both) {
    if (was !== is) {
      const { count, named } = await variableChanges(was, is, yieldToEventLoop);
      add(was.record.name, [...sourceChanges(was, is), ...(count === "" ? [] : [{ text: `variables ${count}` }])], named);
    }
    await yieldToEventLoop();
  }
  for (const [was, is] of sinks.both) if (was !== is) add(sinkName(was), sinkChanges(was, is), []);
  return { clauses: unnamed > 0 ? [...clauses, `${unnamed} more have changed`] : clauses, changes };
}

const sourceName = ({ record }: SourceInput): string => record.name;
const sinkName = ({ name, uuid }: SinkSpec): string => name ?? uuid;

function compared<T>(before: readonly T[], now: readonly T[], idOf: (one: T) => string) {
  const known = new Map(before.map((one) => [idOf(one), one]));
  const added: T[] = [];
  const both: [was: T, is: T][] = [];
  for (const one of now) {
    const was = known.get(idOf(one));
    known.delete(idOf(one));
    if (was === undefined) added.push(one);
    else both.push([was, one]);
  }
  return { added, both, removed: [...known.values()] };
}

function listed(what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return [`${what} ${names.slice(0, NAMED).join(", ")}${more}`];
}

function sourceChanges(was: SourceInput, is: SourceInput): readonly FieldChange[] {
  const [before, after] = [configuredIntervalMs(was), configuredIntervalMs(is)];
  const [limitBefore, limitAfter] = [was.record.readout_limit, is.record.readout_limit];
  return [
    ...renamed(was.record.name, is.record.name),
    ...(before === after ? [] : [fieldChange("interval", formatDuration(before), formatDuration(after))]),
    ...(limitBefore === limitAfter ? [] : [fieldChange("readout_limit", valueText(limitBefore), valueText(limitAfter))]),
    ...fieldChanges(was.record.details, is.record.details),
    ...localChanges(was.local, is.local),
    ...secretChanges(was.secrets, is.secrets),
  ];
}

const sinkChanges = (was: SinkSpec, is: SinkSpec): readonly FieldChange[] => [
  ...(was.name === is.name ? [] : renamed(sinkName(was), sinkName(is))),
  ...fieldChanges(was.details, is.details),
  ...localChanges(was.settings, is.settings),
  ...secretChanges(was.secrets, is.secrets),
];

const renamed = (before: string, after: string): readonly FieldChange[] =>
  before === after ? [] : [{ text: `renamed to ${after}`, before, after }];

const fieldChange = (name: string, before: string, after: string): FieldChange => ({ text: `${name} ${before} → ${after}`, before, after });

/** `count`: `+3 −1 ~2`: added, removed, changed; empty: none. `named`: the first of them by name. */
async function variableChanges(
  { record: { name: source }, variables: was }: SourceInput,
  { variables: is }: SourceInput,
  yieldToEventLoop: YieldToEventLoop,
): Promise<{ readonly count: string; readonly named: readonly ConfigurationChange[] }> {
  if (was === is) return { count: "", named: [] };
  const known = new LargeMap<Variable>();
  for (const variable of was) {
    known.set(variable.uuid, variable);
    await yieldToEventLoop();
  }
  const named: ConfigurationChange[] = [];
  const name = ({ name: variable }: Variable, fields: readonly FieldChange[]): void => {
    for (const field of fields) if (named.length < MAX_VARIABLES) named.push({ about: `${source}/${variable}`, ...field });
  };
  let [added, changed] = [0, 0];
  for (const variable of is) {
    const before = known.get(variable.uuid);
    known.delete(variable.uuid);
    if (before === undefined) {
      added++;
      name(variable, [{ text: "added the variable" }]);
    } else if (before !== variable && !isDeepStrictEqual(before, variable)) {
      changed++;
      name(before, fieldChanges(before, variable));
    }
    await yieldToEventLoop();
  }
  for (const variable of known.size === 0 ? [] : was) {
    if (named.length >= MAX_VARIABLES) break;
    if (known.get(variable.uuid)) name(variable, [{ text: "removed the variable" }]);
    await yieldToEventLoop();
  }
  const counts = [[added, "+"] as const, [known.size, "−"] as const, [changed, "~"] as const];
  return { count: counts.flatMap(([count, sign]) => (count > 0 ? [`${sign}${count}`] : [])).join(" "), named };
}

/** Fields of details, with the values of those that are one and no secret. */
function fieldChanges(was: unknown, is: unknown): readonly FieldChange[] {
  const [before, after] = [fieldsOf(was), fieldsOf(is)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => {
      const isShown = !isSecretName(name) && [before[name], after[name]].every((value) => typeof value !== "object" || value === null);
      return isShown ? fieldChange(name, valueText(before[name]), valueText(after[name])) : { text: name };
    });
}

/** Settings of this machine by their names: their values may be anything. */
function localChanges(was: unknown, is: unknown): readonly FieldChange[] {
  const [{ interval: _, ...before }, { interval: __, ...after }] = [fieldsOf(was), fieldsOf(is)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  );
  return names.length === 0 ? [] : [{ text: `settings of this machine (${names.join(", ")})` }];
}

const secretChanges = (was: Readonly<Record<string, string>>, is: Readonly<Record<string, string>>): readonly FieldChange[] =>
  isDeepStrictEqual(was, is) ? [] : [{ text: "secret" }];

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

function valueText(value: unknown): string {
  // Before it is cut: what is left of a URL could hide that it has a password.
  const text = value === undefined || value === null ? "none" : withoutCredentials(String(value));
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
