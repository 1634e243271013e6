import { formatDuration } from "../../base/duration.ts";
import type { SinkStatus, SourceStatus } from "../../model/service-status.ts";
import { commandOf, explainReason } from "../../model/words/catalogue.ts";
import { errorWords, sourceStateWords } from "../../service/words/state-words.ts";
import { whereOf } from "../../service/words/trouble.ts";
import { wrapped } from "../lines.ts";

/** More data sources than these are not all in the table: a page of a terminal shows what is wrong, and how many are well. */
export const MAX_IN_TABLE = 15;

/** Sources that fail for one and the same cause and need one and the same command, the one that fails longest first. */
export interface Fold {
  readonly error: NonNullable<SourceStatus["error"]>;
  readonly sources: readonly [SourceStatus, ...SourceStatus[]];
  /** Epoch ms: the first failure of all. */
  readonly sinceMs: number;
}

/** Failing sources by their cause, the cause of most of them first. Pure. */
export function foldFailing(sources: readonly SourceStatus[]): readonly Fold[] {
  const byCause = new Map<string, [SourceStatus, ...SourceStatus[]]>();
  for (const source of sources) {
    const { error } = source;
    if (!error) continue;
    const key = JSON.stringify([error.condition, error.reason, error.next_step ?? commandOf(error.condition, error.detail)]);
    const there = byCause.get(key);
    if (there) there.push(source);
    else byCause.set(key, [source]);
  }
  return [...byCause.values()]
    .flatMap((same): Fold[] => {
      const sorted = same.toSorted((a, b) => failingSince(a) - failingSince(b));
      const [first, ...rest] = sorted;
      return first?.error ? [{ error: first.error, sources: [first, ...rest], sinceMs: failingSince(first) }] : [];
    })
    .sort((a, b) => b.sources.length - a.sources.length || a.sinceMs - b.sinceMs);
}

/** Epoch ms of the first failure of its trouble. */
const failingSince = ({ status: { state }, since }: SourceStatus): number => Date.parse(state.type === "ERROR" ? state.error_at : since);

/** How many are in which state, on one line. Pure. */
export function summaryLine(sources: readonly SourceStatus[], sinks: readonly SinkStatus[]): string {
  const bad = sources.filter(({ faults }) => faults.length > 0).length;
  const words = [
    `Data sources: ${countsOf(sources.map((source) => (source.status.state.type === "ERROR" ? "ERROR" : sourceStateWords(source))))}`,
    ...(bad > 0 ? [`${bad} with bad variables`] : []),
    `data sinks: ${countsOf(sinks.map(({ state }) => state))}`,
  ];
  return words.join("; ");
}

function countsOf(states: readonly string[]): string {
  if (states.length === 0) return "none";
  const counts = [...Map.groupBy(states, (state) => state)].map(([state, same]) => `${same.length} ${state}`).sort();
  return `${states.length} (${counts.join(", ")})`;
}

/** Several sources with one cause: who, since when, and what to do once. Pure. */
export function foldLines({ error, sources, sinceMs }: Fold, nowMs: number): readonly string[] {
  const { reason, condition, detail, next_step: known } = error;
  const { cause, nextStep } = explainReason(reason, condition, { ...whereOf(sources[0]), detail, nextStep: known });
  const names = sources.map(({ name }) => name);
  return [
    `${errorWords(error)}: ${sources.length} data sources, the first for ${forWords(sinceMs, nowMs)}`,
    ...wrapped(`  Sources:   ${names.join(", ")}`, "             ", 120),
    `  Detail:    ${detail} (${names[0]})`,
    `  Cause:     ${cause}`,
    `  Next step: ${nextStep}`,
  ];
}

/** For how long, in whole seconds. Pure. */
export const forWords = (sinceMs: number, nowMs: number): string =>
  formatDuration(Math.max(0, Math.floor((nowMs - sinceMs) / 1000) * 1000));
