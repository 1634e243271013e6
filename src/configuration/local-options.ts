import { nearest } from "../base/nearest.ts";

type LocalOptions = Readonly<Record<string, unknown>>;
type Named = { readonly uuid: string; readonly name: string | null };

/** Gives the entry of a settings map that is meant for a record: by uuid, else by name. */
export function localOptionsIn(entries: Readonly<Record<string, LocalOptions>>): (record: Named) => LocalOptions {
  const byUuid = new Map<string, LocalOptions>();
  for (const [key, options] of Object.entries(entries)) {
    const uuid = key.toLowerCase();
    if (!byUuid.has(uuid)) byUuid.set(uuid, options);
  }
  return ({ uuid, name }) => byUuid.get(uuid) ?? (name !== null && Object.hasOwn(entries, name) ? (entries[name] ?? {}) : {});
}

/** Works as localOptionsIn does, for one record. */
export const localOptions = (entries: Readonly<Record<string, LocalOptions>>, record: Named): LocalOptions =>
  localOptionsIn(entries)(record);

/** Names that are listed where nothing fits. */
const MAX_LISTED = 10;

/** An entry of a settings map that is meant for no record that there is. */
export interface UnusedOption {
  /** The place where it is in the settings. */
  readonly path: readonly [setting: string, key: string];
  readonly message: string;
}

/**
 * Entries of a settings map that are meant for no record that there is: with a misspelt name they would be without effect and without a
 * word. `setting` is the map's name, `kind` what it is about. Pure.
 */
export function unusedOptions(
  setting: string,
  kind: string,
  entries: Readonly<Record<string, LocalOptions>>,
  records: readonly Named[],
): readonly UnusedOption[] {
  const known = new Set(records.flatMap(({ uuid, name }) => (name === null ? [uuid] : [uuid, name])));
  const names = records.flatMap(({ name }) => (name === null ? [] : [name]));
  return Object.keys(entries)
    .filter((key) => !known.has(key) && !known.has(key.toLowerCase()))
    .map((key) => {
      const meant = nearest(key, names);
      const listed = names.length > MAX_LISTED ? [...names.slice(0, MAX_LISTED), "…"] : names;
      const right = meant !== undefined ? `did you mean ${meant}?` : names.length > 0 ? `there are ${listed.join(", ")}` : "there is none";
      return { path: [setting, key], message: `no ${kind} of this collector has this name or uuid; ${right}` };
    });
}
