import { createSecretKey } from "node:crypto";
import type { Statement } from "better-sqlite3";
import type { Page } from "../../model/resources.ts";
import { cursorBinding, decodeCursor, encodeCursor, type Filters } from "./cursor.ts";
import { cursorKey, type Database } from "./database.ts";
import { invalid } from "./errors.ts";

/** Records on one page (DESIGN, 6). */
export const PAGE_SIZE = 50;

/** Values of the table's reach column that a key reaches; undefined: all. A record out of reach is absent: an empty page, 404 (DESIGN, 6). */
export type Reach = readonly string[] | undefined;

export interface PageRequest {
  readonly cursor: string | undefined;
  /** By query parameter. */
  readonly filters: Filters;
  readonly reach: Reach;
}

/** One table as lists read it; in its SQL the table is named `r` and has a rising `id`. */
export interface PagedTable<Row, T> {
  /** Cursors of one operation are no good for another. */
  readonly operation: string;
  /** A SELECT without WHERE. */
  readonly select: string;
  /** The column or expression that `reach` is compared with. */
  readonly reach: string;
  /** The column that a filter is compared with, by query parameter. */
  readonly filters: Readonly<Record<string, string>>;
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
 * Reads pages of one table in creation order, each by its key and never by counting: a page costs the same wherever it is, and
 * what is created or deleted between two pages neither repeats nor hides another record. Throws HttpProblem 422 where the cursor is wrong.
 */
export function pageReader<Row extends { readonly id: number }, T>(
  db: Database,
  table: PagedTable<Row, T>,
): (request: PageRequest) => Page<T> {
  const read = rowReader<Row>(db, table, (sql) => db.prepare(sql));
  return (request) => {
    const { rows, next_cursor } = read(request, ({ id }) => id);
    return { data: rows.map(table.toRecord), metadata: { next_cursor } };
  };
}

/** One row of a table whose `select` gives the id and the record as JSON. */
type TextRow = readonly [id: number, record: string];

/** As pageReader, where the database makes the JSON of each record: the text of the whole page. */
export function pageTextReader(db: Database, table: Omit<PagedTable<TextRow, never>, "toRecord">): (request: PageRequest) => string {
  // Lists: an object for each row costs as much as reading it.
  const read = rowReader<TextRow>(db, table, (sql) => db.prepare<unknown[], TextRow>(sql).raw());
  return (request) => {
    const { rows, next_cursor } = read(request, ([id]) => id);
    const records = rows.map(([, record]) => record).join(",");
    return `{"data":[${records}],"metadata":${JSON.stringify({ next_cursor })}}`;
  };
}

interface PageRows<Row> {
  readonly rows: readonly Row[];
  readonly next_cursor: string | null;
}

function rowReader<Row>(
  db: Database,
  table: Omit<PagedTable<Row, unknown>, "toRecord">,
  prepare: (sql: string) => Statement<unknown[], Row>,
): (request: PageRequest, idOf: (row: Row) => number) => PageRows<Row> {
  const key = createSecretKey(cursorKey(db));
  /** By their conditions, of which there are as many as there are sets of parameters. */
  const statements = new Map<string, Statement<unknown[], Row>>();
  const statementOf = (where: string): Statement<unknown[], Row> => {
    const statement = statements.get(where) ?? prepare(`${table.select} WHERE r.id > ?${where} ORDER BY r.id LIMIT ${PAGE_SIZE + 1}`);
    statements.set(where, statement);
    return statement;
  };
  return ({ cursor, filters, reach }, idOf) => {
    const binding = cursorBinding(table.operation, filters);
    const [after] = cursor === undefined ? [0] : (decodeCursor(key, cursor, binding, 1) ?? []);
    if (after === undefined) throw cursorInvalid("query");
    const { where, parameters } = conditionsOf(table, filters, reach);
    const found = statementOf(where).all(after, ...parameters);
    const rows = found.slice(0, PAGE_SIZE);
    const last = rows.at(-1);
    return { rows, next_cursor: found.length > PAGE_SIZE && last !== undefined ? encodeCursor(key, [idOf(last)], binding) : null };
  };
}

/**
 * Not `= ?`: beside ORDER BY, SQLite plans by the value that is bound there, and compiles the statement again whenever one is bound, which takes
 * as long as reading the page.
 */
const ONE_VALUE = "= +?";

/** SQL that follows the condition on the cursor, and the values for its placeholders. */
function conditionsOf(
  table: Pick<PagedTable<unknown, unknown>, "filters" | "reach">,
  filters: Filters,
  reach: Reach,
): { readonly where: string; readonly parameters: readonly unknown[] } {
  const conditions: [column: string | undefined, values: readonly string[]][] = [];
  for (const [name, values] of Object.entries(filters)) if (values !== undefined) conditions.push([table.filters[name], values]);
  // With nothing else to go by, several collectors are compared while the rows are read in their order, and never sorted.
  if (reach) conditions.push([conditions.length === 0 && reach.length > 1 ? `+${table.reach}` : table.reach, reach]);
  // One value is compared as it is: the index then gives the rows in their order.
  const where = conditions.map(
    ([column, { length }]) => ` AND ${column} ${length === 1 ? ONE_VALUE : "IN (SELECT value FROM json_each(?))"}`,
  );
  return {
    where: where.join(""),
    parameters: conditions.map(([, values]) => (values.length === 1 ? values[0] : JSON.stringify(values))),
  };
}
