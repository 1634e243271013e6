import type { Discovered } from "../../../drivers/driver.ts";
import { countOf } from "../../base/number.ts";
import { escapeControls } from "../../base/plain-text.ts";
import { MAX_ROWS } from "../../configuration/variable-file.ts";
import type { ReasonError } from "../../model/reason.ts";
import { withApi } from "../configuration/api-connection.ts";
import { variablesCsv } from "../configuration/variables-csv.ts";
import { writeCsv } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson } from "../lines.ts";
import { configuredTarget, type Target, type TargetOptions, typedTarget } from "./browse-target.ts";
import { browseTable, filterOf, toVariables } from "./browse-words.ts";
import { contextOf, durationOf, endpointText, failureLines, failureObject, personLog, pkiOf, policyOf } from "./device.ts";
import { discoverAll, type How } from "./discover-all.ts";
import { TimeLimit } from "./time-limit.ts";

/** The command line's options, as typed. */
export interface BrowseOptions extends TargetOptions {
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly depth?: string;
  readonly filter?: string;
  readonly profile?: string;
  readonly timeout: string;
}

/** `collector browse`: what a device says it has. Throws UsageError. */
export async function browse(name: string, words: readonly string[], options: BrowseOptions, io: CommandIo): Promise<ExitCode> {
  const how = howOf(options);
  const policy = policyOf(options.config);
  if (!policy.policy.discovery)
    throw new UsageError(`policy.yaml does not let this machine ask devices what they have (discovery: false in ${policy.file})`);
  if (words.length > 0) return browseTarget(await typedTarget(name, words, options, policy, io), how, options, io);
  return withApi(options, io, async (api) => browseTarget(await configuredTarget(api, name, options, policy, io), how, options, io));
}

function howOf({ timeout, depth, filter, json, csv }: BrowseOptions): How {
  if (json && csv) throw new UsageError("--json and --csv do not go together");
  if (depth !== undefined && !/^[1-9]\d{0,2}$/.test(depth)) throw new UsageError(`--depth ${depth}: expected a whole number from 1 to 999`);
  if (filter === "") throw new UsageError("--filter: expected a part of a name, a path or an address");
  return {
    timeoutMs: durationOf("--timeout", timeout),
    depth: depth === undefined ? Number.POSITIVE_INFINITY : Number(depth),
    isMeant: filter === undefined ? () => true : filterOf(filter),
  };
}

/** Throws UsageError. */
function profileOf({ driver }: Target, name: string): NonNullable<How["ofProfile"]> {
  const names = driver.machineProfiles?.names ?? [];
  const profile = driver.machineProfiles?.of(name);
  if (profile) return profile;
  throw new UsageError(
    names.length === 0
      ? `--profile: ${driver.title} has no profiles of machines`
      : `--profile ${name}: expected one of ${names.join(", ")}`,
  );
}

async function browseTarget(target: Target, how: How, options: BrowseOptions, io: CommandIo): Promise<ExitCode> {
  const log = personLog(io);
  await target.driver.load?.(io.signal);
  const pki = await pkiOf(target.driver.type, options.config, log, io);
  const limit = new TimeLimit(how.timeoutMs, "browsing took too long");
  const signal = AbortSignal.any([io.signal, limit.signal]);
  const ctx = contextOf(target, { signal, log, permit: target.permit, pki });
  const ofProfile = options.profile === undefined ? undefined : profileOf(target, options.profile);
  const outcome = await discoverAll(target, { ...how, ...(ofProfile && { ofProfile }) }, options, ctx, io).finally(() => limit.end());
  const { found, count, readable, seen, isFull, failure } = outcome;
  if (io.signal.aborted && count === 0) return EXIT.interrupted;
  const isIncomplete = failure !== undefined && !io.signal.aborted;
  if (!options.json && !(options.csv && (isIncomplete || isFull))) print(found, options, io);
  io.stderr.write(`${countOf(readable, "variable")}${count < seen ? ` of ${countOf(seen, "node")}` : ` and ${count - readable} others`}\n`);
  if (io.signal.aborted) {
    complain(io, "stopped; this is what was found until then");
    return EXIT.good;
  }
  if (isFull) {
    const fate = options.csv ? "nothing was written" : "the list above ends there";
    complain(
      io,
      `the device has more than a list holds, and ${fate}: narrow it with --filter or --depth, or take --json, which keeps nothing`,
    );
    return EXIT.usage;
  }
  if (!failure) return EXIT.good;
  tellFailure(target, failure, options, count, io);
  return EXIT.sourceFailed;
}

function print(found: readonly Discovered[], { csv }: BrowseOptions, io: CommandIo): void {
  if (!csv) {
    if (found.length > 0) io.stdout.write(browseTable(found));
    return;
  }
  const variables = toVariables(found);
  if (variables.length > MAX_ROWS)
    complain(
      io,
      `${variables.length} variables; collector variables import takes ${MAX_ROWS} of one file: narrow it with --filter or --depth`,
    );
  writeCsv(io, undefined, variablesCsv(variables));
}

function tellFailure(target: Target, failure: ReasonError, { json, csv }: BrowseOptions, count: number, io: CommandIo): void {
  const endpoint = endpointText(target.driver, target.details, target.settings);
  if (json) {
    writeJson(io, failureObject(failure, endpoint));
    return;
  }
  const lines = [
    ...failureLines(failure, endpoint),
    ...(count === 0 ? [] : [csv ? "Nothing was written, because the list is incomplete." : "The list above is incomplete."]),
  ];
  io.stderr.write(`${lines.map(escapeControls).join("\n")}\n`);
}
