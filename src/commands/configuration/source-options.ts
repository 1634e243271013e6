import path from "node:path";
import type { AnyDriver } from "../../../drivers/driver.ts";
import { boundOptions, readProfile } from "../../configuration/bindings.ts";
import type { DetailsType } from "../../model/details.ts";
import { type Settings, sourceSettingsSchema } from "../../model/settings.ts";
import { entryOf } from "../device/device.ts";
import { UsageError } from "../io.ts";
import { fullKey, issueWords, type JsonSchema, keyIn, keysOf, knownWords, noField, parseFields, toJsonSchema } from "./fields.ts";
import { type KeptPart, keptOptionsOf, keysOfChange, type OptionChange, requireCollectorHere } from "./kept-here.ts";
import { keysOfSource, SOURCE_PASSWORD } from "./source-details.ts";
import { SOURCE_FIELDS } from "./source-fields.ts";

/** Options of a data source that this machine keeps beside the API's details, as `source add` and `source set` take them. */

/** Keys that people type as they stand in an export or in the API, and the option that takes them. */
const VERB_OPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(SOURCE_FIELDS.flatMap(({ field, option }) => [field, option].map((key) => [key, `--${option}`]))),
  name: "--name",
};
const SHARED: ReadonlySet<string> = new Set(Object.keys(sourceSettingsSchema.shape));

/** Words of a source by where they belong: details for the API, and options that this machine keeps. */
export interface SourceWords {
  readonly details: readonly string[];
  readonly options: OptionChange;
}

/** Keys for words: those of every source and of the driver, without those that name where a password is. */
function optionKeysOf(driver: AnyDriver | undefined): ReadonlyMap<string, JsonSchema> {
  const keys = [...keysOf(toJsonSchema(sourceSettingsSchema)), ...(driver ? keysOf(toJsonSchema(driver.settings)) : [])];
  return new Map(keys.filter(([key]) => !key.startsWith("password_")));
}

const driverOf = async (type: DetailsType): Promise<AnyDriver | undefined> => (await entryOf(type)?.driver())?.default;

/**
 * Tells the two apart by their keys. Throws UsageError: a key is neither, or an option of the verb; or this is not the machine that keeps such
 * options.
 */
export async function sourceWords(type: DetailsType, words: readonly string[], settings: Settings): Promise<SourceWords> {
  const details = keysOfSource(type);
  const others = words.filter((word) => {
    const key = keyIn(word);
    return key !== undefined && !details.has(fullKey(key, details));
  });
  if (others.length === 0) return { details: words, options: { given: {}, removed: [] } };
  const misplaced = others.flatMap((word) => {
    const [key, text] = [keyIn(word) ?? "", word.slice(word.indexOf("=") + 1)];
    const option = VERB_OPTIONS[key];
    return option === undefined ? [] : [`${key}: is an option of this verb: ${option} ${text === "" ? "…" : text}`];
  });
  if (misplaced.length > 0) throw new UsageError(misplaced.join("\n"));
  const keys = optionKeysOf(await driverOf(type));
  const local = others.filter((word) => keys.has(fullKey(keyIn(word) ?? "", keys)));
  const unknown = others.filter((word) => !local.includes(word));
  if (unknown.length > 0) {
    const known = new Map([...details, ...keys]);
    throw new UsageError([...unknown.map((word) => noField(word, known, SOURCE_PASSWORD)), knownWords(known)].join("\n"));
  }
  const [removals, changes] = [local.filter((word) => word.endsWith("=")), local.filter((word) => !word.endsWith("="))];
  const removed = removals.map((word) => fullKey(keyIn(word) ?? "", keys));
  const options = { given: withAbsolute(parseFields(changes, keys, SOURCE_PASSWORD)), removed };
  requireCollectorHere(settings, keysOfChange(options));
  return { details: words.filter((word) => !local.includes(word)), options };
}

/** A profile is named from where the person is; the service is elsewhere. */
const withAbsolute = (given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  typeof given["profile"] === "string" ? { ...given, profile: path.resolve(given["profile"]) } : given;

/**
 * The options as they will be, checked with the driver like those of the settings file, over these details as they are read. Throws UsageError,
 * which names the key and what would be right.
 */
export async function nextSourceOptions(
  type: DetailsType,
  change: OptionChange,
  settings: Settings,
  { source, details }: { readonly source: { readonly uuid: string; readonly name: string } | undefined; readonly details: object },
): Promise<KeptPart> {
  if (keysOfChange(change).length === 0) return { options: {}, pems: [], isChanged: false };
  const all = Object.entries({ ...(source && keptOptionsOf(settings, "source", source)), ...change.given });
  const options = Object.fromEntries(all.filter(([key]) => !change.removed.includes(key)));
  const driver = await driverOf(type);
  if (driver) requireRight(driver, boundOptions(type, options, settings, readProfile), details);
  return { options, pems: [], isChanged: true };
}

function requireRight(driver: AnyDriver, options: Readonly<Record<string, unknown>>, details: object): void {
  const part = (isShared: boolean) => Object.fromEntries(Object.entries(options).filter(([key]) => SHARED.has(key) === isShared));
  const [shared, own] = [sourceSettingsSchema.safeParse(part(true)), driver.settings.safeParse(part(false))];
  const mistakes = [shared, own].flatMap(({ error }) => (error ? issueWords(error) : []));
  if (mistakes.length > 0 || !own.success) throw new UsageError(mistakes.join("\n"));
  const read = driver.details.safeParse(details);
  const unfit = read.success ? driver.problemOf?.(read.data, own.data) : undefined;
  if (unfit) throw new UsageError(unfit.detail);
}
