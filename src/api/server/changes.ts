import type { Database } from "./database.ts";

/**
 * Whether anything in a database may have changed since it was last asked: by this connection (SQLite's total_changes) or by another one,
 * of the command line (data_version). Far cheaper than reading again what has not.
 */
export interface Changes {
  /** Equal texts: nothing changed between them. */
  token(): string;
}

export function watchChanges(db: Database): Changes {
  const own = db.prepare<[], number>("SELECT total_changes()").pluck();
  const others = db.prepare<[], number>("PRAGMA data_version").pluck();
  return { token: () => `${others.get()}-${own.get()}` };
}

/** Values by key, each good until the database changes. Bounded; the oldest go first. */
export interface ChangeCache<T> {
  get(key: string, token: string): T | undefined;
  /** Gives the value back. `size` in whatever `maxSize` counts. */
  put(key: string, token: string, value: T, size: number): T;
}

export function createChangeCache<T>(maxSize: number): ChangeCache<T> {
  const entries = new Map<string, { readonly token: string; readonly value: T; readonly size: number }>();
  let total = 0;
  const forget = (key: string): void => {
    total -= entries.get(key)?.size ?? 0;
    entries.delete(key);
  };
  return {
    get(key, token) {
      const known = entries.get(key);
      return known?.token === token ? known.value : undefined;
    },
    put(key, token, value, size) {
      forget(key);
      entries.set(key, { token, value, size });
      total += size;
      for (const oldest of entries.keys()) {
        if (total <= maxSize) break;
        forget(oldest);
      }
      return value;
    },
  };
}
