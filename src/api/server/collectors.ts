import type { Database } from "./database.ts";
import { databaseEpoch } from "./database.ts";

/** The collectors that the server knows, each with the revision of its configuration. */
export interface Collectors {
  ensure(uuid: string): void;
  exists(uuid: string): boolean;
  /** Those at the same site, itself included; where it has no site, itself alone (API-V2, 1). */
  atSameSite(uuid: string): readonly string[];
  /** The place where it is located; null: nowhere that is known. */
  siteOf(uuid: string): string | null;
  /** A new revision, after a change that the collector must see. */
  touch(uuid: string): void;
  /** Undefined for an unknown collector. */
  revision(uuid: string): string | undefined;
}

export function openCollectors(db: Database): Collectors {
  const epoch = databaseEpoch(db);
  const insert = db.prepare<[string]>("INSERT INTO collectors (uuid) VALUES (?) ON CONFLICT DO NOTHING");
  const update = db.prepare<[string]>("UPDATE collectors SET revision = revision + 1 WHERE uuid = ?");
  const select = db.prepare<[string], { id: number; revision: number; site: string | null }>(
    "SELECT id, revision, site FROM collectors WHERE uuid = ?",
  );
  // As in pages, `= +?`: this is asked with every request of a collector's key.
  const siblings = db.prepare<[string], { uuid: string }>("SELECT uuid FROM collectors WHERE site = +? ORDER BY id");
  const siteOf = (uuid: string): string | null => select.get(uuid)?.site ?? null;
  return {
    ensure: (uuid) => void insert.run(uuid),
    exists: (uuid) => select.get(uuid) !== undefined,
    atSameSite(uuid) {
      const site = siteOf(uuid);
      return site === null ? [uuid] : siblings.all(site).map((sibling) => sibling.uuid);
    },
    siteOf,
    touch: (uuid) => void update.run(uuid),
    revision: (uuid) => {
      const row = select.get(uuid);
      // One that was deleted and created again has another id: no revision of it is one of before.
      return row && `${epoch}-${row.id}-${row.revision}`;
    },
  };
}
