import type { Settings } from "../model/settings.ts";
import { optionsOf } from "./kept-options.ts";

/** The options that this machine has for a data sink; none where they cannot be read. Never throws. */
export function optionsOfSink(
  { sinks, state_dir: stateDir }: Pick<Settings, "sinks" | "state_dir">,
  sink: { readonly uuid: string; readonly name: string | null },
): Readonly<Record<string, unknown>> {
  try {
    return optionsOf(sinks, stateDir, "sink", sink);
  } catch {
    return {};
  }
}

/** The options that this machine has for a data source; none where they cannot be read. Never throws. */
export function optionsOfSource(
  { sources, state_dir: stateDir }: Pick<Settings, "sources" | "state_dir">,
  source: { readonly uuid: string; readonly name: string | null },
): Readonly<Record<string, unknown>> {
  try {
    return optionsOf(sources, stateDir, "source", source);
  } catch {
    return {};
  }
}
