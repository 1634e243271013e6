/** What must change so that what runs is what is wanted. Pure; a fingerprint covers all that the thing uses. */
export function reconcile<T, Print>(
  wanted: ReadonlyMap<string, T>,
  running: ReadonlyMap<string, Print>,
  fingerprint: (item: T) => Print,
): { readonly stop: readonly string[]; readonly start: readonly string[] } {
  const prints = new Map([...wanted].map(([id, item]) => [id, fingerprint(item)]));
  return {
    stop: [...running].filter(([id, print]) => prints.get(id) !== print).map(([id]) => id),
    start: [...prints].filter(([id, print]) => running.get(id) !== print).map(([id]) => id),
  };
}

/** The same text for the same content, whatever the order of keys. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, v: unknown) =>
    typeof v === "object" && v !== null && !Array.isArray(v)
      ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  );
}
