import type { z } from "zod";
import type { AnyDriver, Timeouts } from "../../drivers/driver.ts";
import { DETAILS, type DetailsType, detailsCreateSchema, toReadDetails } from "../model/details.ts";
import { messageOf } from "../model/failure.ts";
import { nearest } from "../model/nearest.ts";
import { sourceSettingsSchema } from "../model/settings.ts";
import { type DataType, parseDataType } from "../model/value.ts";
import { isSecretName } from "../os/loggable.ts";
import { passwordFrom } from "./api-connection.ts";
import { coerce, fullKey, type JsonSchema, put, keysOf as schemaKeys, toJsonSchema } from "./fields.ts";
import { type CommandIo, UsageError } from "./io.ts";
import { askHidden } from "./prompt.ts";
import { completeDetails, keysOfSource } from "./source-details.ts";

/** A source as typed on the command line. */
export interface TypedSource {
  readonly details: unknown;
  readonly settings: unknown;
  /** Secrets by the name that the driver takes them by. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly timeouts: Timeouts;
  /** User whose password is needed and is none of the words. */
  readonly passwordOf: string | undefined;
}

/** A source and what to read of it, as typed on the command line. */
export interface ReadInput extends TypedSource {
  readonly points: readonly TypedPoint[];
}

export interface TypedPoint {
  /** As typed, without its type. */
  readonly text: string;
  readonly address: unknown;
  readonly type: DataType;
}

const TIMEOUT_KEYS = ["name_timeout", "connect_timeout", "answer_timeout"] as const;

/**
 * Sorts `key=value… ADDRESS[:TYPE]…` (DESIGN 7). A key is one of the details, else of the driver's settings, else a time-out; what stands
 * before a `=` and is none of these belongs to an address, if the driver can read it. Pure. Throws UsageError, which names every mistake.
 */
export function parseReadInput(driver: AnyDriver, words: readonly string[], defaultType: DataType | undefined): ReadInput {
  const { source, rest: addresses, keys } = parseSource(driver, words);
  const points = addresses.map((text) => parsePoint(driver, text, defaultType, source.settings, keys));
  const wrong = points.flatMap((point) => (point instanceof UsageError ? [point] : []));
  if (wrong.length > 0) throw new UsageError(wrong.map(({ message }) => message).join("\n"));
  if (points.length === 0) throw new UsageError("no address is given; name at least one thing to read, ADDRESS or ADDRESS:TYPE");
  return { ...source, points: points.flatMap((point) => (point instanceof UsageError ? [] : [point])) };
}

/** Takes `key=value…` and nothing else. Pure. Throws UsageError, which names every mistake. */
export function parseSourceInput(driver: AnyDriver, words: readonly string[]): TypedSource {
  const { source, rest, keys } = parseSource(driver, words);
  const wrong = rest.map((word) => {
    const key = /^([A-Za-z_][\w.]*)=/.exec(word)?.[1];
    const meant = key === undefined ? undefined : nearest(key, keys);
    if (key === undefined) return `${JSON.stringify(word)}: must be key=value`;
    return `${key}: there is no such key${meant === undefined ? "" : `; did you mean ${meant}?`}`;
  });
  if (wrong.length > 0) throw new UsageError([...wrong, `known keys: ${keys.join(", ")}`].join("\n"));
  return source;
}

interface Sorted {
  readonly source: TypedSource;
  /** Words that no key begins. */
  readonly rest: readonly string[];
  readonly keys: readonly string[];
}

function parseSource(driver: AnyDriver, words: readonly string[]): Sorted {
  const type = detailsTypeOf(driver.type);
  const known = keysOf(type, driver);
  const keys = [...known.keys()].filter((key) => !isSecret(key));
  const given = { details: {}, settings: {}, timeouts: {} } as Record<Part, Record<string, unknown>>;
  const seen = new Set<string>();
  const mistakes: string[] = [];
  const rest: string[] = [];
  for (const word of words) {
    const pair = /^([A-Za-z_][\w.]*)=(.*)$/s.exec(word);
    const key = fullKey(pair?.[1] ?? "", known);
    const entry = pair ? known.get(key) : undefined;
    if (!entry) rest.push(word);
    else if (isSecret(key)) mistakes.push(`${key}: a password does not belong on a command line, where others see it; use --password-file`);
    else if (seen.has(key)) mistakes.push(`${key}: is given twice`);
    else {
      seen.add(key);
      const value = coerce(pair?.[2] ?? "", entry.schema);
      if (value instanceof UsageError) mistakes.push(`${key}: ${value.message}`);
      else put(given[entry.part], key, value);
    }
  }
  const details = checkDetails(type, given.details, mistakes);
  const settings = check(driver.settings, given.settings, mistakes);
  const timeouts = check(sourceSettingsSchema, given.timeouts, mistakes);
  if (mistakes.length > 0 || !details || !timeouts) throw new UsageError([...mistakes, `known keys: ${keys.join(", ")}`].join("\n"));
  const { name_timeout: nameMs, connect_timeout: connectMs, answer_timeout: answerMs } = timeouts;
  return { source: { ...details, settings, timeouts: { nameMs, connectMs, answerMs } }, rest, keys };
}

/** The details in the form in which they are read. The API takes no user certificate on creation; here a person may name one. */
function checkDetails(
  type: DetailsType,
  given: Readonly<Record<string, unknown>>,
  mistakes: string[],
): Pick<TypedSource, "details" | "secrets" | "passwordOf"> | undefined {
  const complete = completeDetails(type, given, undefined);
  const identity = complete["user_identity"];
  const user = typeof identity === "object" && identity !== null ? (identity as Readonly<Record<string, unknown>>) : {};
  if (user["type"] === "X509Certificate") {
    const details = check<unknown>(DETAILS[type].read, complete, mistakes);
    return details === undefined ? undefined : { details, secrets: {}, passwordOf: undefined };
  }
  const needsPassword = user["type"] === "UserNamePassword";
  const created = check(
    detailsCreateSchema,
    needsPassword ? { ...complete, user_identity: { ...user, password: "" } } : complete,
    mistakes,
  );
  if (!created) return undefined;
  const { details, secrets } = toReadDetails(created);
  return needsPassword ? { details, secrets: {}, passwordOf: String(user["username"]) } : { details, secrets, passwordOf: undefined };
}

/** The password: from the file, else typed by the person, if one is needed. Throws UsageError. */
export async function withPassword<S extends TypedSource>(source: S, file: string | undefined, io: CommandIo): Promise<S> {
  const { passwordOf } = source;
  if (file === undefined && passwordOf === undefined) return source;
  const password =
    file === undefined ? await askHidden(`password of ${passwordOf}`, "give it with --password-file FILE", io) : passwordFrom(file);
  return { ...source, secrets: { ...source.secrets, password } };
}

const isSecret = (key: string): boolean => key.split(".").some(isSecretName);

type Part = "details" | "settings" | "timeouts";

function detailsTypeOf(type: string): DetailsType {
  const found = (Object.keys(DETAILS) as DetailsType[]).find((known) => known === type);
  if (!found) throw new UsageError(`${type} has no connection details in the API`);
  return found;
}

/** Every key that may be given, inner ones with dots; details before settings before time-outs. */
function keysOf(type: DetailsType, driver: AnyDriver): ReadonlyMap<string, { readonly part: Part; readonly schema: JsonSchema }> {
  const keys = new Map<string, { part: Part; schema: JsonSchema }>();
  const enter = (part: Part, schema: JsonSchema): void => {
    for (const [key, inner] of schemaKeys(schema)) if (!keys.has(key)) keys.set(key, { part, schema: inner });
  };
  for (const [key, schema] of keysOfSource(type)) keys.set(key, { part: "details", schema });
  enter("settings", toJsonSchema(driver.settings));
  const shared = toJsonSchema(sourceSettingsSchema).properties ?? {};
  enter("timeouts", { properties: Object.fromEntries(TIMEOUT_KEYS.flatMap((key) => (shared[key] ? [[key, shared[key]]] : []))) });
  return keys;
}

function check<T>(schema: z.ZodType<T>, value: unknown, mistakes: string[]): T | undefined {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  for (const { path, message } of result.error.issues)
    mistakes.push(`${path.join(".")}: ${message.replace(/^Invalid (input|option): /, "")}`);
  return undefined;
}

/** What follows the last colon is a type only if it is one, and no name in a browse path (`/Objects/2:Int32`). */
export function splitType(text: string): { readonly address: string; readonly type: DataType | undefined } {
  const colon = text.lastIndexOf(":");
  const isName = text.startsWith("/") && /\/\d{1,5}$/.test(text.slice(0, colon));
  const type = colon <= 0 || isName ? undefined : parseDataType(text.slice(colon + 1));
  return type ? { address: text.slice(0, colon), type } : { address: text, type: undefined };
}

function parsePoint(
  driver: AnyDriver,
  word: string,
  defaultType: DataType | undefined,
  settings: unknown,
  keys: readonly string[],
): TypedPoint | UsageError {
  const { address: text, type } = splitType(word);
  try {
    return { text, ...driver.parseAddress(text, type ?? defaultType, settings) };
  } catch (error) {
    const key = /^([A-Za-z_][\w.]*)=/.exec(word)?.[1];
    if (key === undefined) return new UsageError(messageOf(error));
    const meant = nearest(key, keys);
    const known = `known keys: ${keys.join(", ")}`;
    if (meant === undefined) return new UsageError(`${messageOf(error)}; and ${key} is no key of ${driver.type}, ${known}`);
    return new UsageError(
      `${JSON.stringify(word)} is no address of ${driver.type}, and ${key} is no key of it; did you mean ${meant}?; ${known}`,
    );
  }
}
