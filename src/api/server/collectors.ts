import type { Database } from "./database.ts";
import { databaseEpoch } from "./database.ts";

/** The collectors that the server knows, each with the revision of its configuration. */
export interface Collectors {
  ensure(uuid: string): void;
  exists(uuid: string): boolean;
  /** A new revision, after a change that the collector must see. */
  touch(uuid: string): void;
  /** Undefined for an unknown collector. */
  revision(uuid: string): string | undefined;
}

export function openCollectors(db: Database): Collectors {
  const epoch = databaseEpoch(db);
  const insert = db.prepare<[string]>("INSERT INTO collectors (uuid) VALUES (?) ON CONFLICT DO NOTHING");
  const update = db.prepare<[string]>("UPDATE collectors SET revision = revision + 1 WHERE uuid = ?");
  const select = db.prepare<[string], { revision: number }>("SELECT revision FROM collectors WHERE uuid = ?");
  return {
    ensure: (uuid) => void insert.run(uuid),
    exists: (uuid) => select.get(uuid) !== undefined,
    touch: (uuid) => void update.run(uuid),
    revision: (uuid) => {
      const row = select.get(uuid);
      return row && `${epoch}-${row.revision}`;
    },
  };
}
