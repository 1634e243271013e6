import { createSecretKey } from "node:crypto";
import type { Page } from "../../model/resources.ts";
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

/** How a list of one table is asked for; the table is named `r` and has a rising `id`. */
export interface PageConditions {
  /** Cursors of one operation are no good for another. */
  readonly operation: string;
  /** The column or expression that `reach` is compared with. */
  readonly reach: string;
  /** The column that a filter is compared with, by query parameter. */
  readonly filters: Readonly<Record<string, string>>;
}

/** One table as lists read it. */
export interface PagedTable<Row, T> extends PageConditions {
  /** A SELECT without WHERE. */
  readonly select: string;
  readonly toRecord: (row: Row) => T;
}

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

function rowReader<Row extends { readonly id: number }, T>(
  db: Database,
  table: PagedTable<Row, T>,
): (request: PageRequest) => { readonly rows: readonly Row[]; readonly next_cursor: string | null } {
  const query = queryOf(db, table, (where) =>
    db.prepare<unknown[], Row>(`${table.select} WHERE r.id > ?${where} ORDER BY r.id LIMIT ${PAGE_SIZE + 1}`),
  );
  return (request) => {
    const { statement, parameters, nextCursor } = query(request);
    const rows = statement.all(...parameters);
    const shown = rows.slice(0, PAGE_SIZE);
    const last = shown.at(-1);
    return { rows: shown, next_cursor: rows.length > PAGE_SIZE && last ? nextCursor(last.id) : null };
  };
}

/** What of a database is asked for a page: `prepare` makes the statement for some conditions. Throws HttpProblem 422 where the cursor is not good. */
export function queryOf<S>(
  db: Database,
  table: PageConditions,
  prepare: (where: string) => S,
): (request: PageRequest) => {
  readonly statement: S;
  readonly parameters: readonly unknown[];
  readonly nextCursor: (lastId: number) => string;
} {
  const key = createSecretKey(cursorKey(db));
  /** By its conditions, of which there are as many as there are sets of parameters. */
  const prepared = new Map<string, S>();
  const statement = (where: string): S => {
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
    return {
      statement: statement(where.join("")),
      parameters: [after, ...wanted.map(([, values]) => (values.length === 1 ? values[0] : JSON.stringify(values)))],
      nextCursor: (lastId) => encodeCursor(key, [lastId], binding),
    };
  };
}
