import { lastGoodFile } from "../../api/embedded.ts";
import { readLastGood } from "../../api/last-good.ts";
import { jsonWithoutCredentials } from "../../base/plain-text.ts";
import { type KeptKind, readKeptOptions, withKeptOptions } from "../../configuration/kept-options.ts";
import { loadSettings } from "../../configuration/settings-file.ts";
import { portHolder } from "../../lib/port-holder.ts";
import { messageOf } from "../../model/failure.ts";
import type { Settings } from "../../model/settings.ts";
import { sinkEntryOf } from "../../sinks/index.ts";
import { entryOf } from "../device/device.ts";
import { type CommandIo, EXIT, type ExitCode } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { formatTable } from "../table.ts";
import { type Flow, type Flows, flowsOf } from "./flow-list.ts";

/** `collector flows`: what a firewall has to let through, from the settings and the last good configuration on disk. */
export async function flows(
  { config, json = false }: { readonly config?: string; readonly json?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const settings = loadSettings(config).settings;
  const kept = await readLastGood(lastGoodFile(settings.state_dir));
  const { sources, sinks } = kept.type === "loaded" ? kept.configuration : { sources: [], sinks: [] };
  const [ofSources, ofSinks] = [optionsIn(settings, "source", sources), optionsIn(settings, "sink", sinks)];
  const { flows: list, unknown } = await flowsOf({
    settings: { ...settings, sources: ofSources.options, sinks: ofSinks.options },
    sources: ofSources.problem === undefined ? sources : [],
    sinks: ofSinks.problem === undefined ? sinks : [],
    driverOf: async (type) => (await entryOf(type)?.driver())?.default,
    sinkKindOf: async (type) => (await sinkEntryOf(type)?.kind())?.default,
  });
  const unreadOf = (records: readonly Named[], { problem }: ReturnType<typeof optionsIn>) =>
    problem === undefined ? [] : records.map(({ name, uuid }) => ({ what: name ?? uuid, why: problem }));
  const unread = [...unreadOf(sources, ofSources), ...unreadOf(sinks, ofSinks)];
  const found: Flows = { flows: list.map(withListener), unknown: [...unknown, ...unread] };
  if (json) writeJson(io, found, jsonWithoutCredentials);
  else writeLines(io, linesOf(found));
  if (kept.type !== "loaded") io.stderr.write(`${kept.message}; data sources and sinks are not in the list\n`);
  return found.unknown.length === 0 ? EXIT.good : EXIT.ownFailure;
}

/** With the process that listens at this moment on a port that the configuration takes connections at. */
const withListener = (flow: Flow): Flow =>
  flow.direction === "in" && flow.transport === "tcp" ? { ...flow, listening: portHolder(flow.port) ?? null } : flow;

type Named = { readonly uuid: string; readonly name: string | null };

/** The local options as the service has them, those that verbs keep among them; or why they are not known. */
function optionsIn(
  { state_dir: stateDir, ...settings }: Settings,
  kind: KeptKind,
  records: readonly Named[],
): { readonly options: Settings["sinks"]; readonly problem?: string } {
  const options = settings[`${kind}s`];
  try {
    return { options: withKeptOptions(options, readKeptOptions(stateDir, kind), records) };
  } catch (error) {
    return { options, problem: `the options of data ${kind}s on this machine cannot be read: ${messageOf(error)}` };
  }
}

/** The table, and what is not in it. Pure. */
export const linesOf = ({ flows: list, unknown }: Flows): readonly string[] => [
  ...formatTable([["DIRECTION", "WHAT", "TYPE", "HOST", "PORT", "TRANSPORT", "ENCRYPTION", "LISTENS NOW"], ...list.map(rowOf)]),
  ...list.filter(({ listening }) => listening === null).map(({ what, port }) => `${what}: nothing listens on port ${port} now`),
  ...unknown.map(({ what, why }) => `${what}: not known: ${why}`),
];

const rowOf = ({ direction, what, type, host, port, transport, encryption, listening }: Flow): readonly string[] => [
  direction,
  what,
  type,
  host,
  String(port),
  transport,
  encryption,
  listening ?? (listening === null ? "nothing" : ""),
];
