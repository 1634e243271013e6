import { createReadStream } from "node:fs";
import { addAbortSignal, type Readable } from "node:stream";
import { formatDuration } from "../../base/duration.ts";
import { messageOf } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { type Finding, type Judgement, parseExact } from "../../sinks/lib/proof.ts";
import { type CopyJudgement, ReceivedCopy, type Span } from "../../sinks/mqtt/manifest/received-copy.ts";
import type { PlatformJudgement } from "../../sinks/platform/proof.ts";
import type { TargetOptions } from "../device/browse-target.ts";
import { durationOf, failureLines, failureObject } from "../device/device.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { formatTable } from "../table.ts";
import type { SinkBroker } from "./verify-broker.ts";
import type { SinkPlatform } from "./verify-platform.ts";

/** The command line's options, as typed. */
export interface VerifyOptions extends TargetOptions {
  readonly json?: boolean;
  /** Absent: 3 min. */
  readonly for?: string;
  readonly since?: string;
  readonly until?: string;
}

const DEFAULT_FOR = "3min";
const TELL_EVERY_MS = 5000;
const MAX_LINE_CHARACTERS = 64 * 2 ** 20;
const MAX_SHOWN = 100;

/** Counts the messages that have come, for people who wait. */
interface Taken {
  messages: number;
  /** Lines and messages that cannot be read as JSON. */
  unreadable: number;
}

/**
 * `collector verify SINK [FILE]`: compares a received copy of a sink's values, or what its platform holds, with what was acknowledged. Ends with 0, 1 where
 * something differs, and 3 where it cannot be seen. Throws UsageError.
 */
export async function verify(sink: string, file: string | undefined, options: VerifyOptions, io: CommandIo): Promise<ExitCode> {
  const forMs = durationOf("--for", options.for ?? DEFAULT_FOR);
  const asked = { sinceMs: timeOf("--since", options.since), untilMs: timeOf("--until", options.until) };
  if (file !== undefined && options.for !== undefined) throw new UsageError("--for: is for what the broker sends; leave it out, or FILE");
  const copy = new ReceivedCopy();
  const taken: Taken = { messages: 0, unreadable: 0 };
  const take = (text: string): void => {
    taken.messages++;
    const json = jsonIn(text);
    if (json === undefined) taken.unreadable++;
    else copy.take(json);
  };
  let span: Span = { ...asked, isOpenEnd: true };
  let endpoint = sink;
  let sinkType = "mqtt";
  let ofPlatform: PlatformJudgement | undefined;
  try {
    if (file === undefined || !(await takeFile(file, take, taken, copy, io))) {
      const { serverOf } = await import("./verify-broker.ts");
      const atPlatform = async (platform: SinkPlatform): Promise<void> => {
        if (file !== undefined) throw new UsageError("FILE: a copy of a platform is not compared; leave FILE out");
        if (options.for !== undefined)
          throw new UsageError("--for: is for what a broker sends; name a time of a platform with --since and --until");
        endpoint = platform.endpoint;
        sinkType = "platform";
        let values = 0;
        const stop = tellProgress(io, () => `${values} values read`);
        ofPlatform = await platform.judge(asked, (read) => (values = read)).finally(stop);
      };
      const atBroker = async (broker: SinkBroker): Promise<void> => {
        endpoint = broker.endpoint;
        const startMs = performance.now();
        const stop = tellProgress(io, () => {
          const leftMs = Math.max(0, forMs - (performance.now() - startMs));
          const left = file === undefined ? `; ${formatDuration(Math.ceil(leftMs / 1000) * 1000)} left` : "";
          return `${taken.messages} messages, ${copy.readouts} readouts${left}`;
        });
        const begun = (): void => {
          if (file === undefined) span = { ...span, notBeforeMs: Date.now() };
        };
        await broker.listen({ ...(file === undefined && { forMs }), take: (payload) => take(payload.toString()), begun }).finally(stop);
      };
      const exit = await serverOf(sink, options, io, { broker: atBroker, platform: atPlatform });
      // Why is said.
      if (exit !== EXIT.good) return exit === EXIT.ownFailure ? EXIT.sourceFailed : exit;
      if (file !== undefined) span = asked;
    }
  } catch (error) {
    if (io.signal.aborted) return EXIT.interrupted;
    if (error instanceof RangeError) throw new UsageError(error.message);
    if (!(error instanceof ReasonError)) throw error;
    const about = { sinkType };
    if (options.json) writeJson(io, { ok: false, sink, ...failureObject(error, endpoint, about) });
    else writeLines(io, failureLines(error, endpoint, about));
    return EXIT.sourceFailed;
  }
  if (ofPlatform) return reportPlatform(sink, ofPlatform, options, io);
  // Ctrl-C ends listening: what has come until then is judged.
  const hasBegun = span.notBeforeMs !== undefined;
  if (io.signal.aborted && !hasBegun) return EXIT.interrupted;
  return report(sink, copy, span, taken, options, io);
}

function report(sink: string, copy: ReceivedCopy, span: Span, taken: Taken, { json = false }: VerifyOptions, io: CommandIo): ExitCode {
  const judgement = copy.judge(span);
  const { findings, readouts } = judgement;
  if (taken.unreadable > 0) complain(io, `${taken.unreadable} of ${taken.messages} messages cannot be read as JSON and were left out`);
  const problem = readouts === 0 ? unseen(copy) : undefined;
  if (json) {
    const ok = problem === undefined && findings.length === 0;
    writeJson(io, { ok, sink, ...judgement, unreadable: taken.unreadable, ...(problem !== undefined && { detail: problem }) });
  } else if (problem !== undefined) complain(io, problem);
  else writeLines(io, linesOf(sink, judgement));
  if (problem !== undefined) return EXIT.sourceFailed;
  return findings.length === 0 ? EXIT.good : EXIT.variableBad;
}

const unseen = (copy: ReceivedCopy): string =>
  copy.hasManifest
    ? "the manifest and the copy have no time in common: verify for longer (--for 5min), or name the time with --since and --until"
    : "there is no manifest: set manifest=true of the sink (collector sink set NAME manifest=true), and wait for two minutes";

function reportPlatform(sink: string, judgement: PlatformJudgement, { json = false }: VerifyOptions, io: CommandIo): ExitCode {
  const { findings, readouts, before_oldest } = judgement;
  const problem =
    readouts === 0
      ? "this machine knows of no readout that the platform has acknowledged in this time: wait for two minutes after manifest=true, or name the time with --since and --until"
      : undefined;
  if (json) {
    const ok = problem === undefined && findings.length === 0;
    writeJson(io, { ok, sink, ...judgement, ...(problem !== undefined && { detail: problem }) });
  } else if (problem !== undefined) complain(io, problem);
  else
    writeLines(io, [
      ...headLines(sink, judgement, "Each is at the platform as it was acknowledged."),
      ...(before_oldest > 0
        ? [`${before_oldest} of the missing are older than all that the platform holds: its retention may have dropped them`]
        : []),
      ...unprovedLines(judgement),
    ]);
  if (problem !== undefined) return EXIT.sourceFailed;
  return findings.length === 0 ? EXIT.good : EXIT.variableBad;
}

/** For people. Pure. */
export function linesOf(sink: string, judgement: CopyJudgement): readonly string[] {
  const { repeated, unlisted, without_manifest: without, losses } = judgement;
  return [
    ...headLines(sink, judgement, "Each is in the copy as the broker acknowledged it."),
    ...(repeated > 0 ? [`${repeated} repeated: the same again, as after a lost connection; no fault`] : []),
    ...(unlisted > 0 ? [`${unlisted} not in the manifest: the broker has not acknowledged them, or not yet; no fault`] : []),
    ...unprovedLines(judgement),
    ...(without > 0 ? [`${without} data source${without === 1 ? "" : "s"} in the copy without a manifest: not compared`] : []),
    ...losses.map(
      ({ from: first, to: last, count, reason }) =>
        `lost before the broker: ${count ?? "unknown"} values of all sources, ${first} to ${last}: ${reason}`,
    ),
  ];
}

function headLines(sink: string, { findings, readouts, sources, from, to }: Judgement, allWell: string): readonly string[] {
  const shown = findings.slice(0, MAX_SHOWN);
  const kinds = Map.groupBy(findings, ({ kind }) => kind);
  return [
    `${sink}: ${readouts} readouts of ${sources} data source${sources === 1 ? "" : "s"}, ${from} to ${to}`,
    ...(findings.length === 0 ? [allWell] : formatTable([["WHAT", "SOURCE", "TIME", "ID", "DETAIL"], ...shown.map(rowOf)])),
    ...(findings.length > shown.length ? [`… ${findings.length - shown.length} more; --json has all`] : []),
    ...(findings.length > 0 ? [[...kinds].map(([kind, of]) => `${of.length} ${kind}`).join(", ")] : []),
  ];
}

const unprovedLines = ({ unproved }: Judgement): readonly string[] =>
  unproved > 0 ? [`${unproved} not proved: in no list of the manifest, or acknowledged with several contents`] : [];

const rowOf = ({ kind, source, time, id, values, readouts }: Finding): readonly string[] => [
  kind,
  source,
  time,
  id,
  values && values.expected !== values.found
    ? `${values.found} of ${values.expected} values`
    : readouts === undefined
      ? ""
      : `${readouts} in this minute`,
];

/** Returns whether a manifest is in it. */
async function takeFile(file: string, take: (text: string) => void, taken: Taken, copy: ReceivedCopy, io: CommandIo): Promise<boolean> {
  const stream: Readable = addAbortSignal(io.signal, file === "-" ? io.stdin : createReadStream(file));
  const stop = tellProgress(io, () => `${taken.messages} lines, ${copy.readouts} readouts`);
  try {
    for await (const line of textLines(stream)) if (line.trim() !== "") take(line);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new UsageError(`${file} cannot be read: ${messageOf(error)}`);
  } finally {
    stop();
    stream.destroy();
  }
  return copy.hasManifest;
}

/** Throws RangeError at a line that is too long. */
async function* textLines(stream: Readable): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_CHARACTERS) throw new RangeError(`a line is longer than ${MAX_LINE_CHARACTERS} characters`);
    yield* lines;
  }
  yield rest;
}

/** A message, or one as `mosquitto_sub -F '%j'` and `'%J'` print it. Undefined: it is no JSON. */
function jsonIn(text: string): unknown {
  try {
    const json = parseExact(text);
    if (typeof json !== "object" || json === null || !("topic" in json) || !("payload" in json)) return json;
    return typeof json.payload === "string" ? parseExact(json.payload) : json.payload;
  } catch {
    return undefined;
  }
}

function timeOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (!Number.isFinite(ms)) throw new UsageError(`${option} ${text}: expected a time such as 2026-11-20T09:00:00Z`);
  return ms;
}

/** Tells what is done every few seconds, until it is called. */
function tellProgress(io: CommandIo, text: () => string): () => void {
  const timer = setInterval(() => complain(io, text()), TELL_EVERY_MS);
  return () => clearInterval(timer);
}
