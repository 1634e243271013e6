import type { DataSource } from "../model/resources.ts";
import type { Settings } from "../model/settings.ts";
import type { Variable } from "../model/variable.ts";
import type { SourceInput } from "./prepare.ts";
import type { VariableFiles } from "./variable-files.ts";

/** What the configuration says of data sources; variables null: the API has none to offer. */
export interface SourceConfiguration {
  readonly sources: readonly DataSource[];
  readonly variables: readonly Variable[] | null;
  /** By data source uuid, then by field name. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A secret from a local file, or why it cannot be had. */
export type ReadSecret = (file: string) => { readonly secret: string } | { readonly problem: string };

/**
 * What is to run: each data source with its variables (a local file wins over the API), its place in the settings file
 * (by uuid, else by name) and its secrets (a local one wins). Pure but for `readSecret`.
 */
export function wantedSources(
  { sources, variables, secrets }: SourceConfiguration,
  files: VariableFiles,
  settings: Pick<Settings, "sources" | "readout_interval_unit">,
  readSecret: ReadSecret,
): readonly SourceInput[] {
  const fromApi = Map.groupBy(variables ?? [], (variable) => variable.data_source);
  const problems = Map.groupBy(files.problems, (problem) => problem.source);
  return sources.map((record): SourceInput => {
    const local = localOptions(settings.sources, record);
    const file = files.bySource.get(record.uuid);
    const password = typeof local["password_file"] === "string" ? readSecret(local["password_file"]) : undefined;
    return {
      record,
      variables: file?.variables ?? fromApi.get(record.uuid) ?? [],
      warnings: (problems.get(record.uuid) ?? []).map(
        ({ file: at, line, message }) => `${at}${line === undefined ? "" : `:${line}`}: ${message}`,
      ),
      local,
      secrets: { ...secrets[record.uuid], ...(password && "secret" in password && { password: password.secret }) },
      missingSecret: password && "problem" in password ? password.problem : undefined,
      readoutIntervalUnit: settings.readout_interval_unit,
    };
  });
}

/** The entry of a settings map that is meant for this record: by uuid, else by name. */
export function localOptions(
  entries: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  { uuid, name }: { readonly uuid: string; readonly name: string | null },
): Readonly<Record<string, unknown>> {
  const byUuid = Object.entries(entries).find(([key]) => key.toLowerCase() === uuid)?.[1];
  if (byUuid) return byUuid;
  return name !== null && Object.hasOwn(entries, name) ? (entries[name] ?? {}) : {};
}
