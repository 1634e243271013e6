import { isDeepStrictEqual } from "node:util";
import { configuredIntervalMs, type SourceInput } from "../agent/source-spec.ts";
import { formatDuration } from "../base/duration.ts";
import { LargeMap } from "../base/large-map.ts";
import type { YieldToEventLoop } from "../base/timer.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { isSecretName } from "../lib/loggable.ts";
import type { Variable } from "../model/variable.ts";
import type { DesiredState } from "./desired-state.ts";

/** Names, and entries that have changed, in one line. */
const NAMED = 10;
const MAX_VALUE = 80;

/**
 * What a configuration changes, by name, as clauses of one line; empty: nothing that a person knows by a name. A value is told as it was
 * and as it is, never a secret's. What has not changed is the same object mostly, which makes this cheap; goes by slices.
 */
export async function changesOf(before: DesiredState, now: DesiredState, yieldToEventLoop: YieldToEventLoop): Promise<readonly string[]> {
  const sources = compared(before.sources, now.sources, ({ record }) => record.uuid);
  const sinks = compared(before.sinks, now.sinks, ({ uuid }) => uuid);
  const clauses: string[] = [
    ...listed("added", sources.added.map(sourceName)),
    ...listed("removed", sources.removed.map(sourceName)),
    ...listed("added the data sink", sinks.added.map(sinkName)),
    ...listed("removed the data sink", sinks.removed.map(sinkName)),
  ];
  let unnamed = 0;
  const add = (name: string, changes: readonly string[]): void => {
    if (changes.length === 0) return;
    if (clauses.length < NAMED) clauses.push(`${name}: ${changes.join(", ")}`);
    else unnamed++;
  };
  for (const [was, is] of sources.both) {
    if (was !== is) add(was.record.name, await sourceChanges(was, is, yieldToEventLoop));
    await yieldToEventLoop();
  }
  for (const [was, is] of sinks.both) if (was !== is) add(sinkName(was), sinkChanges(was, is));
  return unnamed > 0 ? [...clauses, `${unnamed} more have changed`] : clauses;
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

async function sourceChanges(was: SourceInput, is: SourceInput, yieldToEventLoop: YieldToEventLoop): Promise<readonly string[]> {
  const [before, after] = [configuredIntervalMs(was), configuredIntervalMs(is)];
  const variables = was.variables === is.variables ? "" : await variableChanges(was.variables, is.variables, yieldToEventLoop);
  return [
    ...(was.record.name === is.record.name ? [] : [`renamed to ${is.record.name}`]),
    ...(before === after ? [] : [`interval ${formatDuration(before)} → ${formatDuration(after)}`]),
    ...(was.record.readout_limit === is.record.readout_limit
      ? []
      : [`readout_limit ${valueText(was.record.readout_limit)} → ${valueText(is.record.readout_limit)}`]),
    ...fieldChanges(was.record.details, is.record.details),
    ...localChanges(was.local, is.local),
    ...secretChanges(was.secrets, is.secrets),
    ...(variables === "" ? [] : [`variables ${variables}`]),
  ];
}

const sinkChanges = (was: SinkSpec, is: SinkSpec): readonly string[] => [
  ...(was.name === is.name ? [] : [`renamed to ${sinkName(is)}`]),
  ...fieldChanges(was.details, is.details),
  ...localChanges(was.settings, is.settings),
  ...secretChanges(was.secrets, is.secrets),
];

/** `+3 −1 ~2`: added, removed, changed. Empty: none. */
async function variableChanges(was: readonly Variable[], is: readonly Variable[], yieldToEventLoop: YieldToEventLoop): Promise<string> {
  const known = new LargeMap<Variable>();
  for (const variable of was) {
    known.set(variable.uuid, variable);
    await yieldToEventLoop();
  }
  let [added, changed] = [0, 0];
  for (const variable of is) {
    const before = known.get(variable.uuid);
    known.delete(variable.uuid);
    if (before === undefined) added++;
    else if (before !== variable && !isDeepStrictEqual(before, variable)) changed++;
    await yieldToEventLoop();
  }
  return [...(added > 0 ? [`+${added}`] : []), ...(known.size > 0 ? [`−${known.size}`] : []), ...(changed > 0 ? [`~${changed}`] : [])].join(
    " ",
  );
}

/** Fields of details, with the values of those that are one and no secret. */
function fieldChanges(was: unknown, is: unknown): readonly string[] {
  const [before, after] = [fieldsOf(was), fieldsOf(is)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => {
      const values = [before[name], after[name]];
      const isShown = !isSecretName(name) && values.every((value) => typeof value !== "object" || value === null);
      return isShown ? `${name} ${values.map(valueText).join(" → ")}` : name;
    });
}

/** Settings of this machine by their names: their values may be anything. */
function localChanges(was: unknown, is: unknown): readonly string[] {
  const [{ interval: _, ...before }, { interval: __, ...after }] = [fieldsOf(was), fieldsOf(is)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  );
  return names.length === 0 ? [] : [`settings of this machine (${names.join(", ")})`];
}

const secretChanges = (was: Readonly<Record<string, string>>, is: Readonly<Record<string, string>>): readonly string[] =>
  isDeepStrictEqual(was, is) ? [] : ["secret"];

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

function valueText(value: unknown): string {
  const text = value === undefined || value === null ? "none" : String(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
