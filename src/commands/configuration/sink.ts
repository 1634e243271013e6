import * as z from "zod";
import { plain } from "../../model/plain-text.ts";
import { dataSinkSchema } from "../../model/resources.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { answer, answerList } from "../answer.ts";
import { passwordFrom } from "../files.ts";
import { type CommandIo, type ExitCode, UsageError } from "../io.ts";
import { askHidden } from "../prompt.ts";
import { type ApiConnection, type ApiOptions, namedOf, withApi } from "./api-connection.ts";
import { type SinkUser, sinkDetails, sinkDetailsPatch, sinkTypeOf } from "./source-details.ts";

export interface SinkFields extends ApiOptions {
  /** `NAME` or `NAME=FILE` each. */
  readonly user?: readonly string[];
  /** A new name. */
  readonly name?: string;
}

const PATH = "/v2/data-sinks";

/** The data sinks of the collector. */
export async function sinksOf(api: ApiConnection) {
  return api.list(PATH, dataSinkSchema, { collector: await api.collector() });
}

/** `collector sink add NAME TYPE key=value…`. */
export function sinkAdd(name: string, typeText: string, words: readonly string[], options: SinkFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const type = sinkTypeOf(typeText);
    const details = sinkDetails(type, words, await usersOf(options, io));
    const created = z.object({ uuid: uuidSchema }).parse(await api.send("POST", PATH, { name, collector: await api.collector(), details }));
    answer(io, options, { action: "created", uuid: created.uuid, name }, plain`${name}: created (${created.uuid})\n`);
  });
}

/** `collector sink set NAME key=value…`. */
export function sinkSet(name: string, words: readonly string[], options: SinkFields, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const sink = namedOf(await sinksOf(api), name, "data sink");
    const details = sinkDetailsPatch(sinkTypeOf(sink.type), words, await usersOf(options, io));
    const patch = {
      ...(options.name !== undefined && { name: options.name }),
      ...(Object.keys(details).length > 0 && { details }),
    };
    if (Object.keys(patch).length === 0) throw new UsageError("nothing is given to set; give key=value or an option");
    await api.send("PATCH", `${PATH}/${sink.uuid}`, patch);
    const known = options.name ?? sink.name;
    answer(io, options, { action: "changed", uuid: sink.uuid, name: known }, plain`${known ?? sink.uuid}: changed\n`);
  });
}

/** `collector sink rm NAME`. */
export function sinkRemove(name: string, options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    const sink = namedOf(await sinksOf(api), name, "data sink");
    await api.send("DELETE", `${PATH}/${sink.uuid}`);
    const text = plain`${sink.name ?? sink.uuid}: deleted; the collector stops publishing to it\n`;
    answer(io, options, { action: "deleted", uuid: sink.uuid, name: sink.name }, text);
  });
}

/** `collector sink list`. */
export function sinkList(options: ApiOptions, io: CommandIo): Promise<ExitCode> {
  return withApi(options, io, async (api) => {
    answerList(io, options, await sinksOf(api), "No data sinks. collector sink add --help says how to add one.\n", {
      NAME: ({ name, uuid }) => name ?? uuid,
      TYPE: ({ type }) => type,
      DETAILS: ({ details }) => detailWords(details),
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
