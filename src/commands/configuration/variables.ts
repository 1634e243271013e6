import type * as z from "zod";
import { toJson } from "../../base/json.ts";
import { plain } from "../../base/plain-text.ts";
import { parseNumber } from "../../configuration/variable-file.ts";
import type { DataSource } from "../../model/resources.ts";
import { VARIABLE_STATUSES, type Variable, variableInputSchema, variableSchema } from "../../model/variable.ts";
import { answer, answerList } from "../answer.ts";
import { type AddressCheck, addressCheck } from "../device/addresses.ts";
import { splitType } from "../device/read-input.ts";
import { exportOut, writeCsv } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { type ApiConnection, type ApiOptions, create, isNotOffered, namedOf, withApi } from "./api-connection.ts";
import { issueWords } from "./fields.ts";
import { shadowingFile } from "./shadowing-file.ts";
import { sourcesOf } from "./source.ts";
import { variablesCsv } from "./variables-csv.ts";
import { complainOf, knownSources, type LocalVariables, localVariables, localVariablesOf } from "./variables-local.ts";

export interface VariableFields extends ApiOptions {
  readonly type?: string;
  readonly unit?: string;
  readonly factor?: string;
  readonly offset?: string;
  readonly comment?: string;
  readonly status?: string;
  readonly address?: string;
  /** A new name. */
  readonly name?: string;
}

const PATH = "/ext/v1/variables";

export interface Named {
  readonly uuid: string;
  readonly name: string;
}

export const named = ({ uuid, name }: Named): Named => ({ uuid, name });

/** Prints what was done to one variable of a source. */
function one(
  action: "created" | "changed",
  variable: Named,
  source: Named,
  notes: readonly (string | undefined)[],
  options: ApiOptions,
  io: CommandIo,
): void {
  const warnings = notes.filter((note) => note !== undefined);
  answer(io, options, { action, ...variable, source: named(source), warnings }, plain`${source.name}/${variable.name}: ${action}\n`);
  if (!options.json) for (const warning of warnings) complain(io, warning);
}

/** Throws UsageError. */
function refuseBad(variable: Pick<Variable, "address" | "type">, { problemOf }: AddressCheck): void {
  const problem = problemOf(variable);
  if (problem !== undefined) throw new UsageError(problem);
}

/** A data source with its variables of the API, and what of this machine wins over them. */
export async function sourceVariables(api: ApiConnection, sourceName: string, { config }: ApiOptions) {
  const sources = await sourcesOf(api);
  const source = namedOf(sources, sourceName, "data source");
  const variables = await api.list(PATH, variableSchema, { data_source: source.uuid });
  return { source, sources, variables, file: await shadowingFile(config, { source, sources, fromApi: variables.length }) };
}

export interface ShownOptions extends ApiOptions {
  /** Those of the variable file on this machine. */
  readonly local?: boolean;
}

/**
 * The variables to show: the API's, and those that are in use where a file on this machine wins over them; the file's alone where that is
 * asked for, or where the API has none to offer.
 */
async function shown(api: ApiConnection, sourceName: string, options: ShownOptions, io: CommandIo) {
  const ofFile = (source: DataSource, { variables, problems }: LocalVariables) => ({
    source,
    variables,
    inUse: variables,
    code: complainOf({ problems }, io),
  });
  if (options.local) {
    const all = await knownSources(api, io);
    const source = namedOf(all, sourceName, "data source");
    return ofFile(source, await localVariablesOf(source, all, options));
  }
  try {
    const { source, variables, file } = await sourceVariables(api, sourceName, options);
    if (file) complain(io, file.note);
    return { source, variables, inUse: file?.variables ?? variables, code: EXIT.good };
  } catch (error) {
    if (!isNotOffered(error)) throw error;
    const all = await sourcesOf(api);
    const source = namedOf(all, sourceName, "data source");
    const local = (await localVariables(all, options)).bySource.get(source.uuid);
    if (!local) throw error;
    complain(io, plain`the API does not offer variables; these are of ${local.file}`);
    return ofFile(source, local);
  }
}

/** `collector variables list SOURCE`. */
export function variablesList(sourceName: string, options: ShownOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const { source, inUse, code } = await shown(api, sourceName, options, io);
    answerList(io, options, inUse, plain`${source.name} has no variables. To load some, see collector variables import --help.\n`, {
      NAME: ({ name }) => name,
      ADDRESS: ({ address }) => address,
      TYPE: ({ type }) => type ?? "-",
      UNIT: ({ unit }) => unit ?? "-",
      SCALING: ({ scaling }) => (scaling ? `× ${scaling.factor} + ${scaling.offset}` : "-"),
      STATUS: ({ status }) => status,
      COMMENT: ({ comment }) => comment ?? "",
    });
    return code;
  });
}

/** `collector variables add SOURCE NAME ADDRESS[:TYPE]`. */
export function variablesAdd(sourceName: string, name: string, word: string, options: VariableFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const { source, file } = await sourceVariables(api, sourceName, options);
    const fields = fieldsOf({ ...options, address: word });
    const input = checkedVariable(variableInputSchema, { ...fields, name });
    const check = await addressCheck(source, api.settings);
    refuseBad(input, check);
    const uuid = await create(api, PATH, { data_source: source.uuid, ...input });
    one("created", { uuid, name }, source, [check.note, file?.note], options, io);
  });
}

/** `collector variables set SOURCE NAME`. */
export function variablesSet(sourceName: string, name: string, options: VariableFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const { source, variables, file } = await sourceVariables(api, sourceName, options);
    const variable = namedOf(variables, name, "variable");
    const { scaling, ...given } = fieldsOf(options);
    const patch = {
      ...given,
      ...(scaling !== undefined && { scaling: { factor: 1, offset: 0, ...variable.scaling, ...scaling } }),
      ...(options.name !== undefined && { name: options.name }),
    };
    if (Object.keys(patch).length === 0) throw new UsageError("nothing is given to set; collector variables set --help names the options");
    const concerned = given.address !== undefined || given.type !== undefined;
    const check = concerned ? await addressCheck(source, api.settings) : undefined;
    if (check) refuseBad({ ...variable, ...given }, check);
    await api.send("PATCH", `${PATH}/${variable.uuid}`, patch);
    one("changed", { uuid: variable.uuid, name: options.name ?? variable.name }, source, [check?.note, file?.note], options, io);
  });
}

/** `collector variables rm SOURCE NAME…`. */
export function variablesRemove(sourceName: string, names: readonly string[], options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const { source, variables, file } = await sourceVariables(api, sourceName, options);
    const warnings = file ? [file.note] : [];
    const meant = names.map((name) => namedOf(variables, name, "variable"));
    const deleted: Named[] = [];
    try {
      for (const { uuid, name } of meant) {
        await api.send("DELETE", `${PATH}/${uuid}`);
        deleted.push({ uuid, name });
        if (!options.json) io.stdout.write(plain`${source.name}/${name}: deleted\n`);
      }
    } finally {
      // Also what was deleted before the API was gone.
      if (options.json) io.stdout.write(`${toJson({ action: "deleted", source: named(source), variables: deleted, warnings })}\n`);
      else for (const warning of warnings) complain(io, warning);
    }
  });
}

/** `collector variables export SOURCE [FILE]`: what import takes. */
export function variablesExport(sourceName: string, file: string | undefined, options: ShownOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const { variables, code } = await shown(api, sourceName, options, io);
    exportOut(io, file, options, variablesCsv(variables), { variables }, writeCsv);
    return code;
  });
}

/** The fields that options give; an empty text takes one away. Throws UsageError. */
function fieldsOf({ address: word, type, unit, comment, status, factor, offset }: VariableFields) {
  const split = word === undefined ? undefined : splitType(word);
  // The type is written as it was typed: what follows the address is all of it.
  const typed = word !== undefined && split?.type ? word.slice(split.address.length + 1) : undefined;
  const upper = status?.toUpperCase();
  const known = VARIABLE_STATUSES.find((one) => one === upper);
  if (status !== undefined && !known) throw new UsageError(`--status ${status}: expected one of ${VARIABLE_STATUSES.join(", ")}`);
  const scaling = {
    ...(factor !== undefined && { factor: numberOf("--factor", factor) }),
    ...(offset !== undefined && { offset: numberOf("--offset", offset) }),
  };
  const text = (value: string): string | null => (value === "" ? null : value);
  return {
    ...(split && { address: split.address }),
    ...((type ?? typed) !== undefined && { type: text(type ?? typed ?? "") }),
    ...(unit !== undefined && { unit: text(unit) }),
    ...(comment !== undefined && { comment: text(comment) }),
    ...(known && { status: known }),
    ...(Object.keys(scaling).length > 0 && { scaling }),
  };
}

function numberOf(option: string, text: string): number {
  const value = parseNumber(text);
  if (value === undefined) throw new UsageError(`${option} ${text}: expected a number such as 0.1 or 0,1`);
  return value;
}

function checkedVariable<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new UsageError(issueWords(result.error).join("\n"));
}
