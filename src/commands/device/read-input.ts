import type { z } from "zod";
import { type AnyDriver, type Timeouts, typeOf } from "../../../drivers/driver.ts";
import { nearest } from "../../base/nearest.ts";
import { boundOptions, readProfile } from "../../configuration/bindings.ts";
import { DETAILS, type DetailsType, detailsCreateSchema, toReadDetails } from "../../model/details.ts";
import { messageOf } from "../../model/failure.ts";
import { sourceSettingsSchema } from "../../model/settings.ts";
import { type DataType, TYPE_EXAMPLES } from "../../model/value.ts";
import {
  issueWords,
  type JsonSchema,
  keyIn,
  knownWords,
  noField,
  publicKeys,
  put,
  keysOf as schemaKeys,
  sortWords,
  toJsonSchema,
} from "../configuration/fields.ts";
import { completeDetails, detailsWords, keysOfSource } from "../configuration/source-details.ts";
import { detailsTypeOf } from "../configuration/type-words.ts";
import { passwordFrom } from "../files.ts";
import { type CommandIo, UsageError } from "../io.ts";
import { askHidden } from "../prompt.ts";

/** A source as typed on the command line. */
export interface TypedSource {
  readonly details: unknown;
  readonly settings: unknown;
  /** Secrets by the name that the driver takes them by. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly timeouts: Timeouts;
  /** User whose password is needed and is none of the words. */
  readonly passwordOf: string | undefined;
  /** What was filled in that the API asks for, one sentence each. */
  readonly notes: readonly string[];
}

/** A source and what to read of it, as typed on the command line. */
export interface ReadInput extends TypedSource {
  /** For looking addresses up in one pass. */
  readonly prepareMs: number;
  readonly points: readonly TypedPoint[];
}

export interface TypedPoint {
  /** As typed, without its type. */
  readonly text: string;
  readonly address: unknown;
  readonly type: DataType;
  /** The field's own word of its type, where the driver reads more from it than the scalar. */
  readonly word?: string;
}

/** How a password is given instead of among the words. */
const BY_FILE = "use --password-file";

const TIMEOUT_KEYS = ["name_timeout", "connect_timeout", "answer_timeout", "prepare_timeout"] as const;

/**
 * Sorts `key=value… ADDRESS[:TYPE]…` (design/command-line). A key is one of the details, else of the driver's settings, else a time-out; what is
 * before a `=` and is none of these belongs to an address, if the driver can read it; one address at least, unless `needsPoint` is false. Pure. Throws UsageError, which names every mistake.
 */
export function parseReadInput(
  driver: AnyDriver,
  words: readonly string[],
  defaultType: DataType | undefined,
  { needsPoint = true } = {},
): ReadInput {
  const { source, rest: addresses, keys } = parseSource(driver, words);
  return { ...source, points: pointsOf(driver, addresses, defaultType, { settings: source.settings, keys, needsPoint }) };
}

/** The addresses of a source whose connection is known: `ADDRESS[:TYPE]…`, one at least. Pure. Throws UsageError, which names every mistake. */
export const parseAddresses = (
  driver: AnyDriver,
  words: readonly string[],
  defaultType: DataType | undefined,
  settings: unknown,
): readonly TypedPoint[] => pointsOf(driver, words, defaultType, { settings, keys: undefined, needsPoint: true });

interface PointRules {
  readonly settings: unknown;
  /** What could have been meant instead of an address; undefined: addresses alone are taken. */
  readonly keys: ReadonlyMap<string, unknown> | undefined;
  readonly needsPoint: boolean;
}

function pointsOf(
  driver: AnyDriver,
  addresses: readonly string[],
  defaultType: DataType | undefined,
  { settings, keys, needsPoint }: PointRules,
): readonly TypedPoint[] {
  const points = addresses.map((text) => parsePoint(driver, text, defaultType, settings, keys));
  const wrong = points.flatMap((point) => (point instanceof UsageError ? [point] : []));
  if (wrong.length > 0) throw new UsageError(wrong.map(({ message }) => message).join("\n"));
  if (points.length === 0 && needsPoint)
    throw new UsageError("no address is given; name at least one thing to read, ADDRESS or ADDRESS:TYPE");
  return points.flatMap((point) => (point instanceof UsageError ? [] : [point]));
}

/** Takes `key=value…` and nothing else. Pure. Throws UsageError, which names every mistake. */
export function parseSourceInput(driver: AnyDriver, words: readonly string[]): TypedSource {
  const { source, rest, keys } = parseSource(driver, words);
  if (rest.length > 0) throw new UsageError([...rest.map((word) => noField(word, keys, BY_FILE)), knownWords(keys)].join("\n"));
  return source;
}

interface Sorted {
  readonly source: TypedSource & Pick<ReadInput, "prepareMs">;
  /** Words that no key begins. */
  readonly rest: readonly string[];
  readonly keys: ReadonlyMap<string, unknown>;
}

function parseSource(driver: AnyDriver, words: readonly string[]): Sorted {
  const type = detailsTypeOf(driver.type);
  const parts = keysOf(type, driver);
  const keys = new Map([...parts].map(([key, { schema }]) => [key, schema]));
  const given = { details: {}, settings: {}, timeouts: {} } as Record<Part, Record<string, unknown>>;
  const mistakes: string[] = [];
  const rest: string[] = [];
  for (const word of sortWords(words, keys, BY_FILE)) {
    if ("mistake" in word) mistakes.push(word.mistake);
    else if ("rest" in word) rest.push(word.rest);
    else put(given[parts.get(word.key)?.part ?? "details"], word.key, word.value);
  }
  const { usualPort } = driver;
  const hasNoPort = usualPort !== undefined && given.details["port"] === undefined;
  const details = checkDetails(type, hasNoPort ? { ...given.details, port: usualPort } : given.details, mistakes);
  const settings = check(driver.settings, boundOptions(type, given.settings, { bindings: {} }, readProfile), mistakes);
  const timeouts = check(sourceSettingsSchema, given.timeouts, mistakes);
  const unfit = mistakes.length === 0 && details ? driver.problemOf?.(details.details, settings) : undefined;
  if (unfit) mistakes.push(unfit.detail);
  if (mistakes.length > 0 || !details || !timeouts) throw new UsageError([...mistakes, knownWords(keys)].join("\n"));
  const { name_timeout: nameMs, connect_timeout: connectMs, answer_timeout: answerMs, prepare_timeout: prepareMs } = timeouts;
  const notes = hasNoPort ? [`no port is given; port ${usualPort} is the usual one of ${driver.type}`] : [];
  return { source: { ...details, settings, timeouts: { nameMs, connectMs, answerMs }, prepareMs, notes }, rest, keys };
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
    const details = check<unknown>(DETAILS[type].read, complete, mistakes, detailsWords);
    return details === undefined ? undefined : { details, secrets: {}, passwordOf: undefined };
  }
  const needsPassword = user["type"] === "UserNamePassword";
  const created = check(
    detailsCreateSchema,
    needsPassword ? { ...complete, user_identity: { ...user, password: "" } } : complete,
    mistakes,
    detailsWords,
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

type Part = "details" | "settings" | "timeouts";

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

function check<T>(schema: z.ZodType<T>, value: unknown, mistakes: string[], wordsOf: typeof issueWords = issueWords): T | undefined {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  mistakes.push(...wordsOf(result.error));
  return undefined;
}

/** What follows the last colon is a type only if it is one, and no name in a browse path (`/Objects/2:Int32`). */
export function splitType(
  text: string,
  driver: Pick<AnyDriver, "parseType"> = {},
): { readonly address: string; readonly type: DataType | undefined } {
  const colon = text.lastIndexOf(":");
  const isName = text.startsWith("/") && /\/\d{1,5}$/.test(text.slice(0, colon));
  const type = colon <= 0 || isName ? undefined : typeOf(driver, text.slice(colon + 1));
  return type ? { address: text.slice(0, colon), type } : { address: text, type: undefined };
}

function parsePoint(
  driver: AnyDriver,
  word: string,
  defaultType: DataType | undefined,
  settings: unknown,
  keys: ReadonlyMap<string, unknown> | undefined,
): TypedPoint | UsageError {
  const { address: text, type } = splitType(word, driver);
  try {
    const wanted = type ?? defaultType;
    return { text, ...driver.parseAddress(text, wanted, settings), ...(wanted?.word !== undefined && { word: wanted.word }) };
  } catch (error) {
    const wrongType = type === undefined ? wrongTypeIn(driver, word, settings) : undefined;
    if (wrongType !== undefined) return new UsageError(wrongType);
    const key = keyIn(word);
    if (key === undefined || keys === undefined) return new UsageError(messageOf(error));
    const meant = nearest(key, publicKeys(keys));
    const known = knownWords(keys);
    if (meant === undefined) return new UsageError(`${messageOf(error)}; and ${key} is not a key of ${driver.type}, ${known}`);
    return new UsageError(
      `${JSON.stringify(word)} is not an address of ${driver.type}, and ${key} is not a key of it; did you mean ${meant}?; ${known}`,
    );
  }
}

/** If an address is right without what follows its last colon, that was meant for a type and is none; undefined: it is not so. */
function wrongTypeIn(driver: AnyDriver, word: string, settings: unknown): string | undefined {
  const colon = word.lastIndexOf(":");
  const [address, name] = [word.slice(0, colon), word.slice(colon + 1)];
  if (colon <= 0 || !/^[A-Za-z][\w ()[\]]*$/.test(name)) return undefined;
  try {
    driver.parseAddress(address, undefined, settings);
  } catch (error) {
    // The address may want a type, which is another mistake.
    if (!/type/i.test(messageOf(error))) return undefined;
  }
  return `${JSON.stringify(name)} is not a type of ${driver.title}; expected ${TYPE_EXAMPLES}`;
}
