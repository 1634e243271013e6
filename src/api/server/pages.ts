import { createSecretKey } from "node:crypto";
import type { Page } from "../../model/resources.ts";
import { createChangeCache, watchChanges } from "./changes.ts";
import { cursorBinding, decodeCursor, encodeCursor, type Filters } from "./cursor.ts";
import { cursorKey, type Database } from "./database.ts";
import { invalid } from "./errors.ts";

/** Records on one page (DESIGN, 6). */
export const PAGE_SIZE = 50;

/** Values of the table's reach column that a key reaches; undefined: all. What lies outside is absent: an empty page, 404 (DESIGN, 6). */
export type Reach = readonly string[] | undefined;

export interface PageRequest {
  readonly cursor: string | undefined;
  /** By query parameter. */
  readonly filters: Filters;
  readonly reach: Reach;
}

/** One table as lists read it. */
export interface PagedTable<Row, T> {
  /** Cursors of one operation are no good for another. */
  readonly operation: string;
  /** A SELECT without WHERE, in which the table is named `r` and has a rising `id`. */
  readonly select: string;
  /** The column or expression that `reach` is compared with. */
  readonly reach: string;
  /** The column that a filter is compared with, by query parameter. */
  readonly filters: Readonly<Record<string, string>>;
  readonly toRecord: (row: Row) => T;
}

/** A page as it is sent. */
export interface PageText {
  readonly json: Buffer;
}

/** Bytes of pages that are kept. */
const MAX_PAGE_BYTES = 16 * 2 ** 20;

/** Thrown where a cursor was altered, or another parameter is not as it was (API-V2, 4.5.5 and 4.5.6). */
export const cursorInvalid = (part: "query" | "body") =>
  invalid({
    loc: [part, "cursor"],
    msg: "the cursor is not valid: it was altered, or another parameter is not as it was on the previous page; start again without it",
    type: "cursor_invalid",
  });

/**
 * Reads pages of one table in creation order, each by its key and never by counting: a page costs the same wherever it lies, and
 * what is created or deleted between two pages neither repeats nor hides another record.
 */
export function pageReader<Row extends { readonly id: number }, T>(
  db: Database,
  table: PagedTable<Row, T>,
): (request: PageRequest) => Page<T> {
  const rowsOf = rowReader(db, table);
  return (request) => {
    const { rows, next_cursor } = rowsOf(request);
    return { data: rows.map(table.toRecord), metadata: { next_cursor } };
  };
}

/** As pageReader, for records that are kept as text: `toRecord` gives the JSON of a row. A page is made once until something changes. */
export function pageTextReader<Row extends { readonly id: number }>(
  db: Database,
  table: PagedTable<Row, string>,
): (request: PageRequest) => PageText {
  const rowsOf = rowReader(db, table);
  const changes = watchChanges(db);
  const pages = createChangeCache<Buffer>(MAX_PAGE_BYTES);
  return (request) => {
    const [key, token] = [JSON.stringify(request), changes.token()];
    const known = pages.get(key, token);
    if (known) return { json: known };
    const { rows, next_cursor } = rowsOf(request);
    const text = `{"data":[${rows.map(table.toRecord).join(",")}],"metadata":{"next_cursor":${JSON.stringify(next_cursor)}}}`;
    const json = Buffer.from(text);
    return { json: pages.put(key, token, json, json.length) };
  };
}

function rowReader<Row extends { readonly id: number }, T>(
  db: Database,
  table: PagedTable<Row, T>,
): (request: PageRequest) => { readonly rows: readonly Row[]; readonly next_cursor: string | null } {
  const key = createSecretKey(cursorKey(db));
  const prepare = (where: string) =>
    db.prepare<unknown[], Row>(`${table.select} WHERE r.id > ?${where} ORDER BY r.id LIMIT ${PAGE_SIZE + 1}`);
  /** By its conditions, of which there are as many as there are sets of parameters. */
  const prepared = new Map<string, ReturnType<typeof prepare>>();
  const statement = (where: string) => {
    const known = prepared.get(where) ?? prepare(where);
    prepared.set(where, known);
    return known;
  };
  return ({ cursor, filters, reach }) => {
    const binding = cursorBinding(table.operation, filters);
    const [after] = cursor === undefined ? [0] : (decodeCursor(key, cursor, binding, 1) ?? []);
    if (after === undefined) throw cursorInvalid("query");
    const wanted: [column: string | undefined, values: readonly string[]][] = [];
    for (const [name, values] of Object.entries(filters)) if (values !== undefined) wanted.push([table.filters[name], values]);
    // With nothing else to go by, several collectors are told apart while the rows are read in their order, and never sorted.
    if (reach) wanted.push([wanted.length === 0 && reach.length > 1 ? `+${table.reach}` : table.reach, reach]);
    // One value is compared as it is: the index then gives the rows in their order, whatever lies beside them.
    const where = wanted.map(([column, { length }]) => ` AND ${column} ${length === 1 ? "= ?" : "IN (SELECT value FROM json_each(?))"}`);
    const rows = statement(where.join("")).all(
      after,
      ...wanted.map(([, values]) => (values.length === 1 ? values[0] : JSON.stringify(values))),
    );
    const shown = rows.slice(0, PAGE_SIZE);
    const last = shown.at(-1);
    return { rows: shown, next_cursor: rows.length > PAGE_SIZE && last ? encodeCursor(key, [last.id], binding) : null };
  };
}
