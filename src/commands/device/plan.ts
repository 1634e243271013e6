import type { AnySession } from "../../../drivers/driver.ts";
import { DeviceMemories } from "../../agent/device-memory.ts";
import { planView, ReadoutTimes } from "../../agent/plan-view.ts";
import type { ReasonError } from "../../model/reason.ts";
import type { BufferLeft } from "../../model/service-status.ts";
import type { PlanView } from "../../model/source-insight.ts";
import type { Warning } from "../../model/warning.ts";
import { planFacts } from "../../service/words/plan-words.ts";
import { leftWords, sparedWords } from "../../service/words/service-words.ts";
import { type CommandIo, complain, EXIT, type ExitCode } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { lookIntoService, sourceIn, statusIfRunning, withService } from "../service/known.ts";
import { formatTable } from "../table.ts";
import type { TargetOptions } from "./browse-target.ts";
import { type ConfiguredSource, withSource } from "./configured-source.ts";
import { contextOf, durationOf, endpointText, failureLines, failureObject, personLog, pkiOf, policyOf } from "./device.ts";
import { keptOf, PassDeadline, readPass } from "./pass.ts";

/** The command line's options, as typed. */
export interface PlanOptions extends TargetOptions {
  readonly json?: boolean;
  readonly timeout: string;
  /** All requests are listed. */
  readonly requests?: boolean;
}

/** Requests in the table where not all are wished. */
const SHOWN = 8;
/** Readouts that are measured where the service does not run. */
const MEASURED = 3;

interface Planned {
  readonly name: string;
  readonly type: string;
  readonly endpoint: string;
  readonly from: "service" | "own connection";
  readonly plan: PlanView;
  readonly warnings: readonly Warning[];
  /** The part of its values that report by exception spares; absent: all are reported, or the service does not read it. */
  readonly spared?: string | undefined;
  /** How long the buffer takes the values of all sources while no sink takes them; absent: the service does not know. */
  readonly left?: BufferLeft | undefined;
}

/** `collector plan SOURCE`: what a readout asks for, how long it takes, and which interval it fits. Throws UsageError. */
export function plan(name: string, options: PlanOptions, io: CommandIo): Promise<ExitCode> {
  return withService(io, () => planned(name, options, io));
}

async function planned(name: string, options: PlanOptions, io: CommandIo): Promise<ExitCode> {
  const status = await statusIfRunning(options.config, io);
  const known = sourceIn(status, name);
  if (known) {
    const { source, plan: view } = await lookIntoService({ source: known.uuid }, options.config, io);
    const { type, endpoint, warnings, counters } = source;
    if (view?.measured) {
      const spared = sparedWords(counters);
      const left = status?.buffer.left;
      print({ name: source.name, type, endpoint: endpoint ?? "-", from: "service", plan: view, warnings, spared, left }, options, io);
      return EXIT.good;
    }
    complain(io, "the service has not read this source yet; it is read once more over a connection of its own");
  } else complain(io, "the service does not run here, or does not read this source; it is read over a connection of its own");
  return withSource(name, options, policyOf(options.config), io, (source) => measured(source, options, io));
}

async function measured({ spec, permit }: ConfiguredSource, options: PlanOptions, io: CommandIo): Promise<ExitCode> {
  const { driver, connect, intervalMs, maxConnections, timeouts, prepareMs } = spec;
  const log = personLog(io);
  const pki = await pkiOf(driver.type, options.config, log, io);
  const device = new DeviceMemories().of(driver.type);
  const kept = keptOf(spec.points, { driver, settings: connect.settings, log });
  const times = new ReadoutTimes();
  const endpoint = endpointText(driver, connect.details, connect.settings);
  let session: AnySession | undefined;
  let failure: ReasonError | undefined;
  try {
    for (let i = 0; i < MEASURED && !failure && !io.signal.aborted; i++) {
      const deadline = new PassDeadline(durationOf("--timeout", options.timeout), prepareMs, io);
      const ctx = contextOf({ driver, ...connect, timeouts }, { signal: deadline.signal, log, permit, pki });
      const done = await readPass(driver, connect, { ...ctx, device }, session, kept, deadline);
      deadline.end();
      session = done.session;
      failure = done.pass.failure;
      if (!failure) times.take({ spanMs: done.pass.spanMs, waitedMs: 0, unreached: 0 });
    }
  } finally {
    await session?.close();
  }
  if (io.signal.aborted) return EXIT.interrupted;
  if (failure) {
    if (options.json) writeJson(io, { source: { name: spec.name, type: spec.type, endpoint }, ...failureObject(failure, endpoint) });
    else writeLines(io, failureLines(failure, endpoint));
    return EXIT.sourceFailed;
  }
  const view = planView({
    driver,
    learned: kept.learned,
    habits: kept.habits.list(kept.learned.points),
    intervalMs,
    maxConnections,
    measured: times.measured,
  });
  print({ name: spec.name, type: spec.type, endpoint, from: "own connection", plan: view, warnings: spec.warnings }, options, io);
  return EXIT.good;
}

function print(planned: Planned, options: PlanOptions, io: CommandIo): void {
  const { name, type, endpoint, from, plan: view, warnings, spared, left } = planned;
  if (options.json) {
    writeJson(io, {
      source: { name, type, endpoint },
      from,
      ...view,
      ...(spared !== undefined && { reported: spared }),
      ...(left && { buffer_left: left }),
      warnings,
    });
    return;
  }
  writeLines(io, planText(planned, options.requests ?? false));
}

/** For people: the sums, whether they fit, then the requests. Pure. */
export function planText({ name, type, endpoint, from, plan: view, warnings, spared, left }: Planned, isWhole: boolean): readonly string[] {
  const { requests } = view;
  const shown = isWhole ? view.first_requests : view.first_requests.slice(0, SHOWN);
  const rows = shown.map((one) => [one.words, String(one.variables), String(one.bytes)]);
  const more = requests - shown.length;
  const how = from === "service" ? "as the service reads it" : "over a connection of its own";
  return [
    `${name} (${type} ${endpoint}), ${how}`,
    ...[
      ...planFacts(view, name),
      ...(spared === undefined ? [] : [{ label: "Reported", words: spared }]),
      ...(left ? [{ label: "Buffer", words: `${leftWords(left)}, of all data sources together` }] : []),
    ].map(({ label, words }) => `  ${`${label}:`.padEnd(10)} ${words}`),
    // The proposal says what to do about a plan that does not fit.
    ...warnings.filter(({ code }) => code !== "plan_exceeds_interval").map(({ text }) => `  Note: ${text}`),
    "",
    ...formatTable([["REQUEST", "VARIABLES", "BYTES"], ...rows], new Set([1, 2])),
    ...(more > 0 ? [`… ${more} more requests${isWhole ? "" : ", see --requests"}`] : []),
  ];
}
