import type { SourceInput } from "../agent/source-spec.ts";
import type { DataSource } from "../model/resources.ts";
import type { Settings } from "../model/settings.ts";
import { createBreather } from "../model/timer.ts";
import type { Variable } from "../model/variable.ts";
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
 * (by uuid, else by name) and its secrets (a local one wins). Pure but for `readSecret`; goes by slices.
 */
export async function wantedSources(
  { sources, variables, secrets }: SourceConfiguration,
  files: VariableFiles,
  settings: Pick<Settings, "sources" | "readout_interval_unit">,
  readSecret: ReadSecret,
): Promise<readonly SourceInput[]> {
  const breathe = createBreather();
  const fromApi = new Map<string, Variable[]>();
  for (const variable of variables ?? []) {
    const there = fromApi.get(variable.data_source);
    if (there) there.push(variable);
    else fromApi.set(variable.data_source, [variable]);
    await breathe();
  }
  const optionsOf = localOptionsIn(settings.sources);
  const problems = Map.groupBy(files.problems, (problem) => problem.source);
  const wanted: SourceInput[] = [];
  for (const record of sources) {
    const local = optionsOf(record);
    const file = files.bySource.get(record.uuid);
    const password = typeof local["password_file"] === "string" ? readSecret(local["password_file"]) : undefined;
    wanted.push({
      record,
      variables: file?.variables ?? fromApi.get(record.uuid) ?? [],
      warnings: (problems.get(record.uuid) ?? []).map(
        ({ file: at, line, message }) => `${at}${line === undefined ? "" : `:${line}`}: ${message}`,
      ),
      local,
      secrets: { ...secrets[record.uuid], ...(password && "secret" in password && { password: password.secret }) },
      missingSecret: password && "problem" in password ? password.problem : undefined,
      readoutIntervalUnit: settings.readout_interval_unit,
    });
    await breathe();
  }
  return wanted;
}

type LocalOptions = Readonly<Record<string, unknown>>;
type Named = { readonly uuid: string; readonly name: string | null };

/** Gives the entry of a settings map that is meant for a record: by uuid, else by name. */
export function localOptionsIn(entries: Readonly<Record<string, LocalOptions>>): (record: Named) => LocalOptions {
  const byUuid = new Map<string, LocalOptions>();
  for (const [key, options] of Object.entries(entries)) {
    const uuid = key.toLowerCase();
    if (!byUuid.has(uuid)) byUuid.set(uuid, options);
  }
  return ({ uuid, name }) => byUuid.get(uuid) ?? (name !== null && Object.hasOwn(entries, name) ? (entries[name] ?? {}) : {});
}

/** As localOptionsIn, for one record. */
export const localOptions = (entries: Readonly<Record<string, LocalOptions>>, record: Named): LocalOptions =>
  localOptionsIn(entries)(record);
