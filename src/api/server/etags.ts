import { type Database, databaseEpoch } from "./database.ts";
import { HttpProblem } from "./errors.ts";

/** Tables whose records count their changes. */
const TABLES = ["data_sources", "data_sinks", "variables", "sites", "collectors", "machines"] as const;
export type VersionedTable = (typeof TABLES)[number];

/** ETags that name the configuration of one record, not its status: reports change none. */
export interface Etags {
  /** The record must be there. */
  of(table: VersionedTable, uuid: string): string;
}

export function openEtags(db: Database): Etags {
  const epoch = databaseEpoch(db);
  const statements = new Map(
    // The id: a record that is deleted and created again under its uuid is another one.
    TABLES.map(
      (table) => [table, db.prepare<[string], string>(`SELECT id || '-' || version FROM ${table} WHERE uuid = ?`).pluck()] as const,
    ),
  );
  return { of: (table, uuid) => `"${epoch}-${statements.get(table)?.get(uuid) ?? 0}"` };
}

/** RFC 9110, 13.1.2: a list of tags compared weakly, or `*`. */
export function matchesNone(ifNoneMatch: string | undefined, etag: string): boolean {
  return tags(ifNoneMatch).some((tag) => tag === "*" || tag.replace(/^W\//, "") === etag);
}

/** RFC 9110, 13.1.1: a list of tags compared strongly, or `*`. Throws HttpProblem 412 where If-Match is there and none fits. */
export function requireMatch(ifMatch: string | undefined, etag: string): void {
  if (ifMatch === undefined || tags(ifMatch).some((tag) => tag === "*" || tag === etag)) return;
  throw new HttpProblem(
    412,
    "the record has changed since it was read (If-Match): read it again and repeat the change on what is there now",
  );
}

const tags = (header: string | undefined): readonly string[] => (header ?? "").split(",").map((tag) => tag.trim());
