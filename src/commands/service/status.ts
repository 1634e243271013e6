import { stateDirIn } from "../../configuration/settings-file.ts";
import { formatBytes } from "../../model/bytes.ts";
import { explainReason, type Where } from "../../model/catalogue.ts";
import { formatDuration } from "../../model/duration.ts";
import { toJson } from "../../model/json.ts";
import { escapeControls, jsonWithoutCredentials, withoutCredentials } from "../../model/plain-text.ts";
import type { ServiceStatus, SinkStatus, SourceStatus } from "../../model/service-status.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { formatTable } from "../table.ts";
import { askService, ServiceError } from "./local-client.ts";
import { settingsOrUsage } from "./run.ts";
import { NO_VARIABLES, sinkStateWords, sourceStateWords } from "./state-words.ts";
import { foldFailing, foldLines, MAX_IN_TABLE, pageOfTrouble, summaryLine } from "./status-folded.ts";
import { faultSteps, noteLines, sourceLines, sourceOf, whereOf } from "./status-source.ts";

/** Which part of the status is shown. */
export interface StatusView {
  /** Name or uuid of a data source: that one alone. */
  readonly source?: string | undefined;
  /** Data sources and data sinks that fail or have bad variables. */
  readonly failing?: boolean;
  /** All data sources are in the table, however many. */
  readonly all?: boolean;
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
  const report = partOf(answer as ServiceStatus, options);
  io.stdout.write(options.json ? `${toJson(report, jsonWithoutCredentials)}\n` : renderStatus(report, Date.now(), options));
  return exitOf(report);
}

/** What of it is meant. Throws UsageError where there is no such source. */
function partOf(report: ServiceStatus, { source, failing = false }: StatusView): ServiceStatus {
  if (source !== undefined) return { ...report, sources: [sourceOf(report.sources, source)], sinks: [] };
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
  if (view.source !== undefined && only) {
    const trouble = troubleOf(only, nowMs);
    return textOf(sourceLines(only, trouble, nowMs));
  }
  const lines = [
    `collector ${version} (${collector}), running for ${ago(started_at, nowMs)}`,
    configWords(report, nowMs),
    ...(config.ok || config.message === null ? [] : [`  ${config.message}`, `  Next step: ${API_STEP}`]),
    ...config.warnings.slice(0, MAX_WARNINGS_SHOWN).map((warning) => `  Note: ${warning}`),
    ...(config.warnings.length > MAX_WARNINGS_SHOWN ? [`  … ${config.warnings.length - MAX_WARNINGS_SHOWN} more notes, see --json`] : []),
    `Buffer: ${formatBytes(buffer.bytes)} of ${formatBytes(buffer.max_bytes)}; ${formatBytes(buffer.unanswered_bytes)} being written${rejectedWords(buffer.rejected)}`,
    ...(buffer.lost ? [`Buffer: loss unknown since ${buffer.lost.since}: ${buffer.lost.why}`] : []),
    ...buffer.removed_sinks.map(removedWords),
    ...clockLines(report, nowMs),
    ...alarmLines(alarms),
    "",
    ...sourcesSection(report, nowMs, view),
    "",
    ...(view.failing && sinks.length === 0 ? ["No data sink fails."] : sinkTable(sinks, nowMs)),
    ...sinks.flatMap((sink) => sinkTrouble(sink, nowMs)),
  ];
  return textOf(lines);
}

const API_STEP = "`collector doctor` looks at the way to the API; what runs goes on as it is.";

/** Each alarm, and after the last what to do about them. */
function alarmLines(alarms: readonly string[]): readonly string[] {
  const [ofFiles, others] = [alarms.some((alarm) => OF_A_FILE.test(alarm)), alarms.some((alarm) => !OF_A_FILE.test(alarm))];
  return [
    ...alarms.map((alarm) => `ALARM: ${alarm}`),
    ...(ofFiles ? ["  Next step: Correct that line of the file; `collector check` looks all files over without a restart."] : []),
    ...(others ? ["  Next step: `collector doctor` looks at this machine: disk, clock, files, names, routes and ports."] : []),
  ];
}

/** It is about a line of the settings or of the policy. */
const OF_A_FILE = /\.ya?ml(:\d+)?: /;

const textOf = (lines: readonly string[]): string => `${lines.map((line) => escapeControls(withoutCredentials(line))).join("\n")}\n`;

/** A jump is worth a line for so long. */
const JUMP_SHOWN_MS = 86_400_000;

/** What a person should know of the clock that values are stamped with; none while it is right. */
function clockLines({ clock }: ServiceStatus, nowMs: number): readonly string[] {
  const { synchronised = true, jumped = null } = clock ?? {};
  const isRecent = jumped !== null && Math.abs(nowMs - Date.parse(jumped.at)) < JUMP_SHOWN_MS;
  return [
    ...(synchronised ? [] : ["Clock: not synchronised; time stamps of values come from it. Type `timedatectl`."]),
    ...(isRecent ? [`Clock: set ${formatDuration(Math.abs(jumped.by_ms))} ${jumped.by_ms > 0 ? "forward" : "back"} at ${jumped.at}`] : []),
  ];
}

function configWords({ config: { origin, api_url, ok, since } }: ServiceStatus, nowMs: number): string {
  const state = since === null ? "not asked yet" : `${ok ? "reachable" : "not reachable"} for ${ago(since, nowMs)}`;
  const running = { api: "as the API says", last_good: "the last good copy on disk", none: "nothing received yet" }[origin];
  return `Configuration: ${running}; API ${api_url}: ${state}`;
}

/** How many are in which state, the table, and each trouble; of many sources only what is wrong with them, unless all are wished. */
function sourcesSection({ sources, sinks }: ServiceStatus, nowMs: number, { failing = false, all = false }: StatusView): string[] {
  if (failing && sources.length === 0) return ["No data source fails."];
  const isLong = sources.length > MAX_IN_TABLE;
  const summary = isLong || failing ? [summaryLine(sources, sinks)] : [];
  if (isLong && !failing && !all) return [...summary, ...pageOfTrouble(sources, nowMs)];
  const folds = foldFailing(sources).filter((fold) => fold.sources.length > 1);
  const folded = new Set(folds.flatMap((fold) => fold.sources));
  return [
    ...summary,
    ...(isLong && !all ? [] : sourceTable(sources, nowMs)),
    ...folds.flatMap((fold) => ["", ...foldLines(fold, nowMs)]),
    ...sources.flatMap((source) => sourceTrouble(folded.has(source) ? { ...source, error: null } : source, nowMs)),
  ];
}

function sourceTable(sources: readonly SourceStatus[], nowMs: number): string[] {
  if (sources.length === 0) return ["No data sources are configured."];
  const rows = sources.map((source) => {
    const { name, type, endpoint, status, since, interval_ms: intervalMs, counters, faults } = source;
    return [
      name,
      type,
      endpoint ?? "-",
      sourceStateWords(source),
      ago(since, nowMs),
      intervalMs === 0 ? "-" : formatDuration(intervalMs),
      String(status.configured_variables),
      faults.length === 0 ? "0" : `${faults.length}${faults.length >= 100 ? "+" : ""}`,
      String(counters.values_read),
      String(counters.overruns),
    ];
  });
  return formatTable(
    [["SOURCE", "TYPE", "ENDPOINT", "STATE", "FOR", "INTERVAL", "VARIABLES", "BAD", "READ", "OVERRUNS"], ...rows],
    new Set([6, 7, 8, 9]),
  );
}

function sourceTrouble(source: SourceStatus, nowMs: number): string[] {
  const { name, error, faults, warnings } = source;
  const lines: string[] = [...troubleOf(source, nowMs)];
  for (const { variable, fault, detail } of faults.slice(0, MAX_FAULTS_SHOWN))
    lines.push(`  ${variable}: ${fault}${detail === null ? "" : `: ${detail}`}`);
  if (faults.length > MAX_FAULTS_SHOWN) lines.push(`  … ${faults.length - MAX_FAULTS_SHOWN} more bad variables`);
  if (error?.condition !== "all_variables_faulted") lines.push(...faultSteps(name, faults));
  lines.push(...noteLines(warnings));
  if (lines.length === 0) return [];
  return ["", ...(error ? lines : [`${name}:`, ...lines])];
}

/** Why it fails, or has nothing to read; empty: it does not. */
function troubleOf(source: SourceStatus, nowMs: number): readonly string[] {
  const { error, status, next_retry_at: nextRetryAt } = source;
  const since = status.state.type === "ERROR" ? status.state.error_at : source.since;
  if (error) return troubleLines(error, whereOf(source), since, nextRetryAt, nowMs);
  return sourceStateWords(source) === "NO_VARIABLES" ? [`  ${NO_VARIABLES}`] : [];
}

function rejectedWords(rejected: Readonly<Record<string, number>>): string {
  const counts = Object.entries(rejected).filter(([, count]) => count > 0);
  return counts.length === 0 ? "" : `; values rejected: ${counts.map(([reason, count]) => `${count} ${reason}`).join(", ")}`;
}

function removedWords({ uuid, name, pending, until, dropped }: ServiceStatus["buffer"]["removed_sinks"][number]): string {
  const what = `Buffer: values of the removed data sink ${name ?? uuid}:`;
  const gone = dropped["sink_removed"] ?? 0;
  return [`${what} ${until === null ? "none wait" : `${pending} wait until ${until}`}`, ...(gone > 0 ? [`${gone} dropped`] : [])].join(
    ", ",
  );
}

function sinkTable(sinks: readonly SinkStatus[], nowMs: number): string[] {
  if (sinks.length === 0) return ["No data sinks are configured."];
  const rows = sinks.map(({ uuid, name, type, endpoint, state, error, since, ledger }) => [
    name ?? uuid,
    type,
    endpoint ?? "-",
    sinkStateWords({ state, error }),
    ago(since, nowMs),
    ...(ledger
      ? [ledger.delivered, ledger.pending, Object.values(ledger.dropped).reduce((sum, n) => sum + n, 0)].map(String)
      : ["-", "-", "-"]),
  ]);
  return formatTable([["SINK", "TYPE", "ENDPOINT", "STATE", "FOR", "DELIVERED", "PENDING", "DROPPED"], ...rows], new Set([5, 6, 7]));
}

function sinkTrouble(sink: SinkStatus, nowMs: number): string[] {
  const { uuid, name, type, error, endpoint, since, next_retry_at: nextRetryAt, warnings, ledger, link } = sink;
  const dropped = Object.entries(ledger?.dropped ?? {}).filter(([, count]) => count > 0);
  const unstored = ledger?.delivered_unstored ?? 0;
  const lines = [
    ...(error ? troubleLines(error, { endpoint, source: name ?? uuid, uuid, sinkType: type }, since, nextRetryAt, nowMs) : []),
    ...(unstored > 0 ? [`  Delivered without being stored, because the disk took nothing: ${unstored}`] : []),
    ...linkLines(link),
    ...(dropped.length > 0 ? [`  Dropped: ${dropped.map(([reason, count]) => `${count} ${reason}`).join(", ")}`] : []),
    ...noteLines(warnings),
  ];
  if (lines.length === 0) return [];
  return ["", ...(error ? lines : [`${name ?? uuid}:`, ...lines])];
}

/** Only of a link that shows how much it carries. */
function linkLines(link: SinkStatus["link"]): string[] {
  if (!link || link.bytes_per_s === null) return [];
  const roundTrip = link.round_trip_ms === null ? "" : `, round trips of ${formatDuration(link.round_trip_ms)}`;
  return [`  Link: about ${formatBytes(link.bytes_per_s)}/s${roundTrip}; at most ${formatBytes(link.window_bytes)} sent ahead`];
}

function troubleLines(
  { reason, condition, detail }: NonNullable<SourceStatus["error"]>,
  where: Where,
  since: string,
  nextRetryAt: string | null,
  nowMs: number,
): string[] {
  const { sentence, cause, nextStep } = explainReason(reason, condition, { ...where, detail });
  return [
    sentence,
    `  Since:     ${since} (${ago(since, nowMs)})`,
    `  Detail:    ${detail}`,
    `  Cause:     ${cause}`,
    `  Next step: ${nextStep}`,
    ...(nextRetryAt === null ? [] : [`  Next try:  ${nextRetryAt}${untilWords(nextRetryAt, nowMs)}`]),
  ];
}

function ago(iso: string, nowMs: number): string {
  const ms = nowMs - Date.parse(iso);
  if (Number.isNaN(ms)) return "?";
  return formatDuration(ms < 1000 ? Math.max(0, ms) : Math.floor(ms / 1000) * 1000);
}

function untilWords(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  return ms > 0 ? ` (in ${formatDuration(ms)})` : "";
}
