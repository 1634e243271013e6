import type { DetailsType } from "../../model/details.ts";
import { passwordFrom } from "../files.ts";
import { type CommandIo, UsageError } from "../io.ts";
import { askHidden } from "../prompt.ts";
import { ApiError } from "./api-connection.ts";
import { parseFields } from "./fields.ts";
import { keysOfSource, SOURCE_PASSWORD } from "./source-details.ts";

export interface PasswordOptions {
  /** File whose first line it is. */
  readonly passwordFile?: string;
  /** Ask for it. */
  readonly askPassword?: boolean;
  /** Nothing is asked. */
  readonly json?: boolean;
}

const BY_FILE = "give it with --password-file FILE";

/**
 * The password of a data source: from the file, or typed by the person where that is wished or the words name a user; undefined: none is
 * given. Throws UsageError.
 */
export function sourcePassword(
  type: DetailsType,
  words: readonly string[],
  options: PasswordOptions,
  io: CommandIo,
): Promise<string | undefined> {
  refuseBoth(options);
  const user = options.passwordFile === undefined ? userIn(parseFields(words, keysOfSource(type), SOURCE_PASSWORD)) : undefined;
  return givenPassword(user === undefined ? "password" : `password of ${user}`, user !== undefined, options, io);
}

/** Throws UsageError: a password is given in two ways. */
export function refuseBoth({ passwordFile, askPassword = false }: PasswordOptions): void {
  if (passwordFile !== undefined && askPassword) throw new UsageError("--password-file and --ask-password are given; give one of them");
}

/** The password in the file, or typed where that is wished or `isNeeded`; undefined: neither. Throws UsageError. */
export async function givenPassword(
  what: string,
  isNeeded: boolean,
  { passwordFile, askPassword = false, json = false }: PasswordOptions,
  io: CommandIo,
): Promise<string | undefined> {
  if (passwordFile !== undefined) return passwordFrom(passwordFile);
  return askPassword || isNeeded ? askHidden(what, BY_FILE, io, { json }) : undefined;
}

/** If a PATCH lacks the password of a data source, without which the API changes nothing that it is bound to (design/api-decisions). */
const PLACES: readonly string[] = ["body.details.user_identity.password", "body.details.password"];

/** True: the API refused a change because the password of the data source is not in it. */
export const lacksPassword = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  error.status === 422 &&
  error.refusedAt?.length === 1 &&
  PLACES.includes(error.refusedAt[0]?.join(".") ?? "");

/** Asks for the password that the API wants with a change. Throws UsageError where nobody can be asked. */
export const askBoundPassword = (source: string, { json = false }: PasswordOptions, io: CommandIo): Promise<string> =>
  askHidden(`password of ${source}`, BY_FILE, io, { json });

/** The user that the words name. */
function userIn({ username, user_identity: identity }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof username === "string") return username;
  if (typeof identity !== "object" || identity === null) return undefined;
  return "username" in identity && typeof identity.username === "string" ? identity.username : undefined;
}
