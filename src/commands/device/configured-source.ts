import path from "node:path";
import type { SourceSpec } from "../../agent/source-spec.ts";
import { lastGoodFile } from "../../api/embedded.ts";
import { readLastGood } from "../../api/last-good.ts";
import type { LoadedPolicy } from "../../configuration/policy-file.ts";
import { permitOf } from "../../lib/policy.ts";
import type { Permit } from "../../model/policy.ts";
import type { DataSink, DataSource } from "../../model/resources.ts";
import type { Settings } from "../../model/settings.ts";
import { type Variable, variableSchema } from "../../model/variable.ts";
import { type ApiConnection, ApiError, isNotOffered, namedOf, withApi } from "../configuration/api-connection.ts";
import { sinksOf } from "../configuration/sink.ts";
import { sourcesOf } from "../configuration/source.ts";
import { variableFiles } from "../configuration/variable-folder.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { knownNames } from "../known-names.ts";
import { specOfRecord, type TargetOptions } from "./browse-target.ts";

/** A data source as the service would read it. */
export interface ConfiguredSource {
  readonly spec: SourceSpec;
  readonly permit: Permit;
  readonly settings: Settings;
}

interface Found {
  readonly sources: readonly DataSource[];
  readonly settings: Settings;
  readonly api: ApiConnection | undefined;
  readonly variables: (source: string) => Promise<readonly Variable[]>;
  readonly sinks: () => Promise<readonly DataSink[]>;
}

/**
 * Runs a verb with a data source of the configuration: the API's, or where that does not answer the last good copy on disk, which it says;
 * with the variables of its local file, where it has one. `sinkWork`: the same for a data sink, where no data source has the name. Throws
 * UsageError.
 */
export async function withSource(
  name: string,
  options: TargetOptions & { readonly json?: boolean },
  { policy }: LoadedPolicy,
  io: CommandIo,
  work: (source: ConfiguredSource) => Promise<ExitCode>,
  sinkWork?: (sink: DataSink, found: { readonly settings: Settings; readonly api: ApiConnection | undefined }) => Promise<ExitCode>,
): Promise<ExitCode> {
  const isIt = (record: { readonly uuid: string; readonly name: string | null }): boolean =>
    record.uuid === name.toLowerCase() || record.name === name;
  const run = async (found: Found): Promise<ExitCode> => {
    const { sources, settings, api } = found;
    if (sinkWork && !sources.some(isIt)) {
      const sinks = await found.sinks();
      if (sinks.some(isIt)) return sinkWork(namedOf(sinks, name, "data sink"), found);
      const names = [...sources, ...sinks].flatMap((record) => record.name ?? []);
      throw new UsageError(`there is no data source or data sink ${name}${knownNames(name, names)}`);
    }
    const record = namedOf(sources, name, "data source");
    const variables = (await localVariables(record, settings, options.config)) ?? (await found.variables(record.uuid));
    const spec = await specOfRecord({ record, sources, variables, settings, api }, options, io);
    return work({ spec, permit: permitOf(policy, "sources"), settings });
  };
  return withApi(options, io, async (api) => {
    let sources: readonly DataSource[];
    try {
      sources = await sourcesOf(api);
    } catch (error) {
      const kept = isAway(error) && !io.signal.aborted ? await lastGood(api.settings) : undefined;
      if (!kept) throw error;
      complain(io, `the configuration API does not answer; this is the last good copy on disk, of ${kept.fetchedAt}`);
      const variables = async (source: string) => (kept.variables ?? []).filter(({ data_source }) => data_source === source);
      return run({ sources: kept.sources, settings: api.settings, api: undefined, variables, sinks: async () => kept.sinks });
    }
    return run({ sources, settings: api.settings, api, variables: (source) => variablesOf(api, source), sinks: () => sinksIn(api) });
  });
}

/** No answer, or one that says nothing of what was asked. */
const isAway = (error: unknown): boolean => error instanceof ApiError && (error.status === undefined || error.status >= 500);

async function lastGood({ state_dir }: Settings) {
  const kept = await readLastGood(lastGoodFile(path.resolve(state_dir)));
  return kept.type === "loaded" ? kept.configuration : undefined;
}

/** None where the API has no such list. */
const sinksIn = (api: ApiConnection): Promise<readonly DataSink[]> =>
  sinksOf(api).catch((error: unknown) => {
    if (error instanceof ApiError) return [];
    throw error;
  });

async function variablesOf(api: ApiConnection, source: string): Promise<readonly Variable[]> {
  try {
    return await api.list("/ext/v1/variables", variableSchema, { data_source: source });
  } catch (error) {
    if (isNotOffered(error)) return [];
    throw error;
  }
}

/** Of the source's file, which wins over the API; undefined: it has none. */
async function localVariables(
  record: DataSource,
  settings: Settings,
  config: string | undefined,
): Promise<readonly Variable[] | undefined> {
  const loaded = { settings, file: config === undefined ? undefined : path.resolve(config) };
  return (await variableFiles(loaded, [record])).bySource.get(record.uuid)?.variables;
}

/** Exit code where a source failed, else of its variables. */
export const worstOf = (failed: boolean, bad: boolean): ExitCode => {
  if (failed) return EXIT.sourceFailed;
  return bad ? EXIT.variableBad : EXIT.good;
};
