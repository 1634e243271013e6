import { existsSync } from "node:fs";
import { loadPolicy, policyFile } from "../../configuration/policy-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import type { Policy } from "../../model/policy.ts";
import { dataSinkSchema, dataSourceSchema } from "../../model/resources.ts";
import { closedHosts, foundHosts, hostsOf, openingLines } from "../closed-hosts.ts";
import type { CommandIo } from "../io.ts";
import { type ApiConnection, ApiError, type ApiOptions } from "./api-connection.ts";

/** The policy's word on an entry that was just added or changed. */
export interface PolicyNote {
  readonly text: string;
  readonly object: object;
}

/** A name that takes longer is judged when it is connected to. */
const NAME_MS = 1000;

const NOTHING: PolicyNote = { text: "", object: {} };

/**
 * Says that policy.yaml closes the host of an entry, with the lines that open all that is configured and closed. Nothing where it is open, or where
 * the collector, and with it its policy, is on another machine.
 */
export async function policyNote(api: ApiConnection, uuid: string, { config }: ApiOptions, io: CommandIo): Promise<PolicyNote> {
  if (!existsSync(api.settings.state_dir)) return NOTHING;
  try {
    const { policy } = loadPolicy(policyFile(config));
    const query = { collector: await api.collector() };
    const sources = await api.list("/v2/data-sources", dataSourceSchema, query);
    const sinks = await api.list("/v2/data-sinks", dataSinkSchema, query);
    const own = hostsOf(
      sources.filter((one) => one.uuid === uuid),
      sinks.filter((one) => one.uuid === uuid),
      api.settings,
    );
    const closed = closedHosts(policy, await foundHosts(own, NAME_MS, io.signal));
    if (closed.length === 0) return NOTHING;
    const all = await foundHosts(hostsOf(sources, sinks, api.settings), NAME_MS, io.signal);
    return noteOf(
      policy,
      closed[0]?.why ?? "",
      closedHosts(policy, all).map(({ who }) => who),
      openingLines(policy, all),
    );
  } catch (error) {
    // The entry is stored: `collector check` says the same, and why a file cannot be used.
    if (error instanceof ApiError || error instanceof SettingsError) return NOTHING;
    throw error;
  }
}

function noteOf({ file = "policy.yaml" }: Policy, why: string, names: readonly string[], lines: readonly string[]): PolicyNote {
  if (lines.length === 0) return { text: `Note: ${why}\n`, object: { policy: { why, lines } } };
  const what = [...new Set(names)].join(", ");
  return {
    text: `Note: ${why}\nTo open ${what}, ${file} says:\n\n${lines.map((line) => `${line}\n`).join("")}`,
    object: { policy: { why, file, opens: [...new Set(names)], lines } },
  };
}
