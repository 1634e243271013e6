import { formatBytes } from "../../base/bytes.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import { summaryOf } from "../summary.ts";
import {
  API_STEP,
  alarmSteps,
  bufferWords,
  changeWords,
  clockWords,
  leftOutWords,
  noSourcesWords,
  originWords,
  reachWords,
  sinkWords,
} from "../words/service-words.ts";
import { NO_VARIABLES, sinkStateWords, sourceStateWords } from "../words/state-words.ts";
import { faultSteps, faultWords, foldedNotes, sinkTrouble, sourceTrouble, type Trouble } from "../words/trouble.ts";
import type { PageHead, PageSource } from "./messages.ts";
import type { PageState } from "./page-state.ts";
import type { Level, ToldConfiguration, ToldHead, ToldSink, ToldSource, ToldSums, ToldTrouble } from "./told.ts";

/** Reports of the service in the words of the page: for the console and for the page without scripts. Pure. */

const MAX_FAULTS_SHOWN = 10;
const MAX_NOTES_SHOWN = 10;

export const levelOf = ({ status: { state }, faults, warnings }: PageSource): Level =>
  state.type === "ERROR" ? "bad" : faults.length > 0 || warnings.length > 0 ? "note" : state.type === "OK" ? "ok" : "none";

export const sinkLevelOf = ({ state, warnings }: Pick<SinkStatus, "state" | "warnings">): Level =>
  state === "ERROR" ? "bad" : warnings.length > 0 ? "note" : state === "OK" ? "ok" : "none";

const toldTrouble = (trouble: Trouble | undefined): ToldTrouble | null =>
  trouble
    ? { sentence: trouble.sentence, detail: trouble.detail, cause: trouble.cause, step: trouble.nextStep, nextTry: trouble.nextTry }
    : null;

/** Those that were written last: a source that has not changed is the same object. */
const SOURCES = new WeakMap<PageSource, ToldSource>();

/** `path`: of its page, which changes where another source gets its name. */
export function toldSource(source: PageSource, path: string): ToldSource {
  const known = SOURCES.get(source);
  if (known?.path === path) return known;
  const told = tellSource(source, path);
  SOURCES.set(source, told);
  return told;
}

function tellSource(source: PageSource, path: string): ToldSource {
  const { uuid, name, type, endpoint, interval_ms: intervalMs, status, faults, warnings } = source;
  const trouble = sourceTrouble(source);
  const state = sourceStateWords(source);
  const notes = [...(state === "NO_VARIABLES" ? [NO_VARIABLES] : []), ...foldedNotes(warnings)];
  return {
    uuid,
    name,
    path,
    type,
    endpoint,
    intervalMs,
    variables: status.configured_variables,
    level: levelOf(source),
    state,
    since: trouble?.since ?? source.since,
    trouble: toldTrouble(trouble),
    faults: faults.slice(0, MAX_FAULTS_SHOWN).map(faultWords),
    moreFaults: Math.max(0, faults.length - MAX_FAULTS_SHOWN),
    faultSteps: faultSteps(source),
    notes: notes.slice(0, MAX_NOTES_SHOWN),
    moreNotes: Math.max(0, notes.length - MAX_NOTES_SHOWN),
  };
}

export function toldSink(sink: SinkStatus, state: PageState): ToldSink {
  const { uuid, name, type, endpoint, ledger } = sink;
  const trouble = sinkTrouble(sink);
  const notes = foldedNotes(sink.warnings);
  return {
    uuid,
    name: name ?? uuid,
    path: state.pathOfSink(sink),
    type,
    endpoint,
    level: sinkLevelOf(sink),
    state: sinkStateWords(sink),
    since: trouble?.since ?? sink.since,
    trouble: toldTrouble(trouble),
    words: sinkWords(sink),
    notes: notes.slice(0, MAX_NOTES_SHOWN),
    moreNotes: Math.max(0, notes.length - MAX_NOTES_SHOWN),
    clients: sink.clients ?? null,
    ledger,
    hours: state.hoursOf(uuid),
  };
}

export function toldHead(head: PageHead, state: PageState, nowMs: number): ToldHead {
  const { version, collector, started_at: startedAt, sinks, alarms, buffer } = head;
  const { bytes, max_bytes: maxBytes, used_bytes: used = bytes, drop_at_bytes: dropAt = maxBytes } = buffer;
  return {
    version,
    collector,
    startedAt,
    summary: summaryOf(state.sources, sinks),
    sums: sumsOf(head, state),
    alarms: alarms.map(({ text, since }) => ({ text, since })),
    alarmSteps: alarmSteps(alarms),
    clock: clockWords(head, nowMs),
    configuration: toldConfiguration(head),
    buffer: {
      share: Math.min(100, Math.round((100 * used) / Math.max(1, dropAt))),
      words: bufferWords(buffer),
      free: formatBytes(Math.max(0, dropAt - used)),
    },
  };
}

function sumsOf({ sinks, buffer: { left } }: PageHead, state: PageState): ToldSums {
  const levels = state.sources.map(levelOf);
  const count = (level: Level): number => levels.filter((one) => one === level).length;
  return {
    sources: levels.length,
    well: count("ok"),
    failing: count("bad"),
    noted: count("note"),
    sinks: sinks.length,
    sinksWell: sinks.filter((sink) => sink.state === "OK").length,
    pending: sinks.reduce((sum, { ledger }) => sum + (ledger?.pending ?? 0), 0),
    valuesPerS: state.valuesPerS,
    bufferHours: left?.hours ?? null,
    bufferFilling: left?.filling ?? false,
  };
}

function toldConfiguration({ config }: PageHead): ToldConfiguration {
  const { ok, since, message, warnings, taken_at: takenAt, changed, api_url: apiUrl } = config;
  return {
    origin: originWords(config),
    takenAt: takenAt ?? null,
    changed: changed && { at: changed.at, by: changeWords(changed) },
    apiUrl,
    isReachable: ok,
    reach: reachWords(config),
    since,
    problems: !ok && message !== null ? [message, `Next step: ${API_STEP}`] : [],
    leftOut: leftOutWords(config) ?? null,
    notes: warnings.slice(0, MAX_NOTES_SHOWN).map(({ text }) => text),
    moreNotes: Math.max(0, warnings.length - MAX_NOTES_SHOWN),
    noSources: noSourcesWords(config),
  };
}
