import { readLastGood } from "../../configuration/last-good.ts";
import { loadSettings } from "../../configuration/settings-file.ts";
import { toJson } from "../../model/json.ts";
import { jsonWithoutCredentials } from "../../model/plain-text.ts";
import { SINKS } from "../../sinks/index.ts";
import { lastGoodFile } from "../../threads/api/messages.ts";
import { entryOf } from "../device/device.ts";
import { type CommandIo, EXIT, type ExitCode } from "../io.ts";
import { writeLines } from "../lines.ts";
import { formatTable } from "../table.ts";
import { type Flow, type Flows, flowsOf } from "./flow-list.ts";

/** `collector flows`: what a firewall has to let through, from the settings and the last good configuration on disk. */
export async function flows(
  { config, json = false }: { readonly config?: string; readonly json?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const { settings } = loadSettings(config);
  const kept = await readLastGood(lastGoodFile(settings.state_dir));
  const { sources, sinks } = kept.type === "loaded" ? kept.configuration : { sources: [], sinks: [] };
  const found = await flowsOf({
    settings,
    sources,
    sinks,
    driverOf: async (type) => (await entryOf(type)?.driver())?.default,
    sinkKindOf: async (type) => (Object.hasOwn(SINKS, type) ? (await SINKS[type]?.kind())?.default : undefined),
  });
  if (json) io.stdout.write(`${toJson(found, jsonWithoutCredentials)}\n`);
  else writeLines(io, linesOf(found));
  if (kept.type !== "loaded") io.stderr.write(`${kept.message}; data sources and sinks are not in the list\n`);
  return found.unknown.length === 0 ? EXIT.good : EXIT.ownFailure;
}

/** The table, and what is not in it. Pure. */
export const linesOf = ({ flows: list, unknown }: Flows): readonly string[] => [
  ...formatTable([["DIRECTION", "WHAT", "TYPE", "HOST", "PORT", "TRANSPORT", "ENCRYPTION"], ...list.map(rowOf)]),
  ...unknown.map(({ what, why }) => `${what}: not known: ${why}`),
];

const rowOf = ({ direction, what, type, host, port, transport, encryption }: Flow): readonly string[] => [
  direction,
  what,
  type,
  host,
  String(port),
  transport,
  encryption,
];
