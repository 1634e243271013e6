/** Each source's last layouts: what is under way names no other as a rule, and of a layout as large as the configuration no more are kept. */
export interface RecentLayouts<K, T> {
  get(key: K): T | undefined;
  /** The oldest of too many of this source is forgotten; one that is known stays where it is. */
  add(key: K, source: string, value: T): void;
  entries(): readonly (readonly [K, T])[];
}

/** `kept`: of each source. The host and the store have to agree on it. */
export function createRecentLayouts<K, T>(kept = 2): RecentLayouts<K, T> {
  const known = new Map<K, T>();
  /** By source, the oldest first. */
  const keysOf = new Map<string, K[]>();
  return {
    get: (key) => known.get(key),
    add(key, source, value) {
      if (known.has(key)) return;
      known.set(key, value);
      const keys = keysOf.get(source) ?? [];
      keys.push(key);
      keysOf.set(source, keys);
      for (const old of keys.splice(0, keys.length - kept)) known.delete(old);
    },
    entries: () => [...known],
  };
}
