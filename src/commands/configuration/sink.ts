import { plain } from "../../base/plain-text.ts";
import { localOptions } from "../../configuration/local-options.ts";
import { dataSinkSchema } from "../../model/resources.ts";
import type { SinkType } from "../../model/sink-details.ts";
import type { AnySinkKind } from "../../sinks/sink.ts";
import { answer, answerList } from "../answer.ts";
import { passwordFrom } from "../files.ts";
import { type CommandIo, type ExitCode, UsageError } from "../io.ts";
import { askHidden } from "../prompt.ts";
import { type ApiConnection, type ApiOptions, create, namedOf, withApi } from "./api-connection.ts";
import { followRename, forgetSecrets } from "./entry-secrets.ts";
import {
  createWithKept,
  forgetOptions,
  type KeptPart,
  keepOptions,
  keptOptionsIn,
  keptOptionsOf,
  keptText,
  keysOfChange,
  type OptionChange,
  optionWords,
  requireCollectorHere,
} from "./kept-here.ts";
import { policyNote } from "./policy-note.ts";
import { keepSinkPassword, requireSecretsWritable } from "./secret.ts";
import { kindOf, nextOptions, optionKeysOf } from "./sink-options.ts";
import { hasUsers, type SinkUser, sinkDetails, sinkDetailsPatch, sinkWords } from "./source-details.ts";
import { givenPassword, type PasswordOptions, refuseBoth } from "./source-password.ts";
import { sinkTypeOf } from "./type-words.ts";

export interface SinkFields extends ApiOptions, PasswordOptions {
  /** `NAME` or `NAME=FILE` each. */
  readonly user?: readonly string[];
  /** A new name. */
  readonly name?: string;
}

const PATH = "/v2/data-sinks";

/** The data sinks of the collector. */
export const sinksOf = async (api: ApiConnection) => api.list(PATH, dataSinkSchema, { collector: await api.collector() });

/** `collector sink add NAME TYPE key=value…`. */
export function sinkAdd(name: string, typeText: string, words: readonly string[], options: SinkFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const type = sinkTypeOf(typeText);
    const kind = await kindOf(type);
    const given = sinkWords(type, kind, words);
    const details = sinkDetails(type, kind, given.details, await usersOf(options, io));
    const local = localOf(api, type, kind, given.options, {}, details, options);
    if ((await sinksOf(api)).some((sink) => sink.name === name))
      throw new UsageError(`there is a data sink ${name} already; collector sink set ${name} changes it`);
    const password = await passwordOf(local, name, "add", options, io);
    const collector = await api.collector();
    const uuid = await createWithKept(api.settings, "sink", name, local, () => create(api, PATH, { name, collector, details }));
    const sink = { uuid, name, details };
    const kept = await keepHere(api, sink, local, password, options, io);
    const policy = await policyNote(api, uuid, options, io);
    const text = plain`${name}: created (${uuid})\n` + kept.text + policy.text;
    answer(io, options, { action: "created", ...kept.object, uuid, name, ...policy.object }, text);
  });
}

/** `collector sink set NAME key=value…`. */
export function sinkSet(name: string, words: readonly string[], options: SinkFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const sink = namedOf(await sinksOf(api), name, "data sink");
    const type = sinkTypeOf(sink.type);
    const kind = await kindOf(type);
    const given = sinkWords(type, kind, words);
    const details = sinkDetailsPatch(type, given.details, await usersOf(options, io));
    const next = { ...objectOf(sink.details), ...details };
    const local = localOf(api, type, kind, given.options, keptOptionsOf(api.settings, "sink", sink), next, options, sink);
    const password = await passwordOf(local, sink.name ?? sink.uuid, "set", options, io);
    const patch = {
      ...(options.name !== undefined && { name: options.name }),
      ...(Object.keys(details).length > 0 && { details }),
    };
    const isSent = Object.keys(patch).length > 0;
    if (!isSent && !local.isChanged && password === undefined) throw new UsageError("nothing is given to set; give key=value or an option");
    const followed = await followRename(sink, options.name, api, options, io);
    if (isSent) await api.send("PATCH", `${PATH}/${sink.uuid}`, patch);
    const known = { uuid: sink.uuid, name: options.name ?? sink.name, details: next };
    await keepOptions(api.settings, "sink", sink, local);
    const kept = await keepHere(api, known, local, password, options, io);
    const { uuid } = sink;
    const policy = await policyNote(api, uuid, options, io);
    answer(
      io,
      options,
      { action: "changed", ...kept.object, uuid, name: known.name, ...policy.object },
      plain`${known.name ?? uuid}: changed\n` + followed.text + kept.text + policy.text,
    );
  });
}

const objectOf = (details: unknown): object => (typeof details === "object" && details !== null ? details : {});

/** The part of a sink that this machine keeps after the verb. */
interface LocalPart extends KeptPart {
  /** The words name a user, who has a password then. */
  readonly namesUser: boolean;
  /** The sink has one, here or in the settings file. */
  readonly hasUser: boolean;
  readonly type: SinkType;
  /** It logs in at its server. */
  readonly takesUser: boolean;
}

/** Throws UsageError. */
function localOf(
  { settings }: ApiConnection,
  type: SinkType,
  kind: AnySinkKind,
  change: OptionChange,
  now: Readonly<Record<string, unknown>>,
  details: object,
  { passwordFile, askPassword = false }: SinkFields,
  sink?: { readonly uuid: string; readonly name: string | null },
): LocalPart {
  const keys = keysOfChange(change);
  const isChanged = keys.length > 0;
  if (isChanged || passwordFile !== undefined || askPassword) requireCollectorHere(settings, isChanged ? keys : ["the password"]);
  const next = isChanged ? nextOptions(kind, change, now, { stateDir: settings.state_dir, details }) : { options: now, pems: [] };
  const file = sink ? localOptions(settings.sinks, sink) : {};
  const hasUser = next.options["username"] !== undefined || file["username"] !== undefined;
  return {
    ...next,
    isChanged,
    type,
    takesUser: optionKeysOf(kind).has("username"),
    namesUser: change.given["username"] !== undefined,
    hasUser,
  };
}

/** The password at the broker: from a file, or typed where that is wished or the words name a user. Throws UsageError. */
async function passwordOf(
  { type, takesUser, namesUser, hasUser }: LocalPart,
  name: string,
  verb: "add" | "set",
  options: SinkFields,
  io: CommandIo,
): Promise<string | undefined> {
  const { passwordFile, askPassword = false, config } = options;
  const isWished = passwordFile !== undefined || askPassword;
  refuseBoth(options);
  if (isWished && !takesUser)
    throw new UsageError(`a data sink of type ${type} has no password of its own${hasUsers(type) ? "; give its users with --user" : ""}`);
  if (isWished && !hasUser) throw new UsageError("a password needs a user: give username=NAME with it");
  if (!isWished && !namesUser) return undefined;
  requireSecretsWritable({ ...(config !== undefined && { config }) }, `sink ${verb}`);
  return givenPassword(`password of ${name}`, true, options, io);
}

/** Keeps the password, and says what of the sink is on this machine now. */
async function keepHere(
  { settings }: ApiConnection,
  sink: { readonly uuid: string; readonly name: string | null; readonly details: unknown },
  local: LocalPart,
  password: string | undefined,
  options: SinkFields,
  io: CommandIo,
): Promise<{ readonly text: string; readonly object: object }> {
  if (!local.isChanged && password === undefined) return { text: "", object: {} };
  const secret = password === undefined ? "" : await keepSinkPassword(sink, password, options, io);
  const kept_here = [...optionWords(local.options), ...(password === undefined ? [] : ["password"])];
  return { text: keptText(settings, "sink", sink, local) + secret, object: { kept_here } };
}

/** `collector sink rm NAME`. */
export function sinkRemove(name: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const sink = namedOf(await sinksOf(api), name, "data sink");
    await api.send("DELETE", `${PATH}/${sink.uuid}`);
    await forgetOptions(api.settings, "sink", sink, io);
    const secrets = await forgetSecrets(sink, api, options, io);
    const text = plain`${sink.name ?? sink.uuid}: deleted; the collector stops publishing to it\n` + secrets.text;
    answer(io, options, { action: "deleted", uuid: sink.uuid, name: sink.name, secrets_removed: secrets.keys }, text);
  });
}

/** `collector sink list`. */
export function sinkList(options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const keptOf = keptOptionsIn(api.settings, "sink");
    const sinks = (await sinksOf(api)).map((sink) => ({ ...sink, kept_here: optionWords(keptOf(sink)) }));
    answerList(io, options, sinks, "No data sinks. collector sink add --help says how to add one.\n", {
      NAME: ({ name, uuid }) => name ?? uuid,
      TYPE: ({ type }) => type,
      DETAILS: ({ details, kept_here }) => [detailWords(details), ...kept_here].join(" "),
    });
  });
}

/** Details as they would be typed. */
function detailWords(details: unknown): string {
  if (typeof details !== "object" || details === null) return "-";
  return Object.entries(details)
    .filter(([key]) => key !== "type")
    .map(([key, value]) => {
      if (!Array.isArray(value)) return `${key}=${String(value)}`;
      const items = value.map((item: unknown) =>
        typeof item === "object" && item !== null && "username" in item ? String(item.username) : String(item),
      );
      return `${key}=${items.join(",")}`;
    })
    .join(" ");
}

/** Users with their passwords: from files, or typed one after another. Throws UsageError. */
async function usersOf({ user = [], json = false }: SinkFields, io: CommandIo): Promise<readonly SinkUser[]> {
  const users: SinkUser[] = [];
  for (const word of user) {
    const at = word.indexOf("=");
    const username = at < 0 ? word : word.slice(0, at);
    if (username === "") throw new UsageError(`--user ${word}: expected NAME, or NAME=FILE with the password on the file's first line`);
    const password =
      at < 0
        ? await askHidden(`password of ${username}`, `give it with --user ${username}=FILE`, io, { json })
        : passwordFrom(word.slice(at + 1), "--user");
    users.push({ username, password });
  }
  return users;
}
