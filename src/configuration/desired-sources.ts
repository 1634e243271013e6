import type { SourceInput } from "../agent/source-spec.ts";
import { LargeList } from "../base/large-list.ts";
import { shellWord } from "../base/shell-word.ts";
import { createYielder } from "../base/timer.ts";
import { userLeftOutWords } from "../model/endpoint-url.ts";
import type { DataSource } from "../model/resources.ts";
import type { Settings } from "../model/settings.ts";
import type { Variable } from "../model/variable.ts";
import { warning } from "../model/warning.ts";
import { withDetailsType } from "./details-type.ts";
import { localOptionsIn } from "./local-options.ts";
import { fileSecretOf, type SecretFiles } from "./secret-files.ts";
import type { VariableFiles } from "./variable-files.ts";

/** What the configuration says of data sources; variables null: the API has none to offer. */
export interface SourceConfiguration {
  readonly sources: readonly DataSource[];
  readonly variables: readonly Variable[] | null;
  /** By data source uuid, then by field name. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * What is to run: each data source with its variables (a local file wins over the API), its place in the settings file
 * (by uuid, else by name) and its secrets (a local one wins). Pure; goes by slices.
 */
export async function desiredSources(
  { sources, variables, secrets }: SourceConfiguration,
  files: VariableFiles,
  settings: Pick<Settings, "sources" | "readout_interval_unit">,
  secretFiles: SecretFiles,
): Promise<readonly SourceInput[]> {
  const yieldToEventLoop = createYielder();
  const lists = new Map<string, LargeList<Variable>>();
  for (const variable of variables ?? []) {
    const there = lists.get(variable.data_source) ?? new LargeList();
    there.push(variable);
    lists.set(variable.data_source, there);
    await yieldToEventLoop();
  }
  const fromApi = new Map<string, readonly Variable[]>();
  for (const [source, list] of lists) {
    fromApi.set(source, list.whole());
    await yieldToEventLoop();
  }
  const optionsOf = localOptionsIn(settings.sources);
  const problems = Map.groupBy(files.problems, (problem) => problem.source);
  const desired: SourceInput[] = [];
  for (const listed of sources) {
    const { record, warnings } = withDetailsType(listed);
    const local = optionsOf(record);
    const file = files.bySource.get(record.uuid);
    const password = fileSecretOf(local, secretFiles);
    const shadowed =
      file && fromApi.has(record.uuid)
        ? [warning("variables_shadowed", `${shadowWords(file, fromApi.get(record.uuid)?.length ?? 0)}; ${looksInto(record.name)}`)]
        : [];
    desired.push({
      record,
      variables: file?.variables ?? fromApi.get(record.uuid) ?? [],
      warnings: [
        ...warnings,
        ...(record.user_left_out_of ? [warning("user_left_out", userLeftOutWords(record.user_left_out_of))] : []),
        ...(problems.get(record.uuid) ?? []).map(({ file: at, line, message }) =>
          warning("variable_file_wrong", `${at}${line === undefined ? "" : `:${line}`}: ${message}`),
        ),
        ...shadowed,
      ],
      local,
      secrets: { ...secrets[record.uuid], ...(password && "secret" in password && { password: password.secret }) },
      missingSecret: password && "problem" in password ? password.problem : undefined,
      readoutIntervalUnit: settings.readout_interval_unit,
    });
    await yieldToEventLoop();
  }
  return desired;
}

const looksInto = (source: string): string => `\`collector variables list ${shellWord(source, "SOURCE")} --local\` shows what is in it`;

/** A file that wins over variables of the API, in words. Pure. */
export const shadowWords = (file: { readonly file: string; readonly variables: readonly unknown[] }, fromApi: number): string =>
  `${file.file} wins over the API: its variables run (${file.variables.length}), those of the API do not (${fromApi}), until the file is removed`;
