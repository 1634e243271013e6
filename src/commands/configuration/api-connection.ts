import path from "node:path";
import * as z from "zod";
import { personalAccess, requesterAccess } from "../../api/access.ts";
import { CLIENT_TIMEOUTS, MAX_ANSWER_BYTES } from "../../api/client.ts";
import { pageSchema } from "../../api/list-pages.ts";
import { osUserIn } from "../../api/os-user.ts";
import { type ListPage, readList } from "../../api/read-list.ts";
import { type ApiFailure, createRequester, type Requester } from "../../api/requester.ts";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import type { Settings } from "../../model/settings.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { knownNames } from "../known-names.ts";
import { settingsOrUsage } from "../service/run.ts";
import { osUserOf } from "./api-task.ts";
import { insteadOf } from "./not-offered.ts";

/** Records of one list that are named because they cannot be used; the others are counted. */
const MAX_LEFT_OUT_SHOWN = 20;

/** The API refused or did not answer; the message is for people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The answer's status, where there was one. */
  readonly status: number | undefined;
  /** As in ApiFailure. */
  readonly refusedAt: ApiFailure["refusedAt"];
  constructor({ message, status, refusedAt }: Pick<ApiFailure, "message" | "status" | "refusedAt">) {
    super(message);
    this.status = status;
    this.refusedAt = refusedAt;
  }
}

/** The API does not have an extension that a verb needs; the message says what to do instead. */
export class NotOfferedError extends ApiError {}

export interface ApiOptions {
  readonly config?: string;
  /** File with the key; absent: the settings', or the embedded API's own admin key. */
  readonly keyFile?: string;
  /** One JSON object on stdout at the end, and no questions. */
  readonly json?: boolean;
}

/** The configuration API that the settings name, as a person reaches it. */
export interface ApiConnection {
  readonly base: string;
  readonly settings: Settings;
  /** The collector that is meant: the settings' one, or the only one that the key reaches. Throws UsageError where that is not clear. */
  collector(): Promise<string>;
  /** A list to its end. Throws ApiError. */
  list<T>(path: string, record: z.ZodType<T>, query?: Readonly<Record<string, string>>): Promise<readonly T[]>;
  /** Throws ApiError. */
  send(method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE", path: string, body?: unknown): Promise<unknown>;
}

/** Runs a verb with a connection to the API, well done unless it says otherwise; prints what the API refuses on stderr. Throws UsageError. */
export async function withApi(
  options: ApiOptions,
  io: CommandIo,
  work: (api: ApiConnection) => Promise<ExitCode | undefined>,
): Promise<ExitCode> {
  const { settings } = settingsOrUsage(options.config);
  const requester = requesterOf(settings, options.keyFile, osUserOf(io));
  try {
    return (await work(connectionOf(requester, settings, io))) ?? EXIT.good;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (io.signal.aborted) return EXIT.interrupted;
    complain(io, error.message);
    if (error instanceof NotOfferedError) return EXIT.usage;
    // What the request asks for was wrong, or the API was not to be had.
    return error.status !== undefined && error.status >= 400 && error.status < 500 ? EXIT.usage : EXIT.ownFailure;
  } finally {
    requester.close();
  }
}

/** Asks the same API with the key of another file. Throws ApiError. */
export async function askWithKey(settings: Settings, keyFile: string, target: string, signal: AbortSignal): Promise<unknown> {
  const requester = requesterOf(settings, keyFile);
  try {
    return await senderOf(requester, signal)("GET", target);
  } finally {
    requester.close();
  }
}

function requesterOf(settings: Settings, keyFile: string | undefined, osUser?: string): Requester {
  const access = personalAccess(settings, path.resolve(settings.state_dir), keyFile);
  return createRequester({
    ...requesterAccess(access),
    ...(access.embedded && { osUser: osUserIn(osUser) }),
    timeouts: CLIENT_TIMEOUTS,
  });
}

const uuidRecord = z.object({ uuid: uuidSchema });
const ownedRecord = z.object({ collector: uuidSchema });

function senderOf(requester: Requester, signal: AbortSignal): ApiConnection["send"] {
  let isKeyTaken = false;
  return async (method, target, body) => {
    const answer = await requester.send({
      method,
      path: target,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      maxBytes: MAX_ANSWER_BYTES,
      signal,
    });
    if (answer.type === "failed") {
      const words = insteadOf(method, target.split("?")[0] ?? "", answer.status, isKeyTaken);
      if (words !== undefined) throw new NotOfferedError({ ...answer, message: `${answer.message}; ${words}` });
      throw new ApiError(answer);
    }
    isKeyTaken = true;
    return answer.type === "json" ? answer.value : undefined;
  };
}

/** A page whose records are not validated yet. */
interface RawPage extends ListPage {
  readonly records: readonly { readonly item: unknown; readonly uuid: string | undefined }[];
}

/** A connection whose lists name on stderr each record that is not as the API describes it. */
export function connectionOf(requester: Requester, settings: Settings, io: CommandIo): ApiConnection {
  const send = senderOf(requester, io.signal);
  const list: ApiConnection["list"] = async (target, record, query = {}) => {
    const pages = await readList<RawPage, never>(async (cursor) => {
      const words = new URLSearchParams({ ...query, ...(cursor !== null && { cursor }) }).toString();
      const page = pageSchema.safeParse(await send("GET", words === "" ? target : `${target}?${words}`));
      if (!page.success) throw new ApiError({ message: `${requester.base}: ${target} answered another shape than the API's` });
      return {
        records: page.data.data.map((item) => ({ item, uuid: uuidRecord.safeParse(item).data?.uuid })),
        nextCursor: page.data.metadata.next_cursor,
      };
    });
    if ("type" in pages) throw new ApiError({ message: `${requester.base}: ${target} ${pages.why}` });
    const records = [];
    let leftOut = 0;
    for (const { item } of pages.flatMap((page) => page.records)) {
      const parsed = record.safeParse(item);
      if (parsed.success) records.push(parsed.data);
      else if (++leftOut <= MAX_LEFT_OUT_SHOWN) complain(io, `${target}: ${recordWords(item, parsed.error)}`);
    }
    if (leftOut > MAX_LEFT_OUT_SHOWN) complain(io, `${target}: ${leftOut - MAX_LEFT_OUT_SHOWN} more records are left out`);
    return records;
  };
  return {
    base: requester.base,
    settings,
    send,
    list,
    async collector() {
      const own = settings.collector ?? installed(settings.state_dir);
      if (own !== undefined) return own;
      const known = await collectorsOf(list);
      const [only, ...others] = known;
      if (only !== undefined && others.length === 0) return only;
      throw new UsageError(
        only === undefined
          ? `${requester.base} does not report which collector the key belongs to; set collector in the settings`
          : `the key reaches ${known.length} collectors; set collector in the settings to one of them:\n${known.join("\n")}`,
      );
    },
  };
}

/** Which record is not as the API describes it, and what is wrong first; nothing of a value. */
function recordWords(item: unknown, { issues: [issue] }: z.ZodError): string {
  const { name, uuid } = z
    .object({ name: z.string().optional().catch(undefined), uuid: z.string().optional().catch(undefined) })
    .catch({})
    .parse(item);
  return `${name ?? uuid ?? "a record without a name"} is left out, because it does not match the API's description: ${issue?.path.join(".") || "the record"}: ${issue?.message ?? "not valid"}`;
}

/** Collectors that the key reaches: by our extension, else by the data sources there are. */
export async function collectorsOf(list: ApiConnection["list"]): Promise<readonly string[]> {
  try {
    return (await list("/ext/v1/collectors", uuidRecord)).map(({ uuid }) => uuid);
  } catch (error) {
    if (!isNotOffered(error)) throw error;
  }
  return [...new Set((await list("/v2/data-sources", ownedRecord)).map(({ collector }) => collector))];
}

/** True: the API says that it does not have something (design/api-decisions). */
export const isNotOffered = (error: unknown): error is NotOfferedError => error instanceof NotOfferedError;

/** The uuid that the service here made for itself, if it has run. */
export function installed(stateDir: string): string | undefined {
  try {
    const parsed = uuidSchema.safeParse(readBoundedFile(path.join(stateDir, "collector-uuid"), 200).toString("utf8").trim());
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** Creates a record and returns its uuid. Throws ApiError. */
export const create = async (api: ApiConnection, path: string, fields: object): Promise<string> =>
  uuidRecord.parse(await api.send("POST", path, fields)).uuid;

interface Named {
  readonly uuid: string;
  readonly name: string | null;
}

/** The record with this name or uuid. Throws UsageError: none, or several with this name. */
export function namedOf<T extends Named>(records: readonly T[], name: string, what: string): T {
  const byUuid = records.find(({ uuid }) => uuid === name.toLowerCase());
  if (byUuid) return byUuid;
  const [found, ...others] = records.filter((record) => record.name === name);
  if (found && others.length === 0) return found;
  if (found)
    throw new UsageError(
      `${name} is the name of several ${what}s; name the uuid:\n${[found, ...others].map(({ uuid }) => uuid).join("\n")}`,
    );
  const names = records.flatMap((record) => (record.name === null ? [] : [record.name]));
  throw new UsageError(`there is no ${what} ${name}${knownNames(name, names)}`);
}
