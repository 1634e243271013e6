import path from "node:path";
import { lastGoodFile } from "../../api/embedded.ts";
import { readLastGood } from "../../api/last-good.ts";
import { countOf } from "../../base/number.ts";
import { plain } from "../../base/plain-text.ts";
import { variablesDir } from "../../configuration/settings-file.ts";
import type { VariableFiles } from "../../configuration/variable-files.ts";
import type { DataSource } from "../../model/resources.ts";
import type { Variable } from "../../model/variable.ts";
import { answer } from "../answer.ts";
import { addressCheck } from "../device/addresses.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { settingsOrUsage } from "../service/run.ts";
import { type ApiConnection, ApiError, type ApiOptions, namedOf, withApi } from "./api-connection.ts";
import { placeIn } from "./import-report.ts";
import { sourcesOf } from "./source.ts";
import { variableFiles } from "./variable-folder.ts";

/** The variable file of a data source on this machine, which wins over the API. */
export interface LocalVariables {
  readonly file: string;
  readonly variables: readonly Variable[];
  readonly problems: VariableFiles["problems"];
}

/** The files of these data sources, by uuid, and what is wrong with files of none of them. Throws UsageError. */
export async function localVariables(sources: readonly DataSource[], { config }: ApiOptions) {
  const files = await variableFiles(settingsOrUsage(config), sources);
  const bySource = new Map<string, LocalVariables>();
  for (const [uuid, { file, variables }] of files.bySource)
    bySource.set(uuid, { file, variables, problems: files.problems.filter(({ source }) => source === uuid) });
  return { bySource, others: files.problems.filter(({ source }) => source === undefined) };
}

/** The file of one data source of all that there are, because a name may fit several. Throws UsageError where it has none. */
export async function localVariablesOf(source: DataSource, all: readonly DataSource[], options: ApiOptions): Promise<LocalVariables> {
  const found = (await localVariables(all, options)).bySource.get(source.uuid);
  if (found) return found;
  const folder = variablesDir(settingsOrUsage(options.config));
  throw new UsageError(plain`${source.name} has no variable file: ${path.join(folder, source.uuid)}.csv, or by its name, would be it`);
}

/** The data sources of the API, or where that does not answer those of the last good configuration, which it says. Throws ApiError. */
export async function knownSources(api: ApiConnection, io: CommandIo): Promise<readonly DataSource[]> {
  try {
    return await sourcesOf(api);
  } catch (error) {
    const isAway = error instanceof ApiError && (error.status === undefined || error.status >= 500) && !io.signal.aborted;
    const kept = isAway ? await readLastGood(lastGoodFile(path.resolve(api.settings.state_dir))) : undefined;
    if (kept?.type !== "loaded") throw error;
    complain(io, plain`the configuration API does not answer; the data sources are those of ${kept.configuration.fetchedAt}`);
    return kept.configuration.sources;
  }
}

/** Names the lines of a file that are not used. */
export function complainOf({ problems }: Pick<LocalVariables, "problems">, io: CommandIo): ExitCode {
  for (const { file, line, message } of problems) complain(io, plain`${placeIn(file, line)}: ${message}`);
  return problems.length > 0 ? EXIT.variableBad : EXIT.good;
}

/** `collector variables check [SOURCE]`: reads the variable files of this machine as the service does, with every address. */
export function variablesCheck(sourceName: string | undefined, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const all = await knownSources(api, io);
    const meant = sourceName === undefined ? all : [namedOf(all, sourceName, "data source")];
    const [only] = meant;
    // A missing file is a mistake only where one data source is named.
    if (sourceName !== undefined && only) await localVariablesOf(only, all, options);
    const { bySource, others } = await localVariables(all, options);
    const checked = [];
    for (const source of meant) {
      const local = bySource.get(source.uuid);
      if (local) checked.push(await withAddresses(source, local, api));
    }
    const stray = sourceName === undefined ? others : [];
    const problems = [...checked.flatMap((one) => one.problems), ...stray];
    const json = checked.map(({ source, file, variables, problems: own, note }) => ({
      source: { uuid: source.uuid, name: source.name },
      file,
      variables: variables.length,
      problems: own.map(({ line, message }) => ({ line: line ?? null, message })),
      warnings: note === undefined ? [] : [note],
    }));
    const folder = variablesDir(settingsOrUsage(options.config));
    const lines = checked.map(
      ({ source, file, variables, problems: own }) =>
        plain`${source.name}: ${file}: ${countOf(variables.length, "variable")}, ${countOf(own.length, "problem")}\n`,
    );
    const text = lines.length === 0 ? plain`No data source has a variable file in ${folder}.\n` : lines.join("");
    answer(io, options, { folder, files: json, other_problems: stray.map(({ file, message }) => ({ file, message })) }, text);
    if (options.json) return problems.length > 0 ? EXIT.variableBad : EXIT.good;
    for (const { note } of checked) if (note !== undefined) complain(io, note);
    return complainOf({ problems }, io);
  });
}

async function withAddresses(source: DataSource, { file, variables, problems }: LocalVariables, api: ApiConnection) {
  const { problemOf, note } = await addressCheck(source, api.settings);
  const wrong = variables.flatMap((variable): LocalVariables["problems"] => {
    const message = problemOf(variable);
    return message === undefined ? [] : [{ file, source: source.uuid, message: `${variable.name}: ${message}` }];
  });
  return { source, file, variables, problems: [...problems, ...wrong], note };
}
