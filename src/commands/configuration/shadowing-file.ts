import { shadowWords } from "../../configuration/desired-sources.ts";
import type { SourceName } from "../../configuration/match-files.ts";
import type { Variable } from "../../model/variable.ts";
import { settingsOrUsage } from "../service/run.ts";
import { variableFiles } from "./variable-folder.ts";

/** A local file with variables of a data source, which wins over those of the API. */
export interface ShadowingFile {
  readonly variables: readonly Variable[];
  /** What it means for the variables of the API. */
  readonly note: string;
}

/**
 * The file of this machine that a data source's variables come from; undefined: they come from the API, which has `fromApi` of them.
 * `sources` are all that there are, because a name may fit several. Throws UsageError where the settings cannot be used.
 */
export async function shadowingFile(
  config: string | undefined,
  { source, sources, fromApi }: { readonly source: SourceName; readonly sources: readonly SourceName[]; readonly fromApi: number },
): Promise<ShadowingFile | undefined> {
  const { bySource } = await variableFiles(
    settingsOrUsage(config),
    sources.filter(({ uuid, name }) => uuid === source.uuid || name === source.name),
  );
  const found = bySource.get(source.uuid);
  return found && { variables: found.variables, note: shadowWords(found, fromApi) };
}
