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

/** As localOptionsIn, for one record. */
export const localOptions = (entries: Readonly<Record<string, LocalOptions>>, record: Named): LocalOptions =>
  localOptionsIn(entries)(record);
