import { shadowWords } from "../../configuration/desired-sources.ts";
import { variablesDir } from "../../configuration/settings-file.ts";
import { type SourceName, VariableFolder } from "../../configuration/variable-files.ts";
import type { Variable } from "../../model/variable.ts";
import { settingsOrUsage } from "../service/run.ts";

/** A local file with variables of a data source, which wins over those of the API. */
export interface ShadowingFile {
  readonly variables: readonly Variable[];
  /** What it means for the variables of the API. */
  readonly note: string;
}

/** Between two looks at the folder nothing changes: a file that is there counts as still. */
const LONG_MS = 10_000;

/**
 * The file of this machine that a data source's variables come from; undefined: they come from the API, which has `fromApi` of them.
 * `sources` are all that there are, because a name may fit several. Throws UsageError where the settings cannot be used.
 */
export async function shadowingFile(
  config: string | undefined,
  { source, sources, fromApi }: { readonly source: SourceName; readonly sources: readonly SourceName[]; readonly fromApi: number },
): Promise<ShadowingFile | undefined> {
  let nowMs = 0;
  const clock = { monotonicMs: () => (nowMs += LONG_MS), epochMs: () => Date.now() };
  const folder = new VariableFolder(variablesDir(settingsOrUsage(config)), clock);
  await folder.watch();
  const { bySource } = await folder.look(sources.filter(({ uuid, name }) => uuid === source.uuid || name === source.name));
  const found = bySource.get(source.uuid);
  return found && { variables: found.variables, note: shadowWords(found, fromApi) };
}
