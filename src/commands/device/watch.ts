import { formatDuration } from "../../base/duration.ts";
import { sleep } from "../../base/timer.ts";
import { stateDirIn } from "../../configuration/settings-file.ts";
import type { ServiceStatus } from "../../model/service-status.ts";
import type { LiveValue, SourceInsight } from "../../model/source-insight.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { COLUMNS, writeJson, writeLines } from "../lines.ts";
import { lookIntoService, withService } from "../service/known.ts";
import { askService } from "../service/local-client.ts";
import { formatTable } from "../table.ts";
import { durationOf } from "./device.ts";
import { ageWords, liveObject } from "./live.ts";

/** The command line's options, as typed. */
export interface WatchOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly filter?: string;
  /** Readouts of each source. */
  readonly count?: string;
  /** Absent: until the person stops it. */
  readonly for?: string;
}

/** Between two looks; the more sources, the longer, because the thread that reads answers. */
const LOOK_EVERY_MS = 250;
const EACH_MS = 20;
/** A wait that nobody has to be told of. */
const SOON_MS = 2000;
/** Data sources that are watched at once. */
const MAX_SOURCES = 50;
/** Longest text of a value in a table. */
const MAX_VALUE = 24;
/** Rows on a terminal of which nothing is known. */
const ROWS = 24;

/** One source and the last readout that was printed of it. */
interface Watched {
  readonly name: string;
  seen: string | undefined;
  readouts: number;
}

/** `collector watch [SOURCE]`: the values of the running service as they are read, until the person stops it. Throws UsageError. */
export function watch(source: string | undefined, options: WatchOptions, io: CommandIo): Promise<ExitCode> {
  const count = countOf(options.count);
  const endMs = options.for === undefined ? Number.POSITIVE_INFINITY : performance.now() + durationOf("--for", options.for);
  if (options.filter === "") throw new UsageError("--filter: expected a part of a name or an address");
  return withService(io, async () => {
    const watched = await namesOf(source, options.config, io);
    let told = false;
    while (!io.signal.aborted) {
      const looks = await lookAtAll(watched, options, io);
      const fresh = looks.filter(({ one, found }) => found.readout !== null && found.readout.time !== one.seen);
      for (const { one, found } of fresh) {
        one.seen = found.readout?.time;
        one.readouts++;
      }
      if (options.json) for (const { found } of fresh) writeJson(io, toObject(found));
      else if (io.stdout.isTTY) io.stdout.verbatim("\x1b[H\x1b[2J");
      if (!options.json && (io.stdout.isTTY || fresh.length > 0))
        print(
          (io.stdout.isTTY ? looks : fresh).map(({ found }) => found),
          io,
        );
      const wait = told || fresh.length > 0 || io.stdout.isTTY ? undefined : waitWords(looks.map(({ found }) => found));
      if (wait !== undefined) complain(io, wait);
      told = true;
      await io.stdout.room(io.signal);
      if (watched.every(({ readouts }) => readouts >= count)) break;
      const isVain = ({ one, found }: Look): boolean => one.readouts < count && found.source.error !== null && found.readout === null;
      const vain = looks.filter(isVain);
      // Whoever counts readouts would wait for the end of the trouble.
      if (count !== Number.POSITIVE_INFINITY && vain.length > 0 && looks.every((look) => look.one.readouts >= count || isVain(look)))
        return EXIT.sourceFailed;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) break;
      await sleep(Math.min(Math.max(LOOK_EVERY_MS, watched.length * EACH_MS), leftMs), io.signal);
    }
    return EXIT.good;
  });
}

function countOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--count ${text}: expected a whole number from 1`);
  return Number(text);
}

async function namesOf(source: string | undefined, config: string | undefined, io: CommandIo): Promise<readonly Watched[]> {
  const begin = (name: string): Watched => ({ name, seen: undefined, readouts: 0 });
  if (source !== undefined) return [begin(source)];
  const { sources } = (await askService(localSocketPath(stateDirIn(config)), "/status", io.signal)) as ServiceStatus;
  if (sources.length === 0) throw new UsageError("the service reads no data source; collector source add makes one");
  if (sources.length > MAX_SOURCES) complain(io, `the first ${MAX_SOURCES} of ${sources.length} data sources are watched; name one`);
  return sources.slice(0, MAX_SOURCES).map(({ uuid }) => begin(uuid));
}

interface Look {
  readonly one: Watched;
  readonly found: SourceInsight;
}

async function lookAtAll(watched: readonly Watched[], { filter, config }: WatchOptions, io: CommandIo): Promise<readonly Look[]> {
  const looks: Look[] = [];
  for (const one of watched)
    looks.push({
      one,
      found: await lookIntoService({ source: one.name, plan: false, ...(filter !== undefined && { filter }) }, config, io),
    });
  return looks;
}

function print(found: readonly SourceInsight[], io: CommandIo): void {
  const nowMs = Date.now();
  const lines = found.flatMap((one) => [...tableOf(one, nowMs), ""]);
  writeLines(io, io.stdout.isTTY ? onPage(lines) : lines);
}

/** On a terminal, what does not fit would push the rest out of sight. */
function onPage(lines: readonly string[]): readonly string[] {
  const shown =
    lines.length < ROWS ? lines : [...lines.slice(0, ROWS - 2), `… ${lines.length - ROWS + 2} more lines; narrow it with --filter`];
  return shown.map((line) => line.slice(0, COLUMNS));
}

/** One readout as a table. Pure. */
export function tableOf({ source, readout }: SourceInsight, nowMs: number): readonly string[] {
  const { name, type, endpoint, interval_ms: intervalMs, error, status } = source;
  const head = `${name} (${type} ${endpoint ?? "-"}) every ${formatDuration(intervalMs)}: ${error ? error.reason.type : status.state.type}`;
  if (!readout) return [head, error ? `  ${error.detail}` : "  waiting for the next readout"];
  const { time, span_ms: spanMs, values, more, clock_synced: isSynced } = readout;
  const rows = values.map((value) => rowOf(value, nowMs));
  const clock = isSynced ? "" : ", clock not synchronised";
  return [
    `${head}, read ${time} (${ageWords(time, nowMs)} ago, ${Math.round(spanMs)} ms${clock})`,
    ...(values.length === 0
      ? ["  no variable is meant"]
      : formatTable([["NAME", "VALUE", "UNIT", "QUALITY", "RAW", "DEVICE TIME", ""], ...rows])),
    ...(more > 0 ? [`… ${more} more; narrow it with --filter`] : []),
  ];
}

function rowOf({ name, value, unit, quality, raw, fault, detail, source_time: at }: LiveValue, nowMs: number): string[] {
  const age = at === null ? "" : `${ageWords(at, nowMs)} ago`;
  const why = fault === null ? "" : `${fault}${detail === null ? "" : `: ${detail}`}`;
  return [name, cut(value), unit ?? "", quality, raw === null ? "" : cut(raw), age, why];
}

const cut = (text: string | null): string => (text === null ? "-" : text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text);

/** Why nothing is to be seen yet; undefined: it comes at once. */
function waitWords(found: readonly SourceInsight[]): string | undefined {
  const failing = found.filter(({ source }) => source.error !== null).map(({ source }) => source.name);
  if (failing.length > 0) return `${failing.join(", ")}: no values, because the source fails; collector status says why`;
  const longest = Math.max(...found.map(({ source }) => source.interval_ms));
  return longest <= SOON_MS ? undefined : `waiting for the next readout, which comes within ${formatDuration(longest)}`;
}

function toObject({ source, readout }: SourceInsight): object {
  return {
    source: { uuid: source.uuid, name: source.name, state: source.status.state },
    time: readout?.time,
    span_ms: readout?.span_ms,
    clock_synced: readout?.clock_synced,
    values: readout?.values.map(liveObject) ?? [],
    more: readout?.more ?? 0,
  };
}
