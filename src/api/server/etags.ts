import { hash } from "node:crypto";
import { type Database, databaseEpoch } from "./database.ts";
import { HttpProblem } from "./errors.ts";

/** Tables whose records count their changes. */
const TABLES = ["data_sources", "data_sinks", "variables", "sites", "collectors", "machines"] as const;
export type VersionedTable = (typeof TABLES)[number];

/**
 * ETags of one record. Those of a data source have two parts: its configuration, which If-Match is about and no report changes, and, where the
 * record is answered with its status, a digest of that. The record must be there.
 */
export interface Etags {
  /** Of the configuration alone. */
  of(table: VersionedTable, uuid: string): string;
  /** Of the whole record as it is answered. */
  ofContent(table: VersionedTable, record: { readonly uuid: string }): string;
}

/** The only records that change without their configuration. */
const WITH_STATUS: ReadonlySet<VersionedTable> = new Set(["data_sources"]);

export function openEtags(db: Database): Etags {
  const epoch = databaseEpoch(db);
  const statements = new Map(
    // The id: a record that is deleted and created again under its uuid is another one.
    TABLES.map(
      (table) => [table, db.prepare<[string], string>(`SELECT id || '-' || version FROM ${table} WHERE uuid = ?`).pluck()] as const,
    ),
  );
  const of: Etags["of"] = (table, uuid) => `"${epoch}-${statements.get(table)?.get(uuid) ?? 0}"`;
  return {
    of,
    ofContent(table, record) {
      const tag = of(table, record.uuid);
      return WITH_STATUS.has(table) ? `${tag.slice(0, -1)}.${digest(record)}"` : tag;
    },
  };
}

/** RFC 9110, 13.1.2: a list of tags compared weakly, or `*`. */
export function matchesNone(ifNoneMatch: string | undefined, etag: string): boolean {
  return tags(ifNoneMatch).some((tag) => tag === "*" || tag.replace(/^W\//, "") === etag);
}

/** RFC 9110, 13.1.1: a list of tags compared strongly, or `*`. Throws HttpProblem 412 where If-Match is there and none fits. */
export function requireMatch(ifMatch: string | undefined, etag: string): void {
  if (ifMatch === undefined || tags(ifMatch).some((tag) => tag === "*" || tag.replace(STATUS_PART, '"') === etag)) return;
  throw new HttpProblem(412, "the record has changed since it was read (If-Match): read it again and repeat the change on its new content");
}

const STATUS_PART = /\.[\w-]+"$/;
const digest = (record: object): string => hash("sha256", JSON.stringify(record), "base64url").slice(0, 16);

const tags = (header: string | undefined): readonly string[] => (header ?? "").split(",").map((tag) => tag.trim());
