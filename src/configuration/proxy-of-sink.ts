import { type ProxyAddress, proxyIn } from "../model/proxy-address.ts";
import type { Settings } from "../model/settings.ts";
import { optionsOf } from "./kept-options.ts";

/** The proxy on the way to a data sink's server, by the options of this machine; undefined: none, or they cannot be read. Never throws. */
export function proxyOfSink(
  { sinks, state_dir: stateDir }: Pick<Settings, "sinks" | "state_dir">,
  sink: { readonly uuid: string; readonly name: string | null },
): ProxyAddress | undefined {
  try {
    return proxyIn(optionsOf(sinks, stateDir, "sink", sink));
  } catch {
    return undefined;
  }
}
