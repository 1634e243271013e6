import * as z from "zod";
import { detailsWithoutUser } from "../../model/endpoint-url.ts";
import { openCollectors } from "./collectors.ts";
import { openDataSinks } from "./data-sinks.ts";
import { openDataSources } from "./data-sources.ts";
import type { Database } from "./database.ts";
import { KEPT, type Kept, KINDS, type Kind, refusalOf } from "./import-file.ts";
import { openInventory } from "./inventory.ts";
import type { PageRequest } from "./pages.ts";
import { openSites } from "./sites.ts";
import { openVariables } from "./variables.ts";

/**
 * The one form in which a configuration is written outside its database: by export, by backups, for import and for restore. A JSON object
 * with its version and a list of records of each kind, as the API answers them. A backup has in addition what only this machine can use.
 */

const VERSION = 1;

/** Columns of the lists that only a backup has. */
const COLUMNS: Readonly<Record<Kept, readonly string[]>> = {
  api_keys: ["id", "hash", "role", "collector", "file", "created_at", "name"],
  secrets: ["owner", "field", "sealed"],
  audit: ["id", "at", "role", "key_id", "key_name", "address", "operation", "resource", "fields", "name", "changes", "os_user"],
};
/** Columns of bytes: hexadecimal digits in the document. */
const BYTES: ReadonlySet<string> = new Set(["hash", "sealed"]);
/** Rows of one read: it blocks the server's thread for a millisecond or so. */
const ROWS_AT_ONCE = 200;

interface AnyPage {
  readonly data: readonly unknown[];
  readonly metadata: { readonly next_cursor: string | null };
}

/**
 * The text of the document, piece by piece: a record on each line. Secrets are not among the records. `kept`: lists that only a backup has. `db` is
 * to read one state until the end. Throws UnrestorableError with `kept`: a restore would refuse a record.
 */
export function* documentText(db: Database, kept: readonly Kept[]): Generator<string> {
  const pages = pagesOf(db);
  yield `{"version":${VERSION}`;
  for (const kind of KINDS) yield* listText(kind, kept.length > 0 ? restorable(kind, pages(kind)) : pages(kind));
  for (const one of kept) yield* listText(one, keptPages(db, one));
  yield "\n}\n";
}

/** A backup that a restore refuses is none. */
export class UnrestorableError extends Error {}

function* restorable(kind: Kind, pages: Iterable<readonly unknown[]>): Generator<readonly unknown[]> {
  for (const page of pages) {
    for (const record of page) {
      const refusal = refusalOf(kind, record);
      if (refusal !== undefined) throw new UnrestorableError(refusal);
    }
    yield page;
  }
}

function* listText(name: string, pages: Iterable<readonly unknown[]>): Generator<string> {
  yield `,\n"${name}":[`;
  let before = "\n";
  for (const page of pages)
    if (page.length > 0) {
      yield before + page.map((record) => JSON.stringify(record)).join(",\n");
      before = ",\n";
    }
  yield "]";
}

function pagesOf(db: Database): (kind: Kind) => Generator<readonly unknown[]> {
  const collectors = openCollectors(db);
  const sites = openSites(db);
  // Nothing is created here: neither the store of secrets nor the units of what is filled in have a part in it.
  const none = { replace: () => {}, has: () => false, read: () => ({}) };
  const readers: Readonly<Record<Kind, (request: PageRequest) => AnyPage>> = {
    sites: sites.list,
    collectors: openInventory(db, "collectors", sites).list,
    machines: openInventory(db, "machines", sites).list,
    data_sources: openDataSources(db, collectors, none, "seconds").list,
    data_sinks: openDataSinks(db, collectors, none, "seconds").list,
    variables: openVariables(db, collectors).list,
  };
  return function* (kind) {
    let cursor: string | undefined;
    do {
      const { data, metadata } = readers[kind]({ cursor, filters: {}, reach: undefined });
      yield data.map(withoutUser);
      cursor = metadata.next_cursor ?? undefined;
    } while (cursor !== undefined);
  };
}

/** A database that no server has opened since may hold addresses with a user. */
const withoutUser = (record: unknown): unknown =>
  typeof record === "object" && record !== null && "details" in record
    ? { ...record, details: detailsWithoutUser(record.details).details }
    : record;

function* keptPages(db: Database, kept: Kept): Generator<readonly unknown[]> {
  const columns = COLUMNS[kept].map((one) => (BYTES.has(one) ? `hex(${one}) AS ${one}` : one));
  const select = db.prepare<[number], { readonly at_row: number }>(
    `SELECT rowid AS at_row, ${columns.join(", ")} FROM ${kept} WHERE rowid > ? ORDER BY rowid LIMIT ${ROWS_AT_ONCE}`,
  );
  for (let rows = select.all(0); rows.length > 0; rows = select.all(rows.at(-1)?.at_row ?? 0))
    yield rows.map(({ at_row: _, ...row }) => row);
}

const rowsSchema = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()]))).default([]);

/** Lists that only a backup has; undefined: it is an export. Throws where a list of it is wrong. */
export function keptOf(content: object): Readonly<Record<Kept, z.output<typeof rowsSchema>>> | undefined {
  if (!KEPT.some((kept) => kept in content)) return undefined;
  return z.object({ api_keys: rowsSchema, secrets: rowsSchema, audit: rowsSchema }).parse(content);
}

/** Puts the lists of a backup in the place of those in the database. */
export function replaceKept(db: Database, lists: NonNullable<ReturnType<typeof keptOf>>): void {
  for (const kept of KEPT) {
    const values = COLUMNS[kept].map((one) => (BYTES.has(one) ? `unhex(@${one})` : `@${one}`));
    db.exec(`DELETE FROM ${kept}`);
    const insert = db.prepare(`INSERT INTO ${kept} (${COLUMNS[kept].join(", ")}) VALUES (${values.join(", ")})`);
    for (const row of lists[kept]) insert.run(row);
  }
}
