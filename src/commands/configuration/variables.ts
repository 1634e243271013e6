import { extname } from "node:path";
import type * as z from "zod";
import { toJson } from "../../base/json.ts";
import { plain } from "../../base/plain-text.ts";
import { parseTagList } from "../../configuration/tag-list.ts";
import { MAX_ROWS, type ParsedVariables, parseNumber, parseVariableCsv, parseVariableYaml } from "../../configuration/variable-file.ts";
import type { DataSource } from "../../model/resources.ts";
import { VARIABLE_STATUSES, type Variable, type VariableInput, variableInputSchema, variableSchema } from "../../model/variable.ts";
import { answer, answerList } from "../answer.ts";
import { type AddressCheck, addressCheck } from "../device/addresses.ts";
import { splitType } from "../device/read-input.ts";
import { exportOut, readIn, writeCsv } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { readStdin } from "../stdin.ts";
import { type ApiConnection, type ApiOptions, create, isNotOffered, namedOf, withApi } from "./api-connection.ts";
import { issueWords } from "./fields.ts";
import { placeIn } from "./import-report.ts";
import { shadowingFile } from "./shadowing-file.ts";
import { sourcesOf } from "./source.ts";
import { sendPlan } from "./variables-batches.ts";
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
const MAX_FILE_BYTES = 10 * 2 ** 20;

interface Named {
  readonly uuid: string;
  readonly name: string;
}

const named = ({ uuid, name }: Named): Named => ({ uuid, name });

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
  return { source, variables, file: await shadowingFile(config, { source, sources, fromApi: variables.length }) };
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

export interface ImportOptions extends ApiOptions {
  /** Delete what the file does not name. */
  readonly replace?: boolean;
}

/** `collector variables import SOURCE FILE`, from stdin where the file is `-`: creates and changes by name; a bad line is named and the rest is taken, but for a last line that is cut off, which refuses it all. */
export function variablesImport(sourceName: string, file: string, options: ImportOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const bytes = file === "-" ? await readStdin(io, MAX_FILE_BYTES, { what: "what comes on stdin" }) : readIn(file, MAX_FILE_BYTES);
    const { source, variables, file: shadowing } = await sourceVariables(api, sourceName, options);
    const { problemOf, note } = await addressCheck(source, api.settings);
    const isYaml = /^\.ya?ml$/i.test(extname(file));
    const foreign = isYaml ? undefined : parseTagList(bytes, problemOf);
    const read: ParsedVariables = foreign ?? (isYaml ? parseVariableYaml : parseVariableCsv)(bytes, problemOf);
    const parsed = read.cut ? { variables: [], problems: [{ ...read.cut, message: `${read.cut.message}; nothing was changed` }] } : read;
    const { problems } = parsed;
    const place = file === "-" ? "stdin" : file;
    if (!options.json) for (const { line, message } of problems) complain(io, `${placeIn(place, line)}: ${message}`);
    const nothing = parsed.variables.length === 0 && problems.length > 0;
    if (nothing && !options.json) return EXIT.usage;
    const plan = importPlan(parsed.variables, variables, options.replace === true && problems.length === 0);
    await sendPlan(api, source.uuid, plan);
    const { create, change, remove, same } = plan;
    const counts = { created: create.length, changed: change.length, deleted: remove.length, same };
    const warnings = [
      ...[note, shadowing?.note].filter((one) => one !== undefined),
      ...(options.replace === true && problems.length > 0 ? [NOTHING_DELETED] : []),
    ];
    const text = plain`${source.name}: ${counts.created} created, ${counts.changed} changed, ${counts.deleted} deleted, ${same} unchanged\n`;
    answer(io, options, { source: named(source), counts, problems, warnings }, text);
    if (!options.json) for (const warning of warnings) complain(io, warning);
    if (nothing) return EXIT.usage;
    return problems.length > 0 ? EXIT.variableBad : EXIT.good;
  });
}

const NOTHING_DELETED = "nothing was deleted, because some lines of the file are wrong; correct them and import again";

export interface ImportPlan {
  readonly create: readonly VariableInput[];
  readonly change: readonly { readonly uuid: string; readonly fields: Partial<Omit<VariableInput, "name">> }[];
  readonly remove: readonly Variable[];
  readonly same: number;
}

/** What brings the variables of a data source to those wanted, by name. At most MAX_ROWS of each, as a file has. Pure. */
export function importPlan(wanted: readonly VariableInput[], present: readonly Variable[], replace: boolean): ImportPlan {
  const byName = new Map(present.map((variable) => [variable.name, variable]));
  const create: VariableInput[] = [];
  const change: { uuid: string; fields: Omit<VariableInput, "name"> }[] = [];
  let same = 0;
  for (const input of wanted.slice(0, MAX_ROWS)) {
    const variable = byName.get(input.name);
    byName.delete(input.name);
    if (!variable) create.push(input);
    else {
      const { uuid, data_source: _, name: __, ...before } = variable;
      const { name: ___, ...fields } = input;
      if (toJson(sorted(before)) === toJson(sorted(fields))) same++;
      else change.push({ uuid, fields });
    }
  }
  return { create, change, remove: replace ? [...byName.values()] : [], same };
}

const sorted = (fields: object): object => Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));

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
