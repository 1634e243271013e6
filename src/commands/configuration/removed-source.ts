import path from "node:path";
import { makePrivateFolder, namesIn, remove, replaceFile } from "../../lib/files.ts";
import type { Settings } from "../../model/settings.ts";
import type { Variable } from "../../model/variable.ts";
import { asOwnerOf } from "../../os/owner.ts";
import { writableStateDir } from "../certificates/certificates.ts";
import type { CommandIo } from "../io.ts";
import { variablesCsv } from "./variables-csv.ts";

/** Files of removed data sources that are kept; of more the oldest go. */
const MAX_FILES = 100;

/** The place where a removed data source and its variables are, as `source import` and `variables import` take them; null: it had none. */
export interface KeptSource {
  readonly source: string;
  readonly variables: string | null;
}

/**
 * Keeps a data source that is about to be deleted: in the state folder of the service where this person may write there, else in one of the
 * person's own. `yaml`: what `source export` writes of it. No password is in it. Throws the file system's error.
 */
export async function keepRemoved(
  name: string,
  yaml: string,
  variables: readonly Variable[],
  settings: Settings,
  io: CommandIo,
): Promise<KeptSource> {
  const { stateDir } = writableStateDir(settings, io);
  return asOwnerOf(stateDir, async () => {
    const folder = path.join(stateDir, "removed-sources");
    makePrivateFolder(folder);
    const stamp = new Date().toISOString().replace(/[-:.]/g, "");
    // The time first, so that the oldest are known by their names.
    const file = (end: string): string => path.join(folder, `${stamp}-${encodeURIComponent(name).slice(0, 120)}${end}`);
    replaceFile(file(".yaml"), yaml);
    if (variables.length > 0) replaceFile(file(".csv"), variablesCsv(variables));
    for (const old of namesIn(folder).slice(0, -MAX_FILES)) remove(path.join(folder, old));
    return { source: file(".yaml"), variables: variables.length > 0 ? file(".csv") : null };
  });
}

/** A word as a shell takes it for one. Pure. */
export const shellWord = (word: string): string => (/^[\w./@%+-][\w./@%+=-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
