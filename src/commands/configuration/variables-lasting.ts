import path from "node:path";
import type { RenumberedAddresses } from "../../../drivers/driver.ts";
import { countOf } from "../../base/number.ts";
import { plain } from "../../base/plain-text.ts";
import { keptOfSourcesFile, readKeptOfSources } from "../../configuration/kept-of-sources.ts";
import { messageOf } from "../../model/failure.ts";
import type { Kept } from "../../model/kept.ts";
import type { Variable } from "../../model/variable.ts";
import { answer } from "../answer.ts";
import { entryOf } from "../device/device.ts";
import { writeCsv } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { type ApiOptions, withApi } from "./api-connection.ts";
import { sourceVariables } from "./variables.ts";
import { sendPlan } from "./variables-batches.ts";
import { variablesCsv } from "./variables-csv.ts";

/** `collector variables nsu SOURCE [FILE]`: gives addresses that a server may renumber the form that stays. */
export function variablesLasting(sourceName: string, out: string | undefined, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const { source, variables, file } = await sourceVariables(api, sourceName, options);
    const renumbered = (await entryOf(source.type)?.driver())?.default.renumbered;
    if (!renumbered) throw new UsageError(plain`${source.name} is of type ${source.type}: its addresses are not renumbered`);
    if (source.details === null) throw new UsageError(plain`${source.name} has no details: which server its addresses mean is not known`);
    if (file && out === undefined)
      throw new UsageError(plain`${file.note}; collector variables nsu ${source.name} FILE writes what it should hold`);
    const inUse = file?.variables ?? variables;
    const { changed, problems } = rewritten(inUse, renumbered, keptOf(path.resolve(api.settings.state_dir), source.uuid), source.details);
    if (out === undefined) await sendPlan(api, source.uuid, { create: [], remove: [], same: 0, change: changed });
    else
      writeCsv(
        io,
        out,
        variablesCsv(inUse.map((variable) => ({ ...variable, ...changed.find(({ uuid }) => uuid === variable.uuid)?.fields }))),
      );
    for (const words of problems) complain(io, words);
    const counts = { changed: changed.length, same: inUse.length - changed.length - problems.length, problems: problems.length };
    if (out !== "-")
      answer(
        io,
        options,
        { source: { uuid: source.uuid, name: source.name }, ...counts },
        plain`${source.name}: ${countOf(counts.changed, "variable")} rewritten, ${counts.same} as before\n`,
      );
    return problems.length > 0 ? EXIT.variableBad : EXIT.good;
  });
}

/** Throws UsageError. */
function keptOf(stateDir: string, uuid: string): Kept["values"] {
  try {
    return readKeptOfSources(stateDir)[uuid] ?? {};
  } catch (error) {
    throw new UsageError(plain`${keptOfSourcesFile(stateDir)} cannot be read: ${messageOf(error)}; type the command with sudo`);
  }
}

interface Change {
  readonly uuid: string;
  readonly fields: { readonly address: string };
}

function rewritten(variables: readonly Variable[], { lasting }: RenumberedAddresses, kept: Kept["values"], details: unknown) {
  const changed: Change[] = [];
  const problems: string[] = [];
  for (const { uuid, name, address } of variables) {
    try {
      const now = lasting(address, kept, details);
      if (now !== undefined) changed.push({ uuid, fields: { address: now } });
    } catch (error) {
      problems.push(plain`${name}: ${messageOf(error)}`);
    }
  }
  return { changed, problems };
}
