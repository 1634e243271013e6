import { existsSync } from "node:fs";
import { plain } from "../../base/plain-text.ts";
import { changeKeptOptions, type KeptKind, type KeptOptions, readKeptOptions } from "../../configuration/kept-options.ts";
import { localOptions, localOptionsIn } from "../../configuration/local-options.ts";
import { messageOf } from "../../model/failure.ts";
import type { Settings } from "../../model/settings.ts";
import { asOwnerOf } from "../../os/owner.ts";
import { type CommandIo, complain, UsageError } from "../io.ts";

/** Options of a data source or data sink that this machine keeps beside the API's details, as verbs take them. */

type Options = Readonly<Record<string, unknown>>;
type Named = { readonly uuid: string; readonly name: string | null };

/** Words change options: given ones, with objects inside, and the keys that an empty text removes. */
export interface OptionChange {
  readonly given: Options;
  readonly removed: readonly string[];
}

export const keysOfChange = ({ given, removed }: OptionChange): readonly string[] => [...Object.keys(given), ...removed];

/** Options of this machine that are to be kept, and the certificates that they name copies of. */
export interface KeptPart {
  readonly options: Options;
  readonly pems: readonly Uint8Array[];
  /** False: the words change none of them. */
  readonly isChanged: boolean;
}

/** Makes a record with what this machine keeps of it: by its name before it is there, so that it never runs without. Returns its uuid. */
export async function createWithKept(
  settings: Settings,
  kind: KeptKind,
  name: string,
  { options, pems, isChanged }: KeptPart,
  create: () => Promise<string>,
): Promise<string> {
  if (!isChanged) return create();
  await changeOptions(settings, kind, (kept) => withOptions(kept, name, options), pems);
  let uuid: string;
  try {
    uuid = await create();
  } catch (error) {
    await changeOptions(settings, kind, (kept) => withOptions(kept, name, {}));
    throw error;
  }
  await changeOptions(settings, kind, (kept) => withOptions(withOptions(kept, name, {}), uuid, options), pems);
  return uuid;
}

/** Keeps the options of a record that there is, under its uuid. Throws UsageError. */
export async function keepOptions(
  settings: Settings,
  kind: KeptKind,
  { uuid, name }: Named,
  { options, pems, isChanged }: KeptPart,
): Promise<void> {
  if (!isChanged) return;
  await changeOptions(settings, kind, (kept) => withOptions(name === null ? kept : withOptions(kept, name, {}), uuid, options), pems);
}

/** Says of a change which options this machine keeps now, and which of them the settings file overrules. Pure. */
export function keptText(settings: Settings, kind: KeptKind, record: Named, { options, isChanged }: KeptPart): string {
  if (!isChanged) return "";
  const words = optionWords(options);
  const lost = overruled(settings, kind, record, options);
  return (
    plain`On this machine: ${words.length === 0 ? "no options" : words.join(" ")}\n` +
    (lost.length === 0 ? "" : `The settings file has ${lost.join(", ")} of this ${kind} too, and wins.\n`)
  );
}

/** Removes what this machine keeps of a deleted record, under its uuid. Never throws: says on stderr what stays. */
export async function forgetOptions(settings: Settings, kind: KeptKind, { uuid }: Named, io: CommandIo): Promise<void> {
  try {
    if (Object.keys(keptOptionsOf(settings, kind, { uuid, name: null })).length > 0)
      await changeOptions(settings, kind, (kept) => withOptions(kept, uuid, {}));
  } catch (error) {
    complain(io, `the options that this machine keeps of it stay: ${messageOf(error)}`);
  }
}

/** Throws UsageError: this is not the machine of the collector, which keeps such options. */
export function requireCollectorHere({ state_dir: stateDir }: Settings, keys: readonly string[]): void {
  if (existsSync(stateDir)) return;
  throw new UsageError(
    `${keys.join(", ")}: kept on the collector's own machine, and there is no collector here (no folder ${stateDir}); type this command there`,
  );
}

/** The options that this machine keeps of one data source or data sink. Throws UsageError. */
export const keptOptionsOf = (settings: Settings, kind: KeptKind, record: Named): Options => keptOptionsIn(settings, kind)(record);

/** The options that this machine keeps, by record. Throws UsageError. */
export function keptOptionsIn({ state_dir: stateDir }: Settings, kind: KeptKind): (record: Named) => Options {
  try {
    return localOptionsIn(readKeptOptions(stateDir, kind));
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** Changes what this machine keeps. Throws UsageError where it cannot be written. */
async function changeOptions(
  { state_dir: stateDir }: Settings,
  kind: KeptKind,
  change: (kept: KeptOptions) => KeptOptions,
  pems: readonly Uint8Array[] = [],
): Promise<void> {
  try {
    await asOwnerOf(stateDir, () => changeKeptOptions(stateDir, kind, change, pems));
  } catch (error) {
    throw new UsageError(`the options cannot be kept on this machine: ${messageOf(error)}; type the command with sudo`);
  }
}

/** The kept options with these for a key; without any where there are none. Pure. */
function withOptions(kept: KeptOptions, key: string, options: Options): KeptOptions {
  const others = Object.fromEntries(Object.entries(kept).filter(([known]) => known !== key));
  return Object.keys(options).length === 0 ? others : { ...others, [key]: options };
}

/** Kept options that the settings file has too, which then count no more. */
const overruled = (settings: Settings, kind: KeptKind, record: Named, options: Options): readonly string[] =>
  Object.keys(localOptions(settings[`${kind}s`], record)).filter((key) => Object.hasOwn(options, key));

/** Options as they would be typed; of a copied file that it is there. */
export const optionWords = (options: Options): readonly string[] =>
  Object.entries(options).flatMap(([key, value]) => {
    if (!isObject(value)) return [`${key}=${String(value)}`];
    const inner = Object.entries(value).map(([name, one]) => `${key}.${name}=${name.endsWith("_file") ? "(kept here)" : String(one)}`);
    return inner.length === 0 ? [`${key}=true`] : inner;
  });

const isObject = (value: unknown): value is Options => typeof value === "object" && value !== null && !Array.isArray(value);
