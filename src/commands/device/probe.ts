import { formatDuration } from "../../base/duration.ts";
import { permitOf } from "../../lib/policy.ts";
import type { DataSink } from "../../model/resources.ts";
import type { SourceStatus } from "../../model/service-status.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { explainFault } from "../../model/words/fault-catalogue.ts";
import type { ApiConnection } from "../configuration/api-connection.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { knownByService } from "../service/known.ts";
import type { TargetOptions } from "./browse-target.ts";
import { type ConfiguredSource, withSource, worstOf } from "./configured-source.ts";
import { driverOf, durationOf, endpointText, failureLines, failureObject, permitOfPerson, personLog, pkiOf, policyOf } from "./device.ts";
import { probeHabits } from "./probe-habits.ts";
import { probeSink } from "./probe-sink.ts";
import { type ProbePoint, type ProbeTarget, type Walked, walk } from "./probe-walk.ts";
import { stepLine, stepObjects, warningObjects } from "./probe-words.ts";
import { parseReadInput, withPassword } from "./read-input.ts";

/** The command line's options, as typed. */
export interface ProbeOptions extends TargetOptions {
  readonly json?: boolean;
  /** Absent: 30 s, and a minute for habits. */
  readonly timeout?: string;
  /** How the device wants to be asked is found out. */
  readonly habits?: boolean;
  /** False: only what is configured is asked. */
  readonly others?: boolean;
}

const WALK_TIMEOUT = "30s";
const HABITS_TIMEOUT = "1min";

/** What is said before the walk, of a data source that is configured. */
interface Known {
  readonly name: string;
  /** As the running service sees it. */
  readonly status: SourceStatus | undefined;
}

/**
 * `collector probe SOURCE` or `collector probe TYPE key=value… [ADDRESS…]`: walks the way to the first value and stops where it fails; of a
 * data sink, the way to its server.
 * Throws UsageError.
 */
export async function probe(name: string, words: readonly string[], options: ProbeOptions, io: CommandIo): Promise<ExitCode> {
  const timeoutMs = durationOf("--timeout", options.timeout ?? (options.habits ? HABITS_TIMEOUT : WALK_TIMEOUT));
  const policy = policyOf(options.config);
  const log = personLog(io);
  if (words.length > 0) {
    const driver = await driverOf(name);
    const typed = parseReadInput(driver, words, undefined, { needsPoint: false });
    for (const note of typed.notes) complain(io, note);
    const input = await withPassword(typed, options.passwordFile, io);
    const pki = await pkiOf(name, options.config, log, io);
    const target = {
      ...input,
      driver,
      permit: permitOfPerson(policy),
      pki,
      warnings: driver.warningsOf?.(input.details, input.settings) ?? [],
      isOnlyConfigured: options.others === false,
    };
    return options.habits
      ? probeHabits(target, undefined, { ...options, timeoutMs }, io)
      : report(target, undefined, timeoutMs, options, io);
  }
  const ofSource = async ({ spec, permit }: ConfiguredSource): Promise<ExitCode> => {
    const { driver, connect, timeouts, prepareMs, layout } = spec;
    const pki = await pkiOf(driver.type, options.config, log, io);
    const points = spec.points.map(({ index, address, type }): ProbePoint => {
      const variable = layout.variables[index];
      return { text: `${variable?.name} (${variable?.address})`, address, type };
    });
    const known = { name: spec.name, status: await knownByService(spec.uuid, options.config, io) };
    const target = {
      ...connect,
      driver,
      timeouts,
      prepareMs,
      permit,
      pki,
      points,
      warnings: spec.warnings,
      source: spec.name,
      isOnlyConfigured: options.others === false,
    };
    return options.habits ? probeHabits(target, spec.name, { ...options, timeoutMs }, io) : report(target, known, timeoutMs, options, io);
  };
  const ofSink = (record: DataSink, { api }: { readonly api: ApiConnection | undefined }): Promise<ExitCode> => {
    if (options.habits) throw new UsageError(`${record.name ?? record.uuid} is a data sink: --habits is for data sources`);
    return probeSink({ record, permit: permitOf(policy.policy, "sinks"), api }, { ...options, timeoutMs }, io);
  };
  return withSource(name, options, policy, io, ofSource, ofSink);
}

async function report(
  target: ProbeTarget,
  known: Known | undefined,
  timeoutMs: number,
  options: ProbeOptions,
  io: CommandIo,
): Promise<ExitCode> {
  const { driver, details, settings } = target;
  const endpoint = endpointText(driver, details, settings);
  const print = (lines: readonly string[]): void => {
    if (!options.json) writeLines(io, lines);
  };
  print([known ? `${known.name} (${driver.type} ${endpoint})` : `${driver.type} ${endpoint}`, ...knownLines(known, endpoint)]);
  const walked = await walk(target, { io, log: personLog(io), timeoutMs, tell: (step) => print([stepLine(step)]) });
  if (io.signal.aborted) return EXIT.interrupted;
  if (options.json) writeJson(io, toObject(walked, known, driver.type, endpoint));
  else
    print([
      ...(walked.granted === undefined ? [] : [`  Granted: ${walked.granted}`]),
      ...[...walked.notes, ...walked.warnings.map(({ text }) => text)].map((note) => `  Note: ${note}`),
      ...endLines(walked, known, endpoint),
    ]);
  return worstOf(walked.failure !== undefined, walked.fault !== undefined);
}

function knownLines(known: Known | undefined, endpoint: string): readonly string[] {
  if (!known?.status) return known ? ["The service does not run here, does not read it, or may not be asked by this user."] : [];
  const { status, since, error, next_retry_at: nextRetryAt } = known.status;
  const forMs = Math.max(0, Date.now() - Date.parse(since));
  const state = error
    ? `The service fails for ${formatDuration(forMs)}: ${explainReason(error.reason, error.condition, { endpoint }).sentence} (${error.detail})`
    : `The service: ${status.state.type} for ${formatDuration(forMs)}, last value ${status.last_readout_at ?? "never"}.`;
  return [
    state,
    ...(nextRetryAt === null ? [] : [`The service tries again at ${nextRetryAt}.`]),
    "Opens a second connection; the service's stays open. It reads only.",
  ];
}

function endLines({ steps, failure, fault, nextStep: found }: Walked, known: Known | undefined, endpoint: string): readonly string[] {
  if (failure)
    return ["", ...failureLines(failure, endpoint, { ...(known && { source: known.name }), nextStep: found }), ...secondLines(known)];
  if (fault) {
    const { sentence, cause, nextStep } = explainFault(fault.fault);
    return ["", sentence, `  Cause:     ${cause}`, `  Next step: ${found ?? nextStep}`];
  }
  if (steps.at(-1)?.result === "unknown")
    return [
      "",
      `The device can be reached. ${known ? `Give ${known.name} variables: collector variables --help` : "Add an address to read one."}`,
    ];
  return ["", "The device can be read."];
}

/** Many controllers take one connection, and the service has it. */
const secondLines = (known: Known | undefined): readonly string[] =>
  known?.status?.status.state.type === "OK"
    ? ["The service reads this device now: it may take no second connection. `collector status SOURCE` shows what the service sees."]
    : [];

function toObject(
  { steps, failure, fault, notes, granted, warnings, nextStep: found }: Walked,
  known: Known | undefined,
  type: string,
  endpoint: string,
): object {
  return {
    ok: !failure && !fault,
    source: { ...(known && { name: known.name }), type, endpoint },
    service: known?.status
      ? { state: known.status.status.state, since: known.status.since, last_readout_at: known.status.status.last_readout_at }
      : null,
    steps: stepObjects(steps),
    notes,
    granted: granted ?? null,
    warnings: warningObjects(warnings),
    ...(fault && { fault: fault.fault, detail: fault.detail ?? null, next_step: found ?? explainFault(fault.fault).nextStep }),
    ...(failure && failureObject(failure, endpoint, { ...(known && { source: known.name }), nextStep: found })),
  };
}
