import { isDeepStrictEqual } from "node:util";
import { isNode, isSeq, LineCounter, parseDocument } from "yaml";
import * as z from "zod";
import { messageOf } from "../../model/failure.ts";
import { exportOut, readIn } from "../files.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { ApiError, type ApiOptions, create, namedOf, withApi } from "./api-connection.ts";
import { type ImportProblem, type ImportReport, importReport } from "./import-report.ts";
import { sinksOf } from "./sink.ts";
import { createSource, machineOf, machinesOf, sourcesOf } from "./source.ts";
import { lacksPassword } from "./source-password.ts";
import { safeYaml, sourceEntries } from "./source-yaml.ts";

const MAX_BYTES = 10 * 2 ** 20;

const details = z.looseObject({ type: z.string() });
const sourceEntry = z.strictObject({
  name: z.string().min(1),
  machine: z.string().min(1).optional(),
  manufacturer: z.string().nullable().default(null),
  device_model: z.string().nullable().default(null),
  note: z.string().nullable().default(null),
  readout_interval: z.int().optional(),
  readout_limit: z.int().nullable().optional(),
  details,
});
const sinkEntry = z.strictObject({ name: z.string().min(1), details });

/** `collector source export [FILE]`: what import takes; no variables and no secrets are in it. */
export function sourceExport(file: string | undefined, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const [sources, machines] = [await sourcesOf(api), await machinesOf(api)];
    const entries = sourceEntries(sources, machines);
    exportOut(io, file, options, safeYaml(entries), { data_sources: entries });
  });
}

/** `collector sink export [FILE]`. */
export function sinkExport(file: string | undefined, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const entries = (await sinksOf(api)).map((sink) => ({ name: sink.name ?? sink.uuid, details: sink.details }));
    exportOut(io, file, options, safeYaml(entries), { data_sinks: entries });
  });
}

/** `collector source import FILE`: creates and changes by name; a bad entry is named and the rest is taken. */
export function sourceImport(file: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const report = importReport(file, options, io);
    const read = entriesOf(file, sourceEntry);
    if ("problems" in read) return report.refuse(read.problems);
    const present = await sourcesOf(api);
    return importEach(read.entries, report, async ({ name, machine, readout_interval, readout_limit, ...entry }, line) => {
      const later = {
        ...(readout_interval !== undefined && { readout_interval }),
        ...(readout_limit !== undefined && { readout_limit }),
      };
      const uuid = await machineOf(api, machine ?? name);
      if (!present.some((source) => source.name === name)) {
        const details = creatable(entry.details, name, (message) => report.warn({ line, name, message }));
        return { action: "created", uuid: await createSource(api, later, { ...entry, name, machine: uuid, details }) };
      }
      const source = namedOf(present, name, "data source");
      const changed = changedOf(entry.details, source.details);
      const patch = { ...entry, ...later, machine: uuid, details: changed };
      await api.send("PATCH", `/v2/data-sources/${source.uuid}`, patch).catch((error: unknown) => {
        if (!lacksPassword(error)) throw error;
        throw new UsageError(`${error.message}; change it with collector source set ${name} key=value… --password-file FILE`);
      });
      return { action: "changed", uuid: source.uuid };
    });
  });
}

/** `collector sink import FILE`. */
export function sinkImport(file: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const report = importReport(file, options, io);
    const read = entriesOf(file, sinkEntry);
    if ("problems" in read) return report.refuse(read.problems);
    const present = await sinksOf(api);
    const collector = await api.collector();
    return importEach(read.entries, report, async ({ name, details: given }) => {
      if (!present.some((sink) => sink.name === name))
        return { action: "created", uuid: await create(api, "/v2/data-sinks", { name, collector, details: given }) };
      const sink = namedOf(present, name, "data sink");
      await api.send("PATCH", `/v2/data-sinks/${sink.uuid}`, { details: changedOf(given, sink.details) });
      return { action: "changed", uuid: sink.uuid };
    });
  });
}

interface Entry<T> {
  /** From 1. */
  readonly line: number;
  readonly value: T;
}

type Entries<T> = { readonly entries: readonly Entry<T>[] } | { readonly problems: readonly ImportProblem[] };

/** The entries of a YAML (or JSON) file: all of them, or what is wrong with each that is bad. Throws UsageError: it cannot be read. */
function entriesOf<T extends z.ZodType>(file: string, entry: T): Entries<z.output<T>> {
  const text = readIn(file, MAX_BYTES).toString("utf8");
  const lines = new LineCounter();
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  const document = parseDocument(text, { lineCounter: lines });
  const [fault] = document.errors;
  if (fault) return { problems: [{ line: lineAt(fault.pos[0]), message: `is not valid YAML: ${fault.message.split("\n")[0]}` }] };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    return { problems: [{ message: `is not valid YAML: ${messageOf(error).split("\n")[0]}` }] };
  }
  const items = isSeq(document.contents) ? document.contents.items : [];
  const lineOf = (index: number): number => {
    const item = items[index];
    return isNode(item) && item.range ? lineAt(item.range[0]) : 1;
  };
  const parsed = z.array(entry).safeParse(value);
  if (parsed.success) return { entries: parsed.data.map((one, index) => ({ line: lineOf(index), value: one })) };
  return {
    problems: parsed.error.issues.map(({ path: [index, ...path], message }) =>
      index === undefined
        ? { message: "must be a list, as export writes it" }
        : { line: lineOf(Number(index)), message: `entry ${Number(index) + 1}: ${path.join(".")}: ${message}` },
    ),
  };
}

async function importEach<T extends { readonly name: string }>(
  entries: readonly Entry<T>[],
  report: ImportReport,
  take: (entry: T, line: number) => Promise<{ readonly action: "created" | "changed"; readonly uuid: string }>,
): Promise<ExitCode> {
  let failed = 0;
  try {
    for (const { line, value } of entries)
      try {
        const { action, uuid } = await take(value, line);
        report.done({ action, uuid, name: value.name });
      } catch (error) {
        // A bad entry does not stop the others; an API that does not answer does.
        if (!(error instanceof UsageError) && !(error instanceof ApiError && error.status !== undefined && error.status < 500)) throw error;
        failed++;
        report.problem({ line, name: value.name, message: error.message });
      }
  } finally {
    // Also of what was done before the API was gone.
    report.end();
  }
  return failed > 0 ? EXIT.variableBad : EXIT.good;
}

type Fields = Readonly<Record<string, unknown>>;

/** Leaves out of a creation the fields that only a read shows (API-V2, 2.4), and warns where something is lost by it. */
function creatable(given: Fields, name: string, warn: (message: string) => void): Fields {
  const { protocol_override: _, password, ...rest } = given;
  if (isConfigured(password)) {
    warn(`its password is not in the file; set it with collector source set ${name} --password-file FILE`);
    return rest;
  }
  return password === undefined ? rest : { ...rest, password };
}

const isConfigured = (password: unknown): boolean =>
  typeof password === "object" && password !== null && "type" in password && password.type === "configured";

/** The fields that differ: one that is as it was need not be repeated, with a password that nobody can read. */
function changedOf(given: Fields, present: unknown): Fields {
  const before: Fields = typeof present === "object" && present !== null ? { ...present } : {};
  return Object.fromEntries(Object.entries(given).filter(([field, value]) => !isDeepStrictEqual(value, before[field])));
}
