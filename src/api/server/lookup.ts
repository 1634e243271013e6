import type { Database } from "./database.ts";
import { HttpProblem, notFound } from "./errors.ts";
import type { Reach } from "./pages.ts";

/** A record by its uuid, where the key reaches it. Throws HttpProblem 404: a record out of reach is absent (design/api-decisions). */
export function finder<Row>(
  what: string,
  byUuid: { get(uuid: string): Row | undefined },
  /** What `reach` is compared with. */
  reachedBy: (row: Row) => string,
): (uuid: string, reach: Reach) => Row {
  return (uuid, reach) => {
    const row = byUuid.get(uuid);
    if (!row || (reach && !reach.includes(reachedBy(row)))) throw notFound(what);
    return row;
  };
}

/** Names are unique within one collector or data source: throws HttpProblem 409 where another record than `uuid` has this one. */
export function nameCheck(
  db: Database,
  table: "data_sinks" | "variables",
  within: "collector" | "data_source",
  words: { readonly what: string; readonly within: string },
): (uuid: string, owner: string, name: string | null | undefined) => void {
  const named = db.prepare<[string, string], string>(`SELECT uuid FROM ${table} WHERE ${within} = ? AND name = ?`).pluck();
  return (uuid, owner, name) => {
    const taken = name === null || name === undefined ? undefined : named.get(owner, name);
    if (taken !== undefined && taken !== uuid)
      throw new HttpProblem(409, `the name is taken by ${words.what} ${taken} of this ${words.within}: choose another one`);
  };
}

/** Uuids of what a collector has in this table, in creation order. */
export function uuidsByCollector(db: Database, table: "data_sources" | "data_sinks"): (collector: string) => string[] {
  const uuids = db.prepare<[string], string>(`SELECT uuid FROM ${table} WHERE collector = ? ORDER BY id`).pluck();
  return (collector) => uuids.all(collector);
}
