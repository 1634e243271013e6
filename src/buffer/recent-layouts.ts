/** Each source's last layouts: what is under way names no other as a rule, and of a layout as large as the configuration no more are kept. */
export interface RecentLayouts<K, T> {
  get(key: K): T | undefined;
  /** The oldest of too many of this source is forgotten; one that is known stays where it is. */
  add(key: K, source: string, value: T): void;
  entries(): readonly (readonly [K, T])[];
}

/** `kept`: of each source. The host and the store have to agree on it. */
export function createRecentLayouts<K, T>(kept = 2): RecentLayouts<K, T> {
  const known = new Map<K, { readonly source: string; readonly value: T }>();
  return {
    get: (key) => known.get(key)?.value,
    add(key, source, value) {
      if (known.has(key)) return;
      const same = [...known].filter(([, one]) => one.source === source);
      for (const [old] of same.slice(0, Math.max(0, same.length + 1 - kept))) known.delete(old);
      known.set(key, { source, value });
    },
    entries: () => [...known].map(([key, { value }]) => [key, value]),
  };
}
