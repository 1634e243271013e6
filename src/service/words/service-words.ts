import { formatBytes } from "../../base/bytes.ts";
import { formatDuration, roughDuration } from "../../base/duration.ts";
import { countOf } from "../../base/number.ts";
import type { BufferLeft, ConfigChange, ServiceStatus, SinkStatus, SourceStatus } from "../../model/service-status.ts";
import type { ReportedWarning } from "../../model/warning.ts";
import { WARNINGS } from "../../model/words/warnings.ts";

/** What the status says of the service itself, for the terminal and the page. Times are shown as they are at `nowMs`, epoch ms. */

/** How long ago a time is, in words. Pure. */
export function forWords(iso: string, nowMs: number): string {
  const ms = nowMs - Date.parse(iso);
  if (Number.isNaN(ms)) return "?";
  return formatDuration(ms < 1000 ? Math.max(0, ms) : Math.floor(ms / 1000) * 1000);
}

/** The place where the configuration comes from. Pure. */
export const originWords = ({ origin }: ServiceStatus["config"]): string =>
  ({ api: "as the API says", last_good: "the last good copy on disk", none: "nothing received yet" })[origin];

/** True: the configuration API answers; `null`: it has not been asked. Pure. */
export const reachWords = ({ ok, since }: ServiceStatus["config"]): string =>
  since === null ? "not asked yet" : ok ? "reachable" : "not reachable";

/** Records that the API lists and that are not used; undefined: there are none. Pure. */
export function leftOutWords({ left_out: leftOut }: ServiceStatus["config"]): string | undefined {
  if (!leftOut) return undefined;
  const counts = (
    [
      [leftOut.data_sources, "data source"],
      [leftOut.data_sinks, "data sink"],
      [leftOut.variables, "variable"],
    ] as const
  ).filter(([count]) => count > 0);
  if (counts.length === 0) return undefined;
  return `${counts.map(([count, what]) => countOf(count, what)).join(", ")} of the configuration API cannot be used and ${counts.length === 1 && counts[0]?.[0] === 1 ? "is" : "are"} left out; the notes say why`;
}

/** Data sources that the API lists and that cannot be used; undefined: there are none. Pure. */
export const noneUsableWords = ({ left_out: leftOut }: ServiceStatus["config"]): string | undefined =>
  leftOut && leftOut.data_sources > 0
    ? `${countOf(leftOut.data_sources, "data source")} of the configuration API cannot be used, and no other runs`
    : undefined;

/** What stands in the place of a list of data sources that is empty. Pure. */
export function noSourcesWords(config: ServiceStatus["config"]): string {
  const unusable = noneUsableWords(config);
  return unusable === undefined ? "No data sources are configured." : `${unusable}.`;
}

/** Who made a change of the configuration, and which. Pure. */
export function changeWords({ role, key_name: keyName, address, os_user: user, operation, name }: ConfigChange): string {
  const who =
    role === "command_line" ? `${user ?? "somebody"} on this machine's command line` : `${role} key ${keyName ?? "without a name"}`;
  const from = role === "command_line" ? "" : ` from ${address}${user === null ? "" : ` (${user})`}`;
  return `${who}${from}: ${operation}${name === null ? "" : ` of ${name}`}`;
}

export const API_STEP = "`collector doctor` looks at the way to the API; what runs continues unchanged.";

/** What to do about alarms. Pure. */
export const alarmSteps = (alarms: readonly ReportedWarning[]): readonly string[] => [
  ...new Set(alarms.map(({ code }) => WARNINGS[code].nextStep)),
];

/** The buffer, and what of it was lost or waits for a removed sink: a line each. Pure. */
export const bufferWords = ({
  bytes,
  max_bytes,
  left,
  unanswered_bytes,
  rejected,
  suppressed,
  lost,
  removed_sinks,
}: ServiceStatus["buffer"]): readonly string[] => [
  `${left ? `${leftWords(left)}; ` : ""}${formatBytes(bytes)} of ${formatBytes(max_bytes)}; ${formatBytes(unanswered_bytes)} being written${rejectedWords(rejected)}`,
  ...(suppressed > 0 ? [`${suppressed} values equalled the last reported ones and were not reported again`] : []),
  ...(lost ? [`loss unknown since ${lost.since}: ${lost.why}`] : []),
  ...removed_sinks.map(removedWords),
];

/** The part of a source's values that report by exception spares; undefined: it reports all of them. Pure. */
export function sparedWords({ values_read: read, values_unchanged: unchanged }: SourceStatus["counters"]): string | undefined {
  if (unchanged === 0) return undefined;
  const percent = Math.min(100, (100 * unchanged) / Math.max(1, read));
  return `only changes; ${unchanged} values (${percent.toFixed(percent < 99 ? 0 : 1)} %) equalled the last reported ones`;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** How long the buffer lasts. Pure. */
export function leftWords({ hours, filling, bound }: BufferLeft): string {
  const ms = hours * HOUR_MS;
  const time = roughDuration(ms);
  if (!filling) return `room for ${time} of values at today's rate`;
  const isNow = ms < MINUTE_MS;
  if (bound === "disk")
    return isNow ? "the disk is full: nothing is stored" : `the disk is full in about ${time} at today's rate, then nothing is stored`;
  if (bound === "max_age")
    return isNow
      ? "the oldest values are dropped: they reach buffer.max_age"
      : `the oldest values reach buffer.max_age in about ${time}, then they are dropped`;
  return isNow ? "full: the oldest values are dropped" : `full in about ${time} at today's rate, then the oldest values are dropped`;
}

function rejectedWords(rejected: Readonly<Record<string, number>>): string {
  const counts = Object.entries(rejected).filter(([, count]) => count > 0);
  return counts.length === 0 ? "" : `; values rejected: ${counts.map(([reason, count]) => `${count} ${reason}`).join(", ")}`;
}

function removedWords({ uuid, name, pending, until, dropped }: ServiceStatus["buffer"]["removed_sinks"][number]): string {
  const what = `values of the removed data sink ${name ?? uuid}:`;
  const gone = dropped["sink_removed"] ?? 0;
  return [`${what} ${until === null ? "none wait" : `${pending} wait until ${until}`}`, ...(gone > 0 ? [`${gone} dropped`] : [])].join(
    ", ",
  );
}

/** A jump is worth a line for so long. */
const JUMP_SHOWN_MS = 86_400_000;

/** What a person should know of the clock that values are stamped with; none while it is right. Pure. */
export function clockWords({ clock }: Pick<ServiceStatus, "clock">, nowMs: number): readonly string[] {
  const { synchronised = true, jumped = null } = clock ?? {};
  const isRecent = jumped !== null && Math.abs(nowMs - Date.parse(jumped.at)) < JUMP_SHOWN_MS;
  return [
    ...(synchronised ? [] : ["not synchronised; time stamps of values come from it. Type `timedatectl`."]),
    ...(isRecent ? [`set ${formatDuration(Math.abs(jumped.by_ms))} ${jumped.by_ms > 0 ? "forward" : "back"} at ${jumped.at}`] : []),
  ];
}

/** What a sink has lost, and how much its link carries: a line each. Pure. */
export function sinkWords({ ledger, link, filter = {} }: Pick<SinkStatus, "ledger" | "link" | "filter">): readonly string[] {
  const dropped = Object.entries(ledger?.dropped ?? {}).filter(([, count]) => count > 0);
  const unstored = ledger?.delivered_unstored ?? 0;
  const unconfirmed = ledger?.unconfirmed ?? 0;
  const filtered = ledger?.filtered ?? 0;
  return [
    ...Object.entries(filter).map(([name, patterns]) => `Takes ${name}: ${(patterns ?? []).join(", ")}`),
    ...(filtered > 0 ? [`Values that its filter leaves out: ${filtered}`] : []),
    ...(unconfirmed > 0 ? [`Sent without confirmation, because MQTT with QoS 0 has none: ${unconfirmed}`] : []),
    ...(unstored > 0 ? [`Delivered without being stored, because the disk took nothing: ${unstored}`] : []),
    ...linkWords(link),
    ...(dropped.length > 0 ? [`Dropped: ${dropped.map(([reason, count]) => `${count} ${reason}`).join(", ")}`] : []),
  ];
}

/** The limits of the link and of the server, as far as they show. */
function linkWords(link: SinkStatus["link"]): readonly string[] {
  if (!link) return [];
  const { bytes_per_s: bytesPerS, round_trip_ms: roundTripMs, window_bytes: windowBytes, publishes_per_s: publishesPerS } = link;
  const roundTrip = roundTripMs === null ? "" : `, round trips of ${formatDuration(roundTripMs)}`;
  return [
    ...(bytesPerS === null ? [] : [`Link: about ${formatBytes(bytesPerS)}/s${roundTrip}; at most ${formatBytes(windowBytes)} sent ahead`]),
    ...(publishesPerS == null ? [] : [`Rate: at most ${publishesPerS} publishes a second`]),
  ];
}
