import path from "node:path";
import { lastGoodFile } from "../../api/embedded.ts";
import { readLastGood } from "../../api/last-good.ts";
import { formatDuration } from "../../base/duration.ts";
import { sleep } from "../../base/timer.ts";
import { stateDirIn } from "../../configuration/settings-file.ts";
import { SinkFilter } from "../../delivery/sink-filter.ts";
import { FAULTS } from "../../model/fault.ts";
import type { Layout } from "../../model/layout.ts";
import type { Look } from "../../model/looks-like.ts";
import type { FilterPatterns } from "../../model/report.ts";
import type { DataSink } from "../../model/resources.ts";
import type { ServiceStatus, SinkStatus, SourceStatus } from "../../model/service-status.ts";
import type { LiveReadout, LiveValue, SourceInsight } from "../../model/source-insight.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { explainFault } from "../../model/words/fault-catalogue.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { sinkEntryOf } from "../../sinks/index.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { lookIntoService, withService } from "../service/known.ts";
import { askService } from "../service/local-client.ts";
import { formatTable } from "../table.ts";
import { durationOf, entryOf } from "./device.ts";
import { ageWords, fromJsonText, liveObject } from "./live.ts";
import { lookWords, VariableLook } from "./looks.ts";

/** The command line's options, as typed. */
export interface ExplainOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly timeout: string;
}

/** Bytes of a variable on a terminal. */
const MAX_BYTES_SHOWN = 64;
/** Longest wait for further readouts of a variable that may be of another type. */
const LOOK_ON_MS = 5000;
/** Between two looks at a source whose next readout is waited for. */
const LOOK_EVERY_MS = 200;

/** The place where a data sink has the variable. */
interface Whereabouts extends Pick<SinkStatus, "uuid" | "name" | "type" | "endpoint" | "state"> {
  /** Topic, path in the address space, or uuid at the platform; null: not known here. */
  readonly place: string | null;
  readonly note: string | null;
  /** Values of all variables that wait for the sink; null: it keeps none. */
  readonly pending: number | null;
}

/** `collector explain SOURCE VARIABLE`: from the address to where each data sink has it. Throws UsageError. */
export function explain(source: string, variable: string, options: ExplainOptions, io: CommandIo): Promise<ExitCode> {
  const timeoutMs = durationOf("--timeout", options.timeout);
  return withService(io, async () => {
    const found = await lookUntilRead(source, variable, timeoutMs, options, io);
    const look = await lookOf(found, source, variable, options, io);
    const value = found.readout?.values[0];
    const sinks = await whereabouts(found.source, value, options.config, io);
    if (options.json) writeJson(io, { ...toObject(found, variable, sinks), looks_like: look ?? null });
    else writeLines(io, linesOf(found, variable, sinks, look, Date.now()));
    if (found.source.error) return EXIT.sourceFailed;
    return value?.quality === "bad" || found.explained?.set_aside ? EXIT.variableBad : EXIT.good;
  });
}

/** Until a readout has ended in which its bytes were read, or the time is over: then with what is known. */
async function lookUntilRead(
  source: string,
  variable: string,
  timeoutMs: number,
  { config }: ExplainOptions,
  io: CommandIo,
): Promise<SourceInsight> {
  const untilMs = performance.now() + timeoutMs;
  for (let isFirst = true; ; isFirst = false) {
    const found = await lookIntoService({ source, variable, explain: true }, config, io);
    const { plan, explained, readout, source: status } = found;
    if (plan && explained === null)
      throw new UsageError(`${status.name} has no variable ${variable}; collector watch ${status.name} lists them`);
    const isReady = !plan || isAway(status) || (readout !== null && explained?.wire?.state !== "pending");
    if (isReady || performance.now() >= untilMs) return found;
    if (isFirst && status.interval_ms > 2000)
      complain(io, `the next readout of ${status.name} is waited for, every ${formatDuration(status.interval_ms)} there is one`);
    if (!(await sleep(LOOK_EVERY_MS, io.signal)) && io.signal.aborted) throw new StoppedError();
  }
}

/** Further readouts of a variable whose values may look like another type, as far as they come soon. */
async function lookOf(
  first: SourceInsight,
  source: string,
  variable: string,
  { config }: ExplainOptions,
  io: CommandIo,
): Promise<Look | undefined> {
  const type = first.readout?.values[0]?.type;
  if (type === undefined) return undefined;
  const looks = new VariableLook();
  const untilMs = performance.now() + LOOK_ON_MS;
  let found = first;
  while (looks.add(found) && performance.now() < untilMs && found.source.interval_ms <= LOOK_ON_MS) {
    if (!(await sleep(LOOK_EVERY_MS, io.signal)) && io.signal.aborted) throw new StoppedError();
    found = await lookIntoService({ source, variable, explain: true }, config, io);
  }
  const look = looks.found(type);
  if (!look || look.type === "REAL") return look;
  return (await entryOf(first.source.type)?.driver())?.default.parseType?.(look.type) ? look : undefined;
}

/** It fails before a variable is asked for. */
const isAway = ({ error }: SourceStatus): boolean => error !== null && error.condition !== "all_variables_faulted";

async function whereabouts(
  source: Layout["source"],
  value: LiveValue | undefined,
  config: string | undefined,
  io: CommandIo,
): Promise<readonly Whereabouts[]> {
  const stateDir = stateDirIn(config);
  const { sinks = [] } = (await askService(localSocketPath(stateDir), "/status", io.signal)) as Partial<ServiceStatus>;
  // Its details are in the copy on disk, which this user may not be allowed to read: then without the places.
  const kept = await readLastGood(lastGoodFile(path.resolve(stateDir)));
  const records = new Map(kept.type === "loaded" ? kept.configuration.sinks.map((sink) => [sink.uuid, sink]) : []);
  const places = sinks.map(async ({ uuid, name, type, endpoint, state, ledger, filter }) => ({
    uuid,
    name,
    type,
    endpoint,
    state,
    place: value ? await placeAt(type, records.get(uuid), source.name, value) : null,
    note: value ? noteOf(type, filter, source, value) : null,
    pending: ledger?.pending ?? null,
  }));
  return Promise.all(places);
}

/** Why a sink does not get a variable; null: it does. */
function noteOf(type: string, filter: FilterPatterns | undefined, source: Layout["source"], value: LiveValue): string | null {
  if (value.exploration && sinkEntryOf(type)?.takesExploration !== true) return "EXPLORATION: published to the platform only";
  return filter && !new SinkFilter(filter).takes(source, value) ? "left out by the filter of this sink" : null;
}

/** The place where a sink of a type puts a variable. */
export async function placeAt(type: string, record: DataSink | undefined, source: string, value: LiveValue): Promise<string | null> {
  const entry = sinkEntryOf(type);
  if (!entry || (value.exploration && !entry.takesExploration)) return null;
  const { default: kind } = await entry.kind();
  try {
    return kind.placeOf?.({ ...(record?.details as object) }, source, value) ?? null;
  } catch {
    return null;
  }
}

function linesOf(
  { source, readout, explained }: SourceInsight,
  variable: string,
  sinks: readonly Whereabouts[],
  look: Look | undefined,
  nowMs: number,
): readonly string[] {
  const value = readout?.values[0];
  const lines = [
    `${source.name}/${value?.name ?? variable} (${source.type} ${source.endpoint ?? "-"})`,
    ...(value ? [`  Address:   ${value.address}`, `  Type:      ${value.type}${value.unit === null ? "" : `, in ${value.unit}`}`] : []),
    `  Request:   ${explained?.request ?? "none reads it"}`,
    ...(explained?.set_aside ? [`  Set aside: ${explained.set_aside}`] : []),
    ...wireLines(explained),
    ...(value?.raw != null ? [`  Raw value: ${value.raw}`] : []),
    ...(explained?.scaling ? [`  Scaling:   × ${explained.scaling.factor} + ${explained.scaling.offset}`] : []),
    ...valueLines(source.name, value, readout, nowMs),
    ...(look ? [`  Hint:      ${lookWords(look)}; compare with the device, and give it the type ${look.type} if it fits`] : []),
  ];
  if (source.error && isAway(source)) {
    const { sentence, nextStep } = explainReason(source.error.reason, source.error.condition, {
      endpoint: source.endpoint,
      source: source.name,
      detail: source.error.detail,
      nextStep: source.error.next_step,
    });
    lines.push(`  The source fails: ${sentence} (${source.error.detail})`, `  Next step: ${nextStep}`);
  }
  const orders = explained?.wire?.state === "read" ? explained.wire.orders : [];
  if (orders.length > 0) {
    const rows = orders.map(({ order, configured, value: text, detail }) => [
      order,
      text ?? `- ${detail ?? ""}`,
      configured ? "configured" : "",
    ]);
    // Protocols with one order of bytes have kinds of numbers.
    const isOfBytes = orders.every(({ order }) => /^[A-H]+$/.test(order) && order !== "BCD");
    lines.push("", ...formatTable([[isOfBytes ? "BYTE ORDER" : "READ AS", explained?.scaling ? "RAW VALUE" : "VALUE", ""], ...rows]));
  }
  if (sinks.length === 0) return [...lines, "", "No data sinks are configured."];
  const rows = sinks.map(({ name, uuid, type, state, place, note, pending }) => [
    name ?? uuid,
    type,
    state,
    note ?? place ?? "-",
    pending === null ? "-" : String(pending),
  ]);
  return [...lines, "", ...formatTable([["SINK", "TYPE", "STATE", "WHERE", "PENDING"], ...rows], new Set([4]))];
}

function wireLines(explained: SourceInsight["explained"]): readonly string[] {
  const wire = explained?.wire;
  if (!wire) return [];
  if (wire.state === "read") {
    const shown = wire.bytes.slice(0, 2 * MAX_BYTES_SHOWN).replace(/..(?=.)/g, "$& ");
    const count = wire.bytes.length / 2;
    const more = count > MAX_BYTES_SHOWN ? ` … ${count} bytes, all with --json` : "";
    return [
      `  Bytes:     ${shown}${more}`,
      ...(wire.form === null ? [] : [`             (${wire.form})`]),
      ...(wire.value === null
        ? []
        : [`  Now:       ${wire.value}${explained.scaling ? ", before scaling" : ""}, read once with the bytes`]),
    ];
  }
  return [`  Bytes:     ${wire.state === "failed" ? wire.detail : "not read yet; the next readout brings them"}`];
}

function valueLines(source: string, value: LiveValue | undefined, readout: LiveReadout | null, nowMs: number): readonly string[] {
  if (!value || !readout) return ["  Value:     no readout has ended since; try again"];
  const age = ageWords(readout.time, nowMs);
  if (value.quality === "none") return [`  Value:     not asked for in the last readout (${age} ago)`];
  if (value.quality === "bad") {
    const fault = FAULTS.find((known) => known === value.fault);
    const advice = fault ? explainFault(fault, { source, address: value.address }) : undefined;
    return [
      `  Value:     none: ${value.fault}${value.detail === null ? "" : `: ${value.detail}`} (${age} ago)`,
      ...(advice ? [`  Cause:     ${advice.cause}`, `  Next step: ${advice.nextStep}`] : []),
    ];
  }
  const device = value.source_time === null ? "" : `; the device says ${value.source_time}`;
  const clock = readout.clock_synced ? "" : "; this machine's clock is not synchronised";
  return [
    `  Value:     ${value.value}${value.unit === null ? "" : ` ${value.unit}`}`,
    `  Quality:   ${value.quality}, ${value.sent ? "sent by the device, as of" : "read"} ${readout.time} (${age} ago)${device}${clock}`,
  ];
}

function toObject({ source, readout, explained }: SourceInsight, variable: string, sinks: readonly Whereabouts[]): object {
  const value = readout?.values[0];
  const wire = explained?.wire;
  return {
    source: { uuid: source.uuid, name: source.name, type: source.type, endpoint: source.endpoint, state: source.status.state },
    variable: value ? liveObject(value) : { name: variable },
    time: readout?.time ?? null,
    clock_synced: readout?.clock_synced ?? null,
    request: explained?.request ?? null,
    set_aside: explained?.set_aside ?? null,
    scaling: explained?.scaling ?? null,
    bytes: wire?.state === "read" ? wire.bytes : null,
    now: wire?.state === "read" ? fromJsonText(wire.value) : null,
    bytes_form: wire?.state === "read" ? wire.form : null,
    orders: wire?.state === "read" ? wire.orders.map((one) => ({ ...one, value: fromJsonText(one.value) })) : [],
    sinks,
  };
}
