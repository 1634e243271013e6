import { formatDuration } from "../../base/duration.ts";
import { escapeControls, jsonWithoutCredentials, withoutCredentials } from "../../base/plain-text.ts";
import { stateDirIn } from "../../configuration/settings-file.ts";
import type { ServiceStatus, SinkStatus, SourceStatus } from "../../model/service-status.ts";
import type { ReportedWarning } from "../../model/warning.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import {
  API_STEP,
  alarmSteps,
  bufferWords,
  clockWords,
  forWords,
  leftOutWords,
  noSourcesWords,
  originWords,
  reachWords,
  sinkWords,
} from "../../service/words/service-words.ts";
import { NO_VARIABLES, sinkStateWords, sourceStateWords } from "../../service/words/state-words.ts";
import { faultSteps, faultWords, sinkTrouble, sourceTrouble, type Trouble } from "../../service/words/trouble.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson } from "../lines.ts";
import { commandsAsTyped } from "../printed-commands.ts";
import { fittingTable } from "../table.ts";
import { askService, ServiceError } from "./local-client.ts";
import { settingsOrUsage } from "./run.ts";
import { foldFailing, foldLines, MAX_IN_TABLE, summaryLine } from "./status-folded.ts";
import { noteLines, sourceLines, sourceOf, stepLine } from "./status-source.ts";
import { pageOfTrouble } from "./status-trouble.ts";

/** Which part of the status is shown. */
export interface StatusView {
  /** Name or uuid of a data source or data sink: that one alone. */
  readonly source?: string | undefined;
  /** Counts of all there is, where only a part of it is shown. */
  readonly summary?: string;
  /** Data sources and data sinks that fail or have bad variables. */
  readonly failing?: boolean;
  /** All data sources are in the table, however many. */
  readonly all?: boolean;
  /** Of the terminal; undefined: tables are as wide as they are. */
  readonly columns?: number | undefined;
}

/** `collector status`: how the running service is. Throws UsageError where no service answers and the settings cannot be used. */
export async function status(
  options: { readonly config?: string; readonly json?: boolean } & StatusView,
  io: CommandIo,
): Promise<ExitCode> {
  const found = stateDirOf(options.config);
  let answer: unknown;
  try {
    answer = await askService(localSocketPath(found.stateDir), "/status", io.signal);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (io.signal.aborted) return EXIT.interrupted;
    if (found.problem) throw found.problem;
    complain(io, error.message);
    return EXIT.ownFailure;
  }
  // Our own service of this version, behind the rights of the file system: its answer is taken for what it says it is.
  const whole = answer as ServiceStatus;
  const report = partOf(whole, options);
  const summary = summaryLine(whole.sources, whole.sinks);
  if (options.json) writeJson(io, report, jsonWithoutCredentials);
  else io.stdout.write(commandsAsTyped(renderStatus(report, Date.now(), { ...options, summary, columns: io.stdout.columns }), io.typed));
  return exitOf(report);
}

/** What of it is meant. Throws UsageError where there is no such source or sink. */
function partOf(report: ServiceStatus, { source, failing = false }: StatusView): ServiceStatus {
  if (source !== undefined) {
    const sink = report.sinks.find(({ uuid, name }) => uuid === source.toLowerCase() || name === source);
    const isSource = report.sources.some(({ uuid, name }) => uuid === source.toLowerCase() || name === source);
    if (sink && !isSource) return { ...report, sources: [], sinks: [sink] };
    const others = report.sinks.flatMap(({ name }) => name ?? []);
    return { ...report, sources: [sourceOf(report.sources, source, others)], sinks: [] };
  }
  if (!failing) return report;
  return {
    ...report,
    sources: report.sources.filter(({ status: { state }, faults }) => state.type === "ERROR" || faults.length > 0),
    sinks: report.sinks.filter(({ state }) => state === "ERROR"),
  };
}

/** A service that runs goes on with the settings of before, and its status says what is wrong with those of now. */
function stateDirOf(config: string | undefined): { readonly stateDir: string; readonly problem?: UsageError } {
  try {
    return { stateDir: settingsOrUsage(config).settings.state_dir };
  } catch (error) {
    if (error instanceof UsageError) return { stateDir: stateDirIn(config), problem: error };
    throw error;
  }
}

function exitOf({ sources, sinks }: ServiceStatus): ExitCode {
  if (sources.some(({ status: { state } }) => state.type === "ERROR") || sinks.some(({ state }) => state === "ERROR"))
    return EXIT.sourceFailed;
  return sources.some(({ faults }) => faults.length > 0) ? EXIT.variableBad : EXIT.good;
}

const MAX_FAULTS_SHOWN = 10;
const MAX_WARNINGS_SHOWN = 10;

/** The status for people: what runs at a glance, then each trouble with its cause and next step. `nowMs` is epoch ms. Pure. */
export function renderStatus(report: ServiceStatus, nowMs: number, view: StatusView = {}): string {
  const { version, collector, started_at, config, buffer, sources, sinks, alarms } = report;
  const [only] = sources;
  const [onlySink] = sinks;
  if (view.source !== undefined && only) {
    const trouble = troubleOf(only, nowMs);
    return textOf(sourceLines(only, trouble, nowMs));
  }
  if (view.source !== undefined && onlySink) return textOf(sinkLines(onlySink, nowMs));
  const notes = config.warnings.map(({ text }) => text);
  const lines = [
    `collector ${version} (${collector}), running for ${forWords(started_at, nowMs)}`,
    configWords(report, nowMs),
    ...(config.ok || config.message === null ? [] : [`  ${config.message}`, `  Next step: ${API_STEP}`]),
    ...leftOutLines(config),
    ...notes.slice(0, MAX_WARNINGS_SHOWN).map((note) => `  Note: ${note}`),
    ...(notes.length > MAX_WARNINGS_SHOWN ? [`  … ${notes.length - MAX_WARNINGS_SHOWN} more notes, see --json`] : []),
    ...bufferWords(buffer).map((words) => `Buffer: ${words}`),
    ...clockWords(report, nowMs).map((words) => `Clock: ${words}`),
    ...alarmLines(alarms, nowMs),
    "",
    ...sourcesSection(report, nowMs, view),
    "",
    ...(view.failing && sinks.length === 0 ? ["No data sink fails."] : sinkTable(sinks, nowMs, view.columns)),
    ...sinks.flatMap((sink) => sinkParagraph(sink, nowMs)),
  ];
  return textOf(lines);
}

function leftOutLines(config: ServiceStatus["config"]): readonly string[] {
  const words = leftOutWords(config);
  return words === undefined ? [] : [`  Left out: ${words}`];
}

/** Each alarm, and after the last what to do about them. */
const alarmLines = (alarms: readonly ReportedWarning[], nowMs: number): readonly string[] => [
  ...alarms.map(({ since, text }) => `ALARM: ${text} (for ${forWords(since, nowMs)})`),
  ...alarmSteps(alarms).map(stepLine),
];

const textOf = (lines: readonly string[]): string => `${lines.map((line) => escapeControls(withoutCredentials(line))).join("\n")}\n`;

function configWords({ config }: ServiceStatus, nowMs: number): string {
  const state = config.since === null ? "" : ` for ${forWords(config.since, nowMs)}`;
  return `Configuration: ${originWords(config)}; API ${config.api_url}: ${reachWords(config)}${state}`;
}

/** How many are in which state, the table, and each trouble; of many sources only what is wrong with them, unless all are wished. */
function sourcesSection(
  { config, sources, sinks }: ServiceStatus,
  nowMs: number,
  { failing = false, all = false, summary: ofAll, columns }: StatusView,
): string[] {
  if (failing && sources.length === 0) return [...(ofAll === undefined ? [] : [ofAll]), "No data source fails."];
  if (sources.length === 0) return [noSourcesWords(config)];
  const isLong = sources.length > MAX_IN_TABLE;
  const summary = isLong || failing ? [ofAll ?? summaryLine(sources, sinks)] : [];
  if (isLong && !failing && !all) return [...summary, ...pageOfTrouble(sources, nowMs)];
  const folds = foldFailing(sources).filter((fold) => fold.sources.length > 1);
  const folded = new Set(folds.flatMap((fold) => fold.sources));
  return [
    ...summary,
    ...(isLong && !all ? [] : sourceTable(sources, nowMs, columns)),
    ...folds.flatMap((fold) => ["", ...foldLines(fold, nowMs)]),
    ...sources.flatMap((source) => sourceParagraph(folded.has(source) ? { ...source, error: null } : source, nowMs)),
  ];
}

function sourceTable(sources: readonly SourceStatus[], nowMs: number, columns: number | undefined): string[] {
  const rows = sources.map((source) => {
    const { name, type, endpoint, status, since, interval_ms: intervalMs, counters, faults } = source;
    return [
      name,
      type,
      endpoint ?? "-",
      sourceStateWords(source),
      forWords(since, nowMs),
      intervalMs === 0 ? "-" : formatDuration(intervalMs),
      String(status.configured_variables),
      faults.length === 0 ? "0" : `${faults.length}${faults.length >= 100 ? "+" : ""}`,
      String(counters.values_read),
      String(counters.overruns),
    ];
  });
  return fittingTable(
    [["SOURCE", "TYPE", "ENDPOINT", "STATE", "FOR", "INTERVAL", "VARIABLES", "BAD", "READ", "OVERRUNS"], ...rows],
    columns,
    {
      right: new Set(["VARIABLES", "BAD", "READ", "OVERRUNS"]),
      dispensable: ["OVERRUNS", "READ", "INTERVAL", "TYPE", "VARIABLES", "ENDPOINT"],
    },
  );
}

function sourceParagraph(source: SourceStatus, nowMs: number): string[] {
  const { name, error, faults, warnings } = source;
  const lines = [
    ...troubleOf(source, nowMs),
    ...faults.slice(0, MAX_FAULTS_SHOWN).map((fault) => `  ${faultWords(fault)}`),
    ...(faults.length > MAX_FAULTS_SHOWN ? [`  … ${faults.length - MAX_FAULTS_SHOWN} more bad variables`] : []),
    ...faultSteps(source).map(stepLine),
    ...noteLines(warnings),
  ];
  if (lines.length === 0) return [];
  return ["", ...(error ? lines : [`${name}:`, ...lines])];
}

/** Why it fails, or has nothing to read; empty: it does not. */
function troubleOf(source: SourceStatus, nowMs: number): readonly string[] {
  const trouble = sourceTrouble(source);
  if (trouble) return troubleLines(trouble, nowMs);
  return sourceStateWords(source) === "NO_VARIABLES" ? [`  ${NO_VARIABLES}`] : [];
}

function sinkTable(sinks: readonly SinkStatus[], nowMs: number, columns: number | undefined): string[] {
  if (sinks.length === 0) return ["No data sinks are configured."];
  // Few have any: a column that is always 0 says nothing.
  const hasUnconfirmed = sinks.some(({ ledger }) => ledger && ledger.unconfirmed > 0);
  const counts = ["DELIVERED", ...(hasUnconfirmed ? ["UNCONFIRMED"] : []), "PENDING", "DROPPED"];
  const rows = sinks.map(({ uuid, name, type, endpoint, state, error, since, ledger }) => [
    name ?? uuid,
    type,
    endpoint ?? "-",
    sinkStateWords({ state, error }),
    forWords(since, nowMs),
    ...(ledger ? countsOf(ledger, hasUnconfirmed).map(String) : counts.map(() => "-")),
  ]);
  return fittingTable([["SINK", "TYPE", "ENDPOINT", "STATE", "FOR", ...counts], ...rows], columns, {
    right: new Set(counts),
    dispensable: ["TYPE", "ENDPOINT", "DELIVERED"],
  });
}

function countsOf(
  { delivered, unconfirmed, pending, dropped }: NonNullable<SinkStatus["ledger"]>,
  hasUnconfirmed: boolean,
): readonly number[] {
  const allDropped = Object.values(dropped).reduce((sum, n) => sum + n, 0);
  return [delivered, ...(hasUnconfirmed ? [unconfirmed] : []), pending, allDropped];
}

/** One sink: its state, its account, and what is wrong with it. */
function sinkLines(sink: SinkStatus, nowMs: number): readonly string[] {
  const { uuid, name, type, endpoint, since, ledger } = sink;
  const trouble = sinkTrouble(sink);
  const account = ledger
    ? `${ledger.accepted} values accepted: ${ledger.delivered} delivered, ${ledger.pending} wait`
    : "it gets current values, and keeps no account";
  return [
    `${name ?? uuid} (${type} ${endpoint ?? "-"}): ${sinkStateWords(sink)} for ${forWords(since, nowMs)}`,
    `  Account:   ${account}`,
    ...(trouble ? troubleLines(trouble, nowMs) : []),
    ...sinkWords(sink).map((words) => `  ${words}`),
    ...noteLines(sink.warnings),
  ];
}

function sinkParagraph(sink: SinkStatus, nowMs: number): string[] {
  const { uuid, name, error, warnings } = sink;
  const trouble = sinkTrouble(sink);
  const lines = [...(trouble ? troubleLines(trouble, nowMs) : []), ...sinkWords(sink).map((words) => `  ${words}`), ...noteLines(warnings)];
  if (lines.length === 0) return [];
  return ["", ...(error ? lines : [`${name ?? uuid}:`, ...lines])];
}

const troubleLines = ({ sentence, since, detail, cause, nextStep, nextTry }: Trouble, nowMs: number): readonly string[] => [
  sentence,
  `  Since:     ${since} (${forWords(since, nowMs)})`,
  `  Detail:    ${detail}`,
  `  Cause:     ${cause}`,
  stepLine(nextStep),
  ...(nextTry === null ? [] : [`  Next try:  ${nextTry}${untilWords(nextTry, nowMs)}`]),
];

function untilWords(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  return ms > 0 ? ` (in ${formatDuration(ms)})` : "";
}
