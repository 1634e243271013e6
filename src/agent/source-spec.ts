import type { z } from "zod";
import { type AnyDriver, type ConnectInput, type Endpoint, type Point, type Timeouts, typeOf } from "../../drivers/driver.ts";
import { formatDuration } from "../base/duration.ts";
import { LargeList } from "../base/large-list.ts";
import { countOf } from "../base/number.ts";
import { shellWord } from "../base/shell-word.ts";
import { createYielder, type YieldToEventLoop } from "../base/timer.ts";
import type { Condition } from "../model/condition.ts";
import { ownFault } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import type { Layout, LayoutVariable } from "../model/layout.ts";
import type { DataSource } from "../model/resources.ts";
import type { Scaling } from "../model/scaling.ts";
import { sourceSettingsSchema } from "../model/settings.ts";
import { type DataType, formatDataType, type Reading, TYPE_EXAMPLES } from "../model/value.ts";
import type { Variable } from "../model/variable.ts";
import { type Warning, warning } from "../model/warning.ts";
import { type ReportRules, ruleOf, rulesOf } from "./report-rules.ts";
import type { Problem } from "./status.ts";

/** All that a source's task is made from. */
export interface SourceInput {
  readonly record: DataSource;
  readonly variables: readonly Variable[];
  /** What was wrong with its variables' file or its place in the settings; shown in its status, and nothing that it runs by. */
  readonly warnings: readonly Warning[];
  /** `sources.<uuid or name>` of the settings file, with what verbs keep on this machine. */
  readonly local: Readonly<Record<string, unknown>>;
  /** Why it is not known what this machine keeps for it: it is not read then. */
  readonly optionsProblem?: string;
  readonly secrets: Readonly<Record<string, string>>;
  /** A secret that is configured and cannot be had: which, where, and what to do. */
  readonly missingSecret: string | undefined;
  /** A secret that is not here and may still come from the API, in words. */
  readonly awaitedSecret?: string | undefined;
  /** A secret of this machine that is not given to where the configuration has it now, in words. */
  readonly withheldSecret?: string | undefined;
  readonly readoutIntervalUnit: "seconds" | "milliseconds";
}

export interface SourceSpec {
  readonly uuid: string;
  readonly name: string;
  readonly type: string;
  readonly driver: AnyDriver;
  readonly connect: ConnectInput<unknown, unknown>;
  readonly endpoint: Endpoint;
  readonly keepsConnection: boolean;
  readonly maxConnections: number;
  readonly timeouts: Timeouts;
  /** For looking up addresses in one readout. */
  readonly prepareMs: number;
  /** How long a habit of the device is kept that is not seen any more. */
  readonly habitsMs: number;
  readonly intervalMs: number;
  /** Undefined: each value is reported. */
  readonly report: ReportRules | undefined;
  readonly layout: Layout;
  readonly points: readonly Point[];
  /** By place in the layout: variables that are never asked for, and why. */
  readonly refused: ReadonlyMap<number, Reading>;
  readonly scalings: ReadonlyMap<number, Scaling>;
  /** By place in the layout: variables whose raw value is a float32. */
  readonly float32s: ReadonlySet<number>;
  /** Places of the variables whose types come with their first values. */
  readonly auto: readonly number[];
  /** One that is a floating point number on the device; undefined: there is none. */
  readonly float: Point | undefined;
  readonly warnings: readonly Warning[];
}

/** The parts that the task uses, never what only describes it. */
export function usedOf(input: SourceInput): unknown {
  const { record, variables, local, optionsProblem, secrets, missingSecret, awaitedSecret, withheldSecret, readoutIntervalUnit } = input;
  const { name, type, machine, details, readout_interval, readout_limit } = record;
  // An interval of this machine wins: the API's and its unit are not used.
  const interval = local["interval"] === undefined ? { readout_interval, readoutIntervalUnit } : {};
  const kept = { local, optionsProblem, secrets, missingSecret, awaitedSecret, withheldSecret };
  return { name, type, machine, details, ...interval, readout_limit, variables, ...kept };
}

/** Variables that are looked at between two looks at the clock. */
const LOOKED_AT_ONCE = 500;

/** How many are not INACTIVE. Goes by slices. */
export async function configuredVariables(variables: readonly Variable[], yieldToEventLoop: YieldToEventLoop): Promise<number> {
  let configured = 0;
  for (const [i, { status }] of variables.entries()) {
    if (status !== "INACTIVE") configured++;
    if (i % LOOKED_AT_ONCE === 0) await yieldToEventLoop();
  }
  return configured;
}

/** Sorts a source's configuration into what can run and what cannot, and why. Pure; goes by slices. */
export async function specOf(
  input: SourceInput,
  driver: AnyDriver,
  yieldToEventLoop: YieldToEventLoop = createYielder(),
): Promise<{ readonly spec: SourceSpec } | { readonly problem: Problem }> {
  const { record } = input;
  if (record.details === null)
    return problem("details_missing", `data source ${record.name}: details is null; it needs the connection properties of ${record.type}`);
  const details = check(driver.details, record.details, "details");
  if ("problem" in details) return details;
  if (input.optionsProblem !== undefined) return problem("configuration_invalid", input.optionsProblem);
  if (input.missingSecret !== undefined) return problem("secret_missing", input.missingSecret);
  if (input.withheldSecret !== undefined) return problem("secret_withheld", input.withheldSecret);
  if (input.awaitedSecret !== undefined) return problem("secret_awaited", input.awaitedSecret);
  const shared = new Set(Object.keys(sourceSettingsSchema.shape));
  const part = (own: boolean) => Object.fromEntries(Object.entries(input.local).filter(([key]) => shared.has(key) === own));
  const where = `sources.${record.name}`;
  const settings = check(sourceSettingsSchema, part(true), where);
  if ("problem" in settings) return settings;
  const driverSettings = check(driver.settings, part(false), where);
  if ("problem" in driverSettings) return driverSettings;
  const unfit = driver.problemOf?.(details.data, driverSettings.data);
  if (unfit) return problem(unfit.condition, unfit.detail);
  const interval = intervalOf(record.readout_interval, input.readoutIntervalUnit, settings.data.interval);
  if ("problem" in interval) return interval;
  const { taken, beyond } = await limit(input.variables, record.readout_limit, yieldToEventLoop);
  const warnings = [
    ...(driver.warningsOf?.(details.data, driverSettings.data) ?? []),
    ...interval.warnings,
    ...timeoutWarnings(settings.data, interval.ms),
    ...(beyond.length > 0 ? [warning("readout_limit_exceeded", beyondLimit(record.readout_limit, beyond))] : []),
  ];
  const report = rulesOf(settings.data);
  let renumbered = 0;
  const pointList = new LargeList<Point>();
  const refused = new Map<number, Reading>();
  const scalings = new Map<number, Scaling>();
  const float32s = new Set<number>();
  const autoList = new LargeList<number>();
  let float: Point | undefined;
  const variableList = new LargeList<LayoutVariable>();
  for (const [index, variable] of taken.entries()) {
    const parsed = parse(variable, driver, driverSettings.data);
    if ("reading" in parsed) refused.set(index, parsed.reading);
    else {
      const deadband = report && deadbandOf(report, variable);
      const point = { index, address: parsed.address, type: parsed.type, ...(deadband !== undefined && { deadband }) };
      pointList.push(point);
      if (driver.renumbered?.has(parsed.address)) renumbered++;
      if (isFloat(parsed.type)) float ??= point;
      if (variable.scaling) scalings.set(index, variable.scaling);
      if (parsed.type.scalar === "float32") float32s.add(index);
    }
    const raw = "reading" in parsed ? typeOfRefused(driver, variable.type) : parsed.type;
    const type = variable.scaling ? scaledType(raw) : raw;
    if (type.scalar === "auto") autoList.push(index);
    variableList.push({
      uuid: variable.uuid,
      name: variable.name,
      address: variable.address,
      type,
      unit: variable.unit,
      comment: variable.comment,
      exploration: variable.status === "EXPLORATION",
    });
    await yieldToEventLoop();
  }
  const points = pointList.whole();
  await yieldToEventLoop();
  const variables = variableList.whole();
  await yieldToEventLoop();
  const auto = autoList.whole();
  const { name_timeout, connect_timeout, answer_timeout, prepare_timeout, forget_habits_after, max_connections } = settings.data;
  return {
    spec: {
      uuid: record.uuid,
      name: record.name,
      type: record.type,
      driver,
      connect: { details: details.data, settings: driverSettings.data, secrets: input.secrets },
      endpoint: driver.endpoint(details.data, driverSettings.data),
      keepsConnection: driver.keepsConnection(details.data, driverSettings.data),
      maxConnections: max_connections ?? driver.maxConnections,
      timeouts: { nameMs: name_timeout, connectMs: connect_timeout, answerMs: answer_timeout },
      prepareMs: prepare_timeout,
      habitsMs: forget_habits_after,
      intervalMs: interval.ms,
      report,
      layout: { source: { uuid: record.uuid, name: record.name, ...(record.machine !== null && { machine: record.machine }) }, variables },
      points,
      refused: refused.size > 0 ? refused : NO_READINGS,
      scalings: scalings.size > 0 ? scalings : NO_SCALINGS,
      float32s: float32s.size > 0 ? float32s : NO_INDEXES,
      auto,
      float,
      warnings: renumbered === 0 ? warnings : [...warnings, ...renumberedWords(driver, renumbered, record.name)],
    },
  };
}

/** The absolute deadband of a variable as the device has its value; undefined: each change is reported. Pure. */
function deadbandOf(rules: ReportRules, { name, scaling }: Pick<Variable, "name" | "scaling">): number | undefined {
  const { deadband = 0 } = ruleOf(rules, name) ?? {};
  const raw = scaling ? Math.abs(deadband / scaling.factor) : deadband;
  return raw > 0 && Number.isFinite(raw) ? raw : undefined;
}

const renumberedWords = ({ renumbered }: AnyDriver, count: number, name: string): readonly Warning[] =>
  renumbered ? [renumbered.warning(count, shellWord(name, "SOURCE"))] : [];

/** Most sources have none: an empty map takes as much memory as four readings. */
const NO_READINGS: ReadonlyMap<number, Reading> = new Map();
const NO_SCALINGS: ReadonlyMap<number, Scaling> = new Map();
const NO_INDEXES: ReadonlySet<number> = new Set();

const problem = (condition: Condition, detail: string): { readonly problem: Problem } => ({
  problem: { reason: { type: "UNKNOWN" }, condition, detail },
});

function check<T>(schema: z.ZodType<T>, value: unknown, where: string): { readonly data: T } | { readonly problem: Problem } {
  const result = schema.safeParse(value);
  if (result.success) return { data: result.data };
  return problem(
    "configuration_invalid",
    result.error.issues.map((issue) => `${[where, ...issue.path].join(".")}: ${issue.message}`).join("; "),
  );
}

/** A readout takes this long at least, whatever its interval, ms; its requests share it. */
export const SHORTEST_READOUT_MS = 10_000;

/** Time-outs that no readout of the interval has the time for: the readout is made longer, and one silence takes several intervals. Pure. */
function timeoutWarnings(
  { connect_timeout: connectMs, answer_timeout: answerMs }: { readonly connect_timeout: number; readonly answer_timeout: number },
  intervalMs: number,
): readonly Warning[] {
  const neededMs = connectMs + answerMs;
  const fitsMs = Math.max(intervalMs, SHORTEST_READOUT_MS);
  if (neededMs <= fitsMs) return [];
  const [connect, answer, needed, fits] = [connectMs, answerMs, neededMs, fitsMs].map(formatDuration);
  return [
    warning(
      "timeouts_exceed_readout",
      `connect_timeout (${connect}) and answer_timeout (${answer}) are longer than a readout at this interval has (${fits}): a readout without an answer takes up to ${needed}, in which other data sources on the device wait too; an interval of ${needed} would fit, or both together no more than ${fits}`,
    ),
  ];
}

/** A bare number of 1000 or more is usually meant in the other unit: said once, in words. */
const SUSPICIOUS_INTERVAL = 1000;

/** `readout_interval` where none is given, as that of a new data source (design/api-decisions). */
const DEFAULT_INTERVAL_MS = 10_000;

/** `value` null: none is given. */
function intervalOf(
  value: number | null,
  unit: "seconds" | "milliseconds",
  localMs: number | undefined,
): { readonly ms: number; readonly warnings: readonly Warning[] } | { readonly problem: Problem } {
  if (localMs !== undefined) return { ms: localMs, warnings: [] };
  if (value === null)
    return {
      ms: DEFAULT_INTERVAL_MS,
      warnings: [
        warning(
          "interval_missing",
          `readout_interval is not given: ${formatDuration(DEFAULT_INTERVAL_MS)} are used; set it in the configuration API`,
        ),
      ],
    };
  if (value <= 0) return problem("interval_invalid", `readout_interval is ${value}; it must be a whole number of ${unit} above zero`);
  const ms = unit === "seconds" ? value * 1000 : value;
  const said = unit === "seconds" && value >= SUSPICIOUS_INTERVAL;
  return {
    ms,
    warnings: said
      ? [
          warning(
            "interval_unit_doubtful",
            `readout_interval is ${value} s = ${formatDuration(ms)}; if milliseconds are meant, set readout_interval_unit: milliseconds`,
          ),
        ]
      : [],
  };
}

/** The interval that a source is configured with, also where it cannot run; ms, 0: none that can be used. Pure. */
export function configuredIntervalMs({ record, local, readoutIntervalUnit }: SourceInput): number {
  const own = sourceSettingsSchema.shape.interval.safeParse(local["interval"]);
  const found = intervalOf(record.readout_interval, readoutIntervalUnit, own.data);
  return "ms" in found ? found.ms : 0;
}

const isFloat = ({ scalar }: DataType): boolean => scalar === "float32" || scalar === "float64";

/** Those that are configured: ACTIVE before EXPLORATION where not all are taken, then in the order of the configuration (design/api-decisions). */
async function limit(
  variables: readonly Variable[],
  most: number | null,
  yieldToEventLoop: YieldToEventLoop,
): Promise<{ readonly taken: readonly Variable[]; readonly beyond: readonly Variable[] }> {
  const count = await configuredVariables(variables, yieldToEventLoop);
  const configured = count === variables.length ? variables : await those(variables, (status) => status !== "INACTIVE", yieldToEventLoop);
  if (most === null || count <= most) return { taken: configured, beyond: [] };
  const active = await those(configured, (status) => status === "ACTIVE", yieldToEventLoop);
  const explored = await those(configured, (status) => status !== "ACTIVE", yieldToEventLoop);
  const ranked = [...active, ...explored];
  return { taken: ranked.slice(0, Math.max(0, most)), beyond: ranked.slice(Math.max(0, most)) };
}

/** As filter; goes by slices. */
async function those(
  variables: readonly Variable[],
  isMeant: (status: Variable["status"]) => boolean,
  yieldToEventLoop: YieldToEventLoop,
): Promise<readonly Variable[]> {
  const found = new LargeList<Variable>();
  for (const [i, variable] of variables.entries()) {
    if (isMeant(variable.status)) found.push(variable);
    if (i % LOOKED_AT_ONCE === 0) await yieldToEventLoop();
  }
  return found.whole();
}

const beyondLimit = (most: number | null, beyond: readonly Variable[]): string =>
  `readout_limit is ${most}: ${countOf(beyond.length, "variable")} ${beyond.length === 1 ? "is" : "are"} not read: ${beyond
    .slice(0, 20)
    .map((v) => v.name)
    .join(", ")}${beyond.length > 20 ? ", …" : ""}`;

function parse(
  variable: Variable,
  driver: AnyDriver,
  settings: unknown,
): { readonly address: unknown; readonly type: DataType } | { readonly reading: Reading } {
  try {
    const parsed = driver.parseAddress(variable.address, wantedType(variable.type, driver), settings);
    if (variable.scaling && (parsed.type.scalar === "bool" || parsed.type.scalar === "string"))
      return {
        reading: {
          quality: "bad",
          fault: "type_mismatch",
          detail: `a ${formatDataType(parsed.type)} cannot be scaled; remove scaling or read a number`,
        },
      };
    return parsed;
  } catch (error) {
    const { fault, message } = error instanceof FaultError ? error : ownFault(error);
    return { reading: { quality: "bad", fault, detail: message } };
  }
}

/** In the layout, of a variable that is never asked for. */
function typeOfRefused(driver: AnyDriver, text: string | null): DataType {
  try {
    return typeOf(driver, text ?? "") ?? { scalar: "float64" };
  } catch {
    return { scalar: "float64" };
  }
}

/** Throws FaultError where the word is no type of this driver. */
function wantedType(text: string | null, driver: AnyDriver): DataType | undefined {
  if (text === null) return undefined;
  const type = typeOf(driver, text);
  if (!type) throw new FaultError("type_mismatch", `${JSON.stringify(text)} is not a type of ${driver.title}: expected ${TYPE_EXAMPLES}`);
  return type;
}

/** What a scaled value is, in the shape that it has on the device. */
const scaledType = ({ count, dimensions }: DataType): DataType => ({
  scalar: "float64",
  ...(count !== undefined && { count }),
  ...(dimensions && { dimensions }),
});
