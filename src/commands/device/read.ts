import { type AnyDriver, type AnySession, type Point, typeOf } from "../../../drivers/driver.ts";
import { DeviceMemories } from "../../agent/device-memory.ts";
import { escapeControls } from "../../base/plain-text.ts";
import { sleep } from "../../base/timer.ts";
import type { Permit } from "../../model/policy.ts";
import { withSourceTime } from "../../model/source-time.ts";
import { type DataType, formatDataType, type Reading, TYPE_EXAMPLES } from "../../model/value.ts";
import type { Warning } from "../../model/warning.ts";
import { explainFault } from "../../model/words/fault-catalogue.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson } from "../lines.ts";
import { commandsAsTyped } from "../printed-commands.ts";
import { formatTable } from "../table.ts";
import { withSource } from "./configured-source.ts";
import {
  contextOf,
  driverOf,
  durationOf,
  endpointText,
  entryOf,
  failureLines,
  failureObject,
  permitOfPerson,
  personLog,
  pkiOf,
  policyOf,
} from "./device.ts";
import { Looks } from "./looks.ts";
import { keptOf, type Pass, PassDeadline, readPass } from "./pass.ts";
import { warningObjects } from "./probe-words.ts";
import { parseAddresses, parseReadInput, type ReadInput, withPassword } from "./read-input.ts";
import { jsonValue, textValue } from "./values.ts";

/** The command line's options, as typed. */
export interface ReadOptions {
  readonly type?: string;
  readonly json?: boolean;
  readonly timeout: string;
  readonly count: string;
  readonly interval: string;
  readonly passwordFile?: string;
  /** The settings file; of a typed device only for the policy next to it, and where certificates are kept. */
  readonly config?: string;
  readonly keyFile?: string;
}

/** Without one of these no device can be typed. */
const OF_A_TYPED_DEVICE = /^(host|endpoint_url)=/;
const MAX_COUNT = 1_000_000_000;

/** What is read, and how it is reached. */
interface ReadTarget extends Pick<ReadInput, "details" | "settings" | "secrets" | "timeouts" | "prepareMs" | "points"> {
  readonly driver: AnyDriver;
  readonly permit: Permit | undefined;
  /** Name of the data source, where it is a configured one. */
  readonly source?: string;
  /** Warnings of its configuration. */
  readonly warnings: readonly Warning[];
}

/** How often, and how long. */
interface Passes {
  readonly timeoutMs: number;
  readonly intervalMs: number;
  readonly count: number;
}

/**
 * `collector read TYPE key=value… ADDRESS…`: reads a device that needs no configuration; `collector read SOURCE ADDRESS…`: one over the
 * connection properties of a data source. Says what it answers. Throws UsageError.
 */
export async function read(name: string, words: readonly string[], options: ReadOptions, io: CommandIo): Promise<ExitCode> {
  const passes: Passes = {
    timeoutMs: durationOf("--timeout", options.timeout),
    intervalMs: durationOf("--interval", options.interval),
    count: countOf(options.count),
  };
  const policy = policyOf(options.config);
  if (!entryOf(name) && !words.some((word) => OF_A_TYPED_DEVICE.test(word)))
    return withSource(name, options, policy, io, ({ spec, permit }) => {
      const { driver, connect, timeouts, prepareMs } = spec;
      const points = parseAddresses(driver, words, typeOption(driver, options.type), connect.settings);
      return readTarget(
        { ...connect, driver, timeouts, prepareMs, permit, points, source: spec.name, warnings: spec.warnings },
        passes,
        options,
        io,
      );
    });
  const driver = await driverOf(name);
  const typed = parseReadInput(driver, words, typeOption(driver, options.type));
  for (const note of typed.notes) complain(io, note);
  const input = await withPassword(typed, options.passwordFile, io);
  const warnings = driver.warningsOf?.(input.details, input.settings) ?? [];
  return readTarget({ ...input, driver, permit: permitOfPerson(policy), warnings }, passes, options, io);
}

async function readTarget(
  input: ReadTarget,
  { timeoutMs, intervalMs, count }: Passes,
  options: ReadOptions,
  io: CommandIo,
): Promise<ExitCode> {
  const { driver, permit } = input;
  const points = input.points.map(({ address, type: pointType }, index): Point => ({ index, address, type: pointType }));
  const log = personLog(io);
  const kept = keptOf(points, { driver, settings: input.settings, log });
  const device = new DeviceMemories().of(driver.type);
  const pki = await pkiOf(driver.type, options.config, log, io);
  const endpoint = endpointText(driver, input.details, input.settings);
  const keeps = driver.keepsConnection(input.details, input.settings);
  let session: AnySession | undefined;
  let exit: ExitCode | undefined;
  const looks = new Looks(driver, input.points);
  let told = "";
  try {
    for (let i = 0; i < count && !io.signal.aborted; i++) {
      const started = performance.now();
      const deadline = new PassDeadline(timeoutMs, input.prepareMs, io);
      const ctx = contextOf(input, { signal: deadline.signal, log, permit, pki });
      const done = await readPass(driver, input, { ...ctx, device }, session, kept, deadline);
      deadline.end();
      session = done.session;
      const warnings = [...input.warnings, ...(session?.warnings?.() ?? [])];
      if (!keeps || done.pass.failure) {
        await session?.close();
        session = undefined;
      }
      if (io.signal.aborted) break;
      const now = warnings.map(({ text }) => `  Note: ${escapeControls(text)}\n`).join("");
      if (options.json) writeJson(io, { ...toObject(done.pass, input, endpoint), warnings: warningObjects(warnings) });
      // A pass says only what is new.
      else io.stdout.write(commandsAsTyped(`${toText(done.pass, input, endpoint)}${now === told ? "" : now}`, io.typed));
      told = now;
      looks.add(done.pass.readings);
      exit = worse(exit ?? EXIT.good, exitOf(done.pass));
      await io.stdout.room(io.signal);
      if (i + 1 < count) await sleep(started + intervalMs - performance.now(), io.signal);
    }
  } finally {
    await session?.close();
  }
  for (const hint of looks.hints()) complain(io, hint);
  return exit ?? EXIT.interrupted;
}

function countOf(text: string): number {
  const count = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_COUNT) throw new UsageError(`--count ${text}: expected a whole number from 1 to ${MAX_COUNT}`);
  return count;
}

function typeOption(driver: AnyDriver, text: string | undefined): DataType | undefined {
  if (text === undefined) return undefined;
  const type = typeOf(driver, text);
  if (!type) throw new UsageError(`--type ${text}: expected ${TYPE_EXAMPLES}`);
  return type;
}

const aboutOf = (source: string | undefined) => (source === undefined ? {} : { source });

const UNANSWERED: Reading = { quality: "bad", fault: "no_answer" };

function exitOf({ readings, failure }: Pass): ExitCode {
  if (failure) return EXIT.sourceFailed;
  return readings.every((reading) => reading !== undefined && reading.quality !== "bad") ? EXIT.good : EXIT.variableBad;
}

/** A variable without a type of its own has that of its value. */
const typeOfReading = (reading: Reading, type: DataType): DataType =>
  type.scalar === "auto" && reading.quality !== "bad" ? (reading.type ?? type) : type;

const worse = (a: ExitCode, b: ExitCode): ExitCode => (a > b ? a : b);

function toObject(done: Pass, { points, driver, source }: ReadTarget, endpoint: string): object {
  const { failure } = done;
  return {
    ok: exitOf(done) === EXIT.good,
    source: { ...(source !== undefined && { name: source }), type: driver.type, endpoint },
    time: new Date(done.time).toISOString(),
    span_ms: Math.round(done.spanMs * 1000) / 1000,
    values: points.map(({ text, type: pointType }, i) => {
      const reading = withSourceTime(done.readings[i] ?? UNANSWERED);
      const type = typeOfReading(reading, pointType);
      const base = { address: text, type: formatDataType(type) };
      if (reading.quality === "bad")
        return {
          ...base,
          value: null,
          quality: "bad",
          fault: reading.fault,
          ...(reading.detail !== undefined && { detail: reading.detail }),
        };
      return {
        ...base,
        value: jsonValue(reading.value, type),
        quality: reading.quality,
        ...(reading.sourceTime !== undefined && { source_time: new Date(reading.sourceTime).toISOString() }),
      };
    }),
    ...(failure && failureObject(failure, endpoint, aboutOf(source))),
  };
}

function toText(done: Pass, { points, driver, source }: ReadTarget, endpoint: string): string {
  const what = source === undefined ? `${driver.type} ${endpoint}` : `${source} (${driver.type} ${endpoint})`;
  const lines = [escapeControls(`${what}  ${new Date(done.time).toISOString()}  ${Math.round(done.spanMs)} ms`)];
  if (done.readings.length > 0 || !done.failure) {
    const advice = new Map<string, string>();
    const rows = points.map(({ text, type: pointType }, i) => {
      const reading = done.readings[i] ?? UNANSWERED;
      const type = typeOfReading(reading, pointType);
      const start = [text, reading.quality === "bad" ? "-" : textValue(reading.value, type), formatDataType(type), reading.quality];
      if (reading.quality !== "bad") return [...start, ""];
      const { sentence, nextStep } = explainFault(reading.fault);
      advice.set(reading.fault, `${sentence} ${nextStep}`);
      return [...start, `${reading.fault}${reading.detail === undefined ? "" : `: ${reading.detail}`}`];
    });
    lines.push(...formatTable([["ADDRESS", "VALUE", "TYPE", "QUALITY", ""], ...rows]));
    for (const [fault, words] of advice) lines.push("", `${fault}: ${escapeControls(words)}`);
  }
  if (done.failure) lines.push("", ...failureLines(done.failure, endpoint, aboutOf(source)));
  return `${lines.map(escapeControls).join("\n")}\n`;
}
