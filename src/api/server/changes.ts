import type { Database } from "./database.ts";

/** What changes in a database, without asking its tables again. */
export interface Changes {
  /**
   * Another number once another connection, of the command line, has committed anything. SQLite is asked once in one run of synchronous
   * code: authorization and answer of one request go by the same number.
   */
  others(): number;
  /** Calls `changed` at once for every row that this connection inserts, changes or deletes, also where it is rolled back later. `changed` must not use the database. */
  watch(table: string, changed: () => void): void;
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
    watch(table, changed) {
      const name = `changed_${listeners++}`;
      db.function(name, () => {
        changed();
        return null;
      });
      // Triggers of this connection alone: nothing of them is in the file.
      for (const event of ["INSERT", "DELETE", "UPDATE"])
        db.exec(`CREATE TEMP TRIGGER ${name}_${event} AFTER ${event} ON main.${table} BEGIN SELECT ${name}(); END`);
    },
  };
  known.set(db, changes);
  return changes;
}
