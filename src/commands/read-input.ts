import type { z } from "zod";
import type { AnyDriver, Timeouts } from "../../drivers/driver.ts";
import { DETAILS, type DetailsType, detailsCreateSchema, toReadDetails } from "../model/details.ts";
import { messageOf } from "../model/failure.ts";
import { nearest } from "../model/nearest.ts";
import { sourceSettingsSchema } from "../model/settings.ts";
import { type DataType, parseDataType } from "../model/value.ts";
import { isSecretName } from "../os/loggable.ts";
import { coerce, type JsonSchema, put, keysOf as schemaKeys, toJsonSchema } from "./fields.ts";
import { UsageError } from "./io.ts";

/** A source and what to read of it, as typed on the command line. */
export interface ReadInput {
  readonly details: unknown;
  readonly settings: unknown;
  /** Secrets by the name that the driver takes them by. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly timeouts: Timeouts;
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
  const type = detailsTypeOf(driver.type);
  const known = keysOf(type, driver);
  const given = { details: {}, settings: {}, timeouts: {} } as Record<Part, Record<string, unknown>>;
  const seen = new Set<string>();
  const mistakes: string[] = [];
  const addresses: string[] = [];
  for (const word of words) {
    const pair = /^([A-Za-z_][\w.]*)=(.*)$/s.exec(word);
    const key = pair?.[1] ?? "";
    const entry = pair ? known.get(key) : undefined;
    if (!entry) addresses.push(word);
    else if (isSecretName(key))
      mistakes.push(`${key}: a password does not belong on a command line, where others see it; use --password-file`);
    else if (seen.has(key)) mistakes.push(`${key}: is given twice`);
    else {
      seen.add(key);
      const value = coerce(pair?.[2] ?? "", entry.schema);
      if (value instanceof UsageError) mistakes.push(`${key}: ${value.message}`);
      else put(given[entry.part], key, value);
    }
  }
  const created = check(detailsCreateSchema, { ...given.details, type }, mistakes);
  const settings = check(driver.settings, given.settings, mistakes);
  const timeouts = check(sourceSettingsSchema, given.timeouts, mistakes);
  if (mistakes.length > 0 || !created || !timeouts)
    throw new UsageError([...mistakes, `known keys: ${[...known.keys()].join(", ")}`].join("\n"));
  const points = addresses.map((text) => parsePoint(driver, text, defaultType, settings, [...known.keys()]));
  const wrong = points.flatMap((point) => (point instanceof UsageError ? [point] : []));
  if (wrong.length > 0) throw new UsageError(wrong.map(({ message }) => message).join("\n"));
  if (points.length === 0) throw new UsageError("no address is given; name at least one thing to read, ADDRESS or ADDRESS:TYPE");
  const { details, secrets } = toReadDetails(created);
  return {
    details,
    settings,
    secrets,
    timeouts: { nameMs: timeouts.name_timeout, connectMs: timeouts.connect_timeout, answerMs: timeouts.answer_timeout },
    points: points.flatMap((point) => (point instanceof UsageError ? [] : [point])),
  };
}

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
  const { type: _, ...details } = toJsonSchema(DETAILS[type].create).properties ?? {};
  enter("details", { properties: details });
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

/** What follows the last colon is a type only if it is one. */
export function splitType(text: string): { readonly address: string; readonly type: DataType | undefined } {
  const colon = text.lastIndexOf(":");
  const type = colon <= 0 ? undefined : parseDataType(text.slice(colon + 1));
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
    return new UsageError(
      `${JSON.stringify(word)} is no address of ${driver.type}, and ${key} is no key of it${meant ? `; did you mean ${meant}?` : ""}; known keys: ${keys.join(", ")}`,
    );
  }
}
