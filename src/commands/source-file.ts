import { isDeepStrictEqual } from "node:util";
import { parse, stringify } from "yaml";
import * as z from "zod";
import { messageOf } from "../model/failure.ts";
import { ApiError, type ApiOptions, namedOf, withApi } from "./api-connection.ts";
import { readIn, writeOut } from "./files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "./io.ts";
import { sinksOf } from "./sink.ts";
import { machineOf, machinesOf, sourcesOf } from "./source.ts";

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
    const entries = sources.map((source) => ({
      name: source.name,
      machine: machines.find(({ uuid }) => uuid === source.machine)?.name ?? source.machine,
      manufacturer: source.manufacturer,
      device_model: source.device_model,
      note: source.note,
      readout_interval: source.readout_interval,
      readout_limit: source.readout_limit,
      details: source.details,
    }));
    writeOut(io, file, stringify(entries));
    return EXIT.good;
  });
}

/** `collector sink export [FILE]`. */
export function sinkExport(file: string | undefined, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const entries = (await sinksOf(api)).map((sink) => ({ name: sink.name ?? sink.uuid, details: sink.details }));
    writeOut(io, file, stringify(entries));
    return EXIT.good;
  });
}

/** `collector source import FILE`: creates and changes by name; a bad entry is named and the rest is taken. */
export function sourceImport(file: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const entries = entriesOf(file, sourceEntry);
    const present = await sourcesOf(api);
    const collector = await api.collector();
    return importEach(entries, io, async ({ name, machine, readout_interval, readout_limit, ...entry }) => {
      const later = {
        ...(readout_interval !== undefined && { readout_interval }),
        ...(readout_limit !== undefined && { readout_limit }),
      };
      const uuid = await machineOf(api, machine ?? name);
      if (!present.some((source) => source.name === name)) {
        const created = await api.send("POST", "/v2/data-sources", {
          ...entry,
          name,
          collector,
          machine: uuid,
          details: creatable(entry.details, name, io),
        });
        const { uuid: made } = z.object({ uuid: z.string() }).parse(created);
        if (Object.keys(later).length > 0) await api.send("PATCH", `/v2/data-sources/${made}`, later);
        return "created";
      }
      const source = namedOf(present, name, "data source");
      const changed = changedOf(entry.details, source.details);
      await api.send("PATCH", `/v2/data-sources/${source.uuid}`, {
        ...entry,
        ...later,
        machine: uuid,
        ...(Object.keys(changed).length > 0 ? { details: changed } : { details: {} }),
      });
      return "changed";
    });
  });
}

/** `collector sink import FILE`. */
export function sinkImport(file: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const entries = entriesOf(file, sinkEntry);
    const present = await sinksOf(api);
    const collector = await api.collector();
    return importEach(entries, io, async ({ name, details: given }) => {
      if (!present.some((sink) => sink.name === name)) {
        await api.send("POST", "/v2/data-sinks", { name, collector, details: given });
        return "created";
      }
      const sink = namedOf(present, name, "data sink");
      await api.send("PATCH", `/v2/data-sinks/${sink.uuid}`, { details: changedOf(given, sink.details) });
      return "changed";
    });
  });
}

/** The entries of a YAML (or JSON) file. Throws UsageError, which names each bad entry. */
function entriesOf<T extends z.ZodType>(file: string, entry: T): z.output<T>[] {
  let value: unknown;
  try {
    value = parse(readIn(file, MAX_BYTES).toString("utf8"), { maxAliasCount: 100 });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} is not valid YAML: ${messageOf(error).split("\n")[0]}`);
  }
  const parsed = z.array(entry).safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: [index, ...path], message }) =>
    index === undefined ? "must be a list, as export writes it" : `entry ${Number(index) + 1}: ${path.join(".")}: ${message}`,
  );
  throw new UsageError(problems.map((problem) => `${file}: ${problem}`).join("\n"));
}

async function importEach<T extends { readonly name: string }>(
  entries: readonly T[],
  io: CommandIo,
  take: (entry: T) => Promise<"created" | "changed">,
): Promise<ExitCode> {
  let failed = 0;
  for (const entry of entries)
    try {
      io.stdout.write(`${entry.name}: ${await take(entry)}\n`);
    } catch (error) {
      // What one entry has wrong is no reason to leave the others; an API that does not answer is.
      if (!(error instanceof UsageError) && !(error instanceof ApiError && error.status !== undefined && error.status < 500)) throw error;
      failed++;
      complain(io, `${entry.name}: ${error.message}`);
    }
  return failed > 0 ? EXIT.variableBad : EXIT.good;
}

type Fields = Readonly<Record<string, unknown>>;

/** What only a read shows is left out of a creation (API-V2, 2.4), and said where something is lost by it. */
function creatable(given: Fields, name: string, io: CommandIo): Fields {
  const { protocol_override: _, password, ...rest } = given;
  if (isConfigured(password)) {
    complain(io, `${name}: its password is not in the file; set it with collector source set ${name} --password-file FILE`);
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
