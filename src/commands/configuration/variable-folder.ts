import { sleep } from "../../base/timer.ts";
import type { SourceName } from "../../configuration/match-files.ts";
import { type LoadedSettings, variablesDir } from "../../configuration/settings-file.ts";
import { type VariableFiles, VariableFolder } from "../../configuration/variable-files.ts";

/** The local variable files as they are now, for a verb that looks once: one that was saved a moment ago counts, if it is not still being written. */
export async function variableFiles(
  loaded: Pick<LoadedSettings, "settings" | "file">,
  sources: readonly SourceName[],
  signal?: AbortSignal,
): Promise<VariableFiles> {
  // For a clock that is at 1970 each file was written at another time than now, and is taken after the shorter wait.
  const folder = new VariableFolder(variablesDir(loaded), { monotonicMs: () => performance.now(), epochMs: () => 0 });
  await folder.watch();
  // Again, because a timer may fire a part of a millisecond before the clock that files are judged by.
  for (let waitMs = folder.startWaitMs(); waitMs > 0 && !signal?.aborted; waitMs = folder.startWaitMs()) await sleep(waitMs, signal);
  return folder.look(sources);
}
