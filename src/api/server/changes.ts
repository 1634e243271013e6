import type { Database } from "./database.ts";

/** What changes in a database, without asking its tables again. */
export interface Changes {
  /**
   * Another number once another connection, of the command line, has committed anything. SQLite is asked once in one run of synchronous
   * code: authorization and answer of one request go by the same number.
   */
  others(): number;
  /**
   * Tells of every row that this connection inserts, changes or deletes, by its id, at once: what is rolled back later was told as well.
   * `moved`: it came, went, or one of `columns` changed. The listener must not use the database.
   */
  watch(table: string, columns: readonly string[], changed: (id: number, moved: boolean) => void): void;
}

const known = new WeakMap<Database, Changes>();

/** One for each database, however often it is asked for. */
export function watchChanges(db: Database): Changes {
  const found = known.get(db);
  if (found) return found;
  const version = db.prepare<[], number>("PRAGMA data_version").pluck();
  let asked: number | undefined;
  const forget = (): void => {
    asked = undefined;
  };
  let listeners = 0;
  const changes: Changes = {
    others() {
      if (asked !== undefined) return asked;
      asked = version.get() ?? 0;
      queueMicrotask(forget);
      return asked;
    },
    watch(table, columns, changed) {
      const name = `changed_${listeners++}`;
      db.function(name, (id: unknown, moved: unknown) => {
        changed(Number(id), moved === 1);
        return null;
      });
      const differs = columns.map((column) => `old.${column} IS NOT new.${column}`).join(" OR ") || "0";
      // Triggers of this connection alone: nothing of them is in the file.
      for (const [event, call] of [
        ["INSERT", `${name}(new.id, 1)`],
        ["DELETE", `${name}(old.id, 1)`],
        ["UPDATE", `${name}(new.id, ${differs})`],
      ])
        db.exec(`CREATE TEMP TRIGGER ${name}_${event} AFTER ${event} ON main.${table} BEGIN SELECT ${call}; END`);
    },
  };
  known.set(db, changes);
  return changes;
}

/** Texts by record id. Bounded in characters; the oldest go first. */
export interface TextCache {
  get(id: number): string | undefined;
  /** Gives the text back. */
  put(id: number, text: string): string;
  drop(id: number): void;
  clear(): void;
}

export function createTextCache(maxCharacters: number): TextCache {
  const texts = new Map<number, string>();
  let total = 0;
  const drop = (id: number): void => {
    total -= texts.get(id)?.length ?? 0;
    texts.delete(id);
  };
  return {
    get: (id) => texts.get(id),
    put(id, text) {
      drop(id);
      texts.set(id, text);
      total += text.length;
      for (const oldest of texts.keys()) {
        if (total <= maxCharacters) break;
        drop(oldest);
      }
      return text;
    },
    drop,
    clear() {
      texts.clear();
      total = 0;
    },
  };
}
