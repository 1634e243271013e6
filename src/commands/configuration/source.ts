import * as z from "zod";
import { formatDuration } from "../../base/duration.ts";
import { plain } from "../../base/plain-text.ts";
import { withDetailsType } from "../../configuration/details-type.ts";
import { detailsCreateSchema, toReadDetails } from "../../model/details.ts";
import { messageOf } from "../../model/failure.ts";
import { dataSourceSchema } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { type Variable, variableSchema } from "../../model/variable.ts";
import { answer, answerList } from "../answer.ts";
import { hostPort } from "../device/values.ts";
import { type CommandIo, complain, type ExitCode, UsageError } from "../io.ts";
import { type ApiConnection, type ApiOptions, create, isNotOffered, namedOf, withApi } from "./api-connection.ts";
import { followRename, forgetSecrets } from "./entry-secrets.ts";
import {
  createWithKept,
  forgetOptions,
  type KeptPart,
  keepOptions,
  keptOptionsIn,
  keptOptionsOf,
  keptText,
  optionWords,
} from "./kept-here.ts";
import { policyNote } from "./policy-note.ts";
import { type KeptSource, keepRemoved, shellWord } from "./removed-source.ts";
import { sourceDetails, sourceDetailsPatch, unsaidWords } from "./source-details.ts";
import { type SourceTexts, sourceValues } from "./source-fields.ts";
import { nextSourceOptions, type SourceWords, sourceWords } from "./source-options.ts";
import { askBoundPassword, lacksPassword, type PasswordOptions, sourcePassword } from "./source-password.ts";
import { sourceYaml } from "./source-yaml.ts";
import { detailsTypeOf, noDriverNote } from "./type-words.ts";

export interface SourceFields extends ApiOptions, PasswordOptions, SourceTexts {
  /** A new name. */
  readonly name?: string;
}

const PATH = "/v2/data-sources";
const machineSchema = z.object({ uuid: uuidSchema, name: z.string().nullable() });

/** The data sources of the collector, each with the type of its details. */
export async function sourcesOf(api: ApiConnection) {
  const sources = await api.list(PATH, dataSourceSchema, { collector: await api.collector() });
  return sources.map((source) => withDetailsType(source).record);
}

/** `collector source add NAME TYPE key=value…`. */
export function sourceAdd(
  name: string,
  typeText: string,
  given: readonly string[],
  options: SourceFields,
  io: CommandIo,
): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const type = detailsTypeOf(typeText);
    const { details: words, options: change } = await sourceWords(type, given, api.settings);
    if ((await sourcesOf(api)).some((source) => source.name === name))
      throw new UsageError(`there is a data source ${name} already; collector source set ${shellWord(name)} changes it`);
    const password = await sourcePassword(type, words, options, io);
    const details = sourceDetails(type, words, password);
    const { fields, later } = sourceValues(options, api.settings.readout_interval_unit);
    const kept = await nextSourceOptions(type, change, api.settings, { source: undefined, details: readDetails(details) });
    const record = {
      name,
      machine: await machineOf(api, options.machine ?? name),
      manufacturer: null,
      device_model: null,
      note: null,
      ...fields,
      details,
    };
    const uuid = await createWithKept(api.settings, "source", name, kept, () => createSource(api, later, record));
    const unsaid = unsaidWords(type, words, details);
    const filledIn = unsaid.length > 0 ? plain`Defaults: ${unsaid.join(" ")}\n` : "";
    const noDriver = noDriverNote(type);
    const notRead = noDriver === undefined ? "" : `Note: ${noDriver}\n`;
    const policy = await policyNote(api, uuid, options, io);
    answer(
      io,
      options,
      {
        action: "created",
        uuid,
        name,
        taken_as: unsaid,
        ...keptHere(kept),
        ...(noDriver !== undefined && { warnings: [noDriver] }),
        ...policy.object,
      },
      plain`${name}: created (${uuid})\n` + filledIn + keptText(api.settings, "source", { uuid, name }, kept) + notRead + policy.text,
    );
  });
}

/** Creates a data source, then sets the fields that its creation request lacks (API-V2, 2.4); returns its uuid. Throws ApiError. */
export async function createSource(api: ApiConnection, later: object, fields: object): Promise<string> {
  const uuid = await create(api, PATH, { ...fields, collector: await api.collector() });
  if (Object.keys(later).length > 0) await api.send("PATCH", `${PATH}/${uuid}`, later);
  return uuid;
}

const NO_WORDS: SourceWords = { details: [], options: { given: {}, removed: [] } };
const NONE_KEPT: KeptPart = { options: {}, pems: [], isChanged: false };

const keptHere = ({ options, isChanged }: KeptPart): object => (isChanged ? { kept_here: optionWords(options) } : {});

/** The details as they will be read, for what the driver says of them. Pure. */
const readDetails = (details: object): object => toReadDetails(detailsCreateSchema.parse(details)).details;

/** `collector source set NAME key=value…`. */
export function sourceSet(name: string, given: readonly string[], options: SourceFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const source = namedOf(await sourcesOf(api), name, "data source");
    const type = given.length > 0 || options.passwordFile !== undefined || options.askPassword ? detailsTypeOf(source.type) : undefined;
    const { details: words, options: change } = type ? await sourceWords(type, given, api.settings) : NO_WORDS;
    const password = type && (await sourcePassword(type, words, options, io));
    const now = typeof source.details === "object" && source.details !== null ? { ...source.details } : {};
    const detailsWith = (given: string | undefined) => type && sourceDetailsPatch(type, words, given, now);
    const details = words.length > 0 || password !== undefined ? detailsWith(password) : undefined;
    const kept = type ? await nextSourceOptions(type, change, api.settings, { source, details: { ...now, ...details } }) : NONE_KEPT;
    const { machine } = options;
    const { fields, later } = sourceValues(options, api.settings.readout_interval_unit);
    const patch = {
      ...later,
      ...fields,
      ...(options.name !== undefined && { name: options.name }),
      ...(machine !== undefined && { machine: await machineOf(api, machine) }),
      ...(details && { details }),
    };
    const isSent = Object.keys(patch).length > 0;
    if (!isSent && !kept.isChanged) throw new UsageError("nothing to set; give key=value or an option");
    const path = `${PATH}/${source.uuid}`;
    const followed = await followRename(source, options.name, api, options, io);
    try {
      if (isSent) await api.send("PATCH", path, patch);
    } catch (error) {
      if (!lacksPassword(error) || password !== undefined) throw error;
      complain(io, error.message);
      await api.send("PATCH", path, { ...patch, details: detailsWith(await askBoundPassword(source.name, options, io)) });
    }
    await keepOptions(api.settings, "source", source, kept);
    const [{ uuid }, known] = [source, options.name ?? source.name];
    const text = plain`${known}: changed\n` + followed.text + keptText(api.settings, "source", { uuid, name: known }, kept);
    const policy = await policyNote(api, uuid, options, io);
    answer(io, options, { action: "changed", uuid, name: known, ...keptHere(kept), ...policy.object }, text + policy.text);
  });
}

/** `collector source rm NAME`: what is deleted is kept as files that bring it back. */
export function sourceRemove(name: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const source = namedOf(await sourcesOf(api), name, "data source");
    const variables = await variablesOf(api, source.uuid);
    let kept: KeptSource | undefined;
    let own: readonly string[] = [];
    try {
      own = optionWords(keptOptionsOf(api.settings, "source", source));
      kept = await keepRemoved(source.name, sourceYaml([source], await machinesOf(api)), variables ?? [], api.settings, io);
    } catch (error) {
      complain(io, `no copy of ${source.name} is kept: ${messageOf(error)}`);
    }
    await api.send("DELETE", `${PATH}/${source.uuid}`);
    await forgetOptions(api.settings, "source", source, io);
    const { text: forgotten, keys: secrets_removed } = await forgetSecrets(source, api, options, io);
    const { uuid, name: known } = source;
    const number = variables?.length ?? null;
    const count =
      number === null ? "" : number === 0 ? "; it had no variables" : ` with its ${number === 1 ? "variable" : `${number} variables`}`;
    const lines = kept === undefined ? [] : ["To bring it back, type:", ...wayBack(known, kept, own).map((line) => `  ${line}`)];
    const text = [`${known}: deleted${count}`, ...lines].map((line) => plain`${line}\n`).join("");
    answer(io, options, { action: "deleted", uuid, name: known, variables: number, kept: kept ?? null, secrets_removed }, text + forgotten);
  });
}

const wayBack = (name: string, { source, variables }: KeptSource, options: readonly string[]): readonly string[] => [
  `collector source import ${shellWord(source)}`,
  ...(options.length === 0 ? [] : [`collector source set ${shellWord(name)} ${options.map(shellWord).join(" ")}`]),
  ...(variables === null ? [] : [`collector variables import ${shellWord(name)} ${shellWord(variables)}`]),
];

/** Undefined: the API has none to offer. */
async function variablesOf(api: ApiConnection, source: string): Promise<readonly Variable[] | undefined> {
  try {
    return await api.list("/ext/v1/variables", variableSchema, { data_source: source });
  } catch (error) {
    if (isNotOffered(error)) return undefined;
    throw error;
  }
}

/** `collector source list`. */
export function sourceList(options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const machines = await machinesOf(api);
    const keptOf = keptOptionsIn(api.settings, "source");
    const sources = (await sourcesOf(api)).map((source) => ({ ...source, kept_here: optionWords(keptOf(source)) }));
    type Row = (typeof sources)[number];
    answerList(
      io,
      options,
      sources,
      "No data sources. To add one, see collector source add --help.\n",
      {
        NAME: ({ name }) => name,
        TYPE: ({ type }) => type,
        ENDPOINT: ({ details }) => endpointOf(details),
        MACHINE: ({ machine }) => machines.find(({ uuid }) => uuid === machine)?.name ?? machine ?? "-",
        INTERVAL: ({ readout_interval }) => intervalWords(readout_interval, api),
        LIMIT: ({ readout_limit }) => String(readout_limit ?? "-"),
        ...(sources.some(({ kept_here }) => kept_here.length > 0) && { "KEPT HERE": ({ kept_here }: Row) => kept_here.join(" ") || "-" }),
      },
      ["LIMIT"],
    );
  });
}

const intervalWords = (interval: number | null, { settings }: ApiConnection): string =>
  interval === null ? "-" : formatDuration(interval * (settings.readout_interval_unit === "seconds" ? 1000 : 1));

function endpointOf(details: unknown): string {
  const found = z.object({ host: z.string(), port: z.number().optional() }).safeParse(details);
  return found.success ? hostPort(found.data.host, found.data.port) : "-";
}

/** Machines by name, where the API has a list of them. */
export async function machinesOf(api: ApiConnection) {
  try {
    return await api.list("/ext/v1/machines", machineSchema);
  } catch (error) {
    if (isNotOffered(error)) return [];
    throw error;
  }
}

/** The machine of this name, made where there is none; or the one of this uuid. Throws UsageError. */
export async function machineOf(api: ApiConnection, name: string): Promise<string> {
  const uuid = uuidSchema.safeParse(name);
  if (uuid.success) return uuid.data;
  try {
    const known = (await api.list("/ext/v1/machines", machineSchema)).filter((machine) => machine.name === name);
    if (known.length > 0) return namedOf(known, name, "machine").uuid;
    return machineSchema.parse(await api.send("POST", "/ext/v1/machines", { name })).uuid;
  } catch (error) {
    if (!isNotOffered(error)) throw error;
    throw new UsageError(`${api.base} makes no machines with this key: name the machine by its uuid, --machine UUID`);
  }
}
