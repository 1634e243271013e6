import { resolve } from "node:path";
import type { AnyDriver, AnySession, DriverContext, Point } from "../../drivers/driver.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { createGroupMemory, type GroupMemory, readAll } from "../agent/read.ts";
import { permittedResolve } from "../agent/resolve.ts";
import { sleep } from "../agent/time.ts";
import { explainFault, explainReason } from "../model/catalogue.ts";
import { silentLog } from "../model/context.ts";
import { parseDuration } from "../model/duration.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import { nearest } from "../model/nearest.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";
import { type DataType, formatDataType, parseDataType, type Reading } from "../model/value.ts";
import { readBoundedFile } from "../os/bounded-file.ts";
import { escapeControls } from "../os/log-text.ts";
import { permitOf } from "../os/policy.ts";
import { loadPolicy, policyFile } from "../os/policy-file.ts";
import { SettingsError } from "../os/settings-file.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "./io.ts";
import { toJson } from "./json.ts";
import { parseReadInput, type ReadInput } from "./read-input.ts";
import { formatTable } from "./table.ts";
import { jsonValue, textValue } from "./values.ts";

/** The command line's options, as typed. */
export interface ReadOptions {
  readonly type?: string;
  readonly json?: boolean;
  readonly timeout: string;
  readonly count: string;
  readonly interval: string;
  readonly passwordFile?: string;
  /** The settings file; only for the policy beside it. */
  readonly config?: string;
}

const MAX_COUNT = 1_000_000_000;
const MAX_PASSWORD_BYTES = 4096;

/** One pass over everything that was asked for. */
interface Pass {
  /** Epoch ms at which the first request was sent. */
  readonly time: number;
  readonly spanMs: number;
  readonly readings: readonly (Reading | undefined)[];
  readonly failure: ReasonError | undefined;
}

/** `collector read`: reads a source that needs no configuration, and says what it answers. Throws UsageError. */
export async function read(type: string, words: readonly string[], options: ReadOptions, io: CommandIo): Promise<ExitCode> {
  const driver = await driverOf(type);
  const timeoutMs = durationOf("--timeout", options.timeout);
  const intervalMs = durationOf("--interval", options.interval);
  const count = countOf(options.count);
  const input = withPassword(parseReadInput(driver, words, typeOf(options.type)), options.passwordFile);
  const points = input.points.map(({ address, type: pointType }, index): Point => ({ index, address, type: pointType }));
  const memory = createGroupMemory(points);
  const permit = permitOfMachine(options.config);
  const { host, port } = driver.endpoint(input.details);
  const endpoint = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const keeps = driver.keepsConnection(input.details);
  let session: AnySession | undefined;
  let exit: ExitCode | undefined;
  try {
    for (let i = 0; i < count && !io.signal.aborted; i++) {
      const started = performance.now();
      const done = await pass(
        driver,
        input,
        permit,
        session,
        memory,
        AbortSignal.any([io.signal, AbortSignal.timeout(timeoutMs)]),
        timeoutMs,
      );
      session = done.session;
      if (!keeps || done.pass.failure) {
        await session?.close();
        session = undefined;
      }
      if (io.signal.aborted) break;
      io.stdout.write(
        options.json ? `${toJson(toObject(done.pass, input, driver.type, endpoint))}\n` : toText(done.pass, input, driver.type, endpoint),
      );
      exit = worse(exit ?? EXIT.good, exitOf(done.pass));
      if (i + 1 < count) await sleep(started + intervalMs - performance.now(), io.signal);
    }
  } finally {
    await session?.close();
  }
  return exit ?? EXIT.interrupted;
}

async function driverOf(type: string): Promise<AnyDriver> {
  const entry = Object.hasOwn(DRIVERS, type) ? DRIVERS[type] : undefined;
  if (entry) return (await entry.driver()).default;
  const known = Object.keys(DRIVERS);
  const meant = nearest(type, known);
  throw new UsageError(
    `${JSON.stringify(type)} is no type that this collector reads${meant ? `; did you mean ${meant}?` : ""}; known types: ${known.join(", ")}`,
  );
}

/** A person may type any address, unless this machine has a policy file (DESIGN 6). Throws UsageError where that cannot be read. */
function permitOfMachine(config: string | undefined): Permit | undefined {
  try {
    const { policy, file } = loadPolicy(policyFile(config === undefined ? undefined : resolve(config)));
    return file === undefined ? undefined : permitOf(policy, "sources");
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

function durationOf(option: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new UsageError(`${option} ${text}: expected a duration above zero such as 250ms, 5s or 2min`);
  // What setTimeout can wait for.
  return Math.min(ms, 2 ** 31 - 1);
}

function countOf(text: string): number {
  const count = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_COUNT) throw new UsageError(`--count ${text}: expected a whole number from 1 to ${MAX_COUNT}`);
  return count;
}

function typeOf(text: string | undefined): DataType | undefined {
  if (text === undefined) return undefined;
  const type = parseDataType(text);
  if (!type) throw new UsageError(`--type ${text}: expected a type such as bool, int16, uint32, float32, string(20) or float32[10]`);
  return type;
}

function withPassword(input: ReadInput, file: string | undefined): ReadInput {
  if (file === undefined) return input;
  let password: string | undefined;
  try {
    password = readBoundedFile(file, MAX_PASSWORD_BYTES).toString("utf8").split(/\r?\n/)[0];
  } catch (error) {
    throw new UsageError(`--password-file: ${messageOf(error)}`);
  }
  if (!password) throw new UsageError(`--password-file: ${file} is empty; its first line must be the password`);
  return { ...input, secrets: { ...input.secrets, password } };
}

async function pass(
  driver: AnyDriver,
  { details, settings, secrets, timeouts }: ReadInput,
  permit: Permit | undefined,
  given: AnySession | undefined,
  memory: GroupMemory,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<{ readonly pass: Pass; readonly session: AnySession | undefined }> {
  const judged = permit && permittedResolve(undefined, permit, driver.endpoint(details).port);
  const ctx: DriverContext = { signal, log: silentLog, timeouts, ...(judged && { resolve: judged }) };
  let session = given?.alive() ? given : undefined;
  let time = Date.now();
  let started = performance.now();
  try {
    if (!session) {
      await given?.close();
      session = await driver.connect({ details, settings, secrets }, ctx);
    }
    time = Date.now();
    started = performance.now();
    const { readings, failure, ranOut } = await readAll(driver, session, memory, ctx);
    const late = ranOut
      ? new ReasonError("TIMEOUT", `not everything was read within ${timeoutMs} ms; give more with --timeout`)
      : undefined;
    return { pass: { time, spanMs: performance.now() - started, readings, failure: failure ?? late }, session };
  } catch (error) {
    return { pass: { time, spanMs: performance.now() - started, readings: [], failure: toReasonError(error) }, session };
  }
}

const UNANSWERED: Reading = { quality: "bad", fault: "no_answer" };

function exitOf({ readings, failure }: Pass): ExitCode {
  if (failure) return EXIT.sourceFailed;
  return readings.every((reading) => reading !== undefined && reading.quality !== "bad") ? EXIT.good : EXIT.variableBad;
}

const worse = (a: ExitCode, b: ExitCode): ExitCode => (a > b ? a : b);

function toObject(done: Pass, input: ReadInput, type: string, endpoint: string): object {
  const { failure } = done;
  return {
    ok: exitOf(done) === EXIT.good,
    source: { type, endpoint },
    time: new Date(done.time).toISOString(),
    span_ms: Math.round(done.spanMs * 1000) / 1000,
    values: input.points.map(({ text, type: pointType }, i) => {
      const reading = done.readings[i] ?? UNANSWERED;
      const base = { address: text, type: formatDataType(pointType) };
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
        value: jsonValue(reading.value, pointType),
        quality: reading.quality,
        ...(reading.sourceTime !== undefined && { source_time: new Date(reading.sourceTime).toISOString() }),
      };
    }),
    ...(failure && {
      reason: failure.reason,
      ...(failure.condition && { condition: failure.condition }),
      detail: failure.message,
      next_step: explainReason(failure.reason, failure.condition, { endpoint }).nextStep,
    }),
  };
}

function toText(done: Pass, input: ReadInput, type: string, endpoint: string): string {
  const lines = [escapeControls(`${type} ${endpoint}  ${new Date(done.time).toISOString()}  ${Math.round(done.spanMs)} ms`)];
  if (done.readings.length > 0 || !done.failure) {
    const advice = new Map<string, string>();
    const rows = input.points.map(({ text, type: pointType }, i) => {
      const reading = done.readings[i] ?? UNANSWERED;
      const start = [
        text,
        reading.quality === "bad" ? "-" : textValue(reading.value, pointType),
        formatDataType(pointType),
        reading.quality,
      ];
      if (reading.quality !== "bad") return [...start, ""];
      const { sentence, nextStep } = explainFault(reading.fault);
      advice.set(reading.fault, `${sentence} ${nextStep}`);
      return [...start, `${reading.fault}${reading.detail === undefined ? "" : `: ${reading.detail}`}`];
    });
    lines.push(...formatTable([["ADDRESS", "VALUE", "TYPE", "QUALITY", ""], ...rows]));
    for (const [fault, words] of advice) lines.push("", `${fault}: ${escapeControls(words)}`);
  }
  if (done.failure) {
    const { sentence, cause, nextStep } = explainReason(done.failure.reason, done.failure.condition, { endpoint });
    lines.push("", sentence, `  Detail:    ${done.failure.message}`, `  Cause:     ${cause}`, `  Next step: ${nextStep}`);
    lines.push(`  Reason:    ${toJson(done.failure.reason)}`);
  }
  return `${lines.map(escapeControls).join("\n")}\n`;
}
