import { createSecretKey } from "node:crypto";
import type { Statement } from "better-sqlite3";
import type { Page } from "../../model/resources.ts";
import { cursorBinding, decodeCursor, encodeCursor, type Filters } from "./cursor.ts";
import { cursorKey, type Database } from "./database.ts";
import { invalid } from "./errors.ts";

/** Records on one page (design/api-decisions). */
export const PAGE_SIZE = 50;

/** Values of the table's reach column that a key reaches; undefined: all. A record out of reach is absent: an empty page, 404 (design/api-decisions). */
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
  const read = positionReader(db, table);
  const statementOf = keptStatements<Row>((where) =>
    db.prepare(`${table.select} WHERE r.id > ?${where} ORDER BY r.id LIMIT ${PAGE_SIZE + 1}`),
  );
  return (request) => {
    const { after, where, parameters, cursorAfter } = read(request);
    const found = statementOf(where).all(after, ...parameters);
    const rows = found.slice(0, PAGE_SIZE);
    const last = rows.at(-1);
    const next_cursor = found.length > PAGE_SIZE && last !== undefined ? cursorAfter(last.id) : null;
    return { data: rows.map(table.toRecord), metadata: { next_cursor } };
  };
}

/** One table whose records the database makes. */
export interface TextTable extends Pick<PagedTable<never, never>, "operation" | "reach" | "filters"> {
  /** Its name in the database. */
  readonly table: string;
  /** SQL of a record as JSON. */
  readonly record: string;
}

/** The records of a page, and the id of the last one where there are more. */
type TextRow = readonly [next: number | null, records: string];

/**
 * Works as pageReader does, where the database makes the JSON of the records, in one row: a row for each costs as much as reading it.
 */
export function pageTextReader(db: Database, table: TextTable): (request: PageRequest) => string {
  const read = positionReader(db, table);
  const statementOf = keptStatements<TextRow>((where) => {
    const rows = (after: string) => `FROM ${table.table} r WHERE r.id > ${after}${where}`;
    const page = `SELECT r.id, ${table.record} AS record ${rows("?")} ORDER BY r.id LIMIT ${PAGE_SIZE}`;
    const joined = `SELECT count(*) AS n, max(id) AS last, coalesce(group_concat(record, ','), '') AS records FROM (${page})`;
    const next = `iif(n = ${PAGE_SIZE} AND EXISTS (SELECT 1 ${rows("last")}), last, NULL)`;
    return db.prepare<unknown[], TextRow>(`SELECT ${next}, records FROM (${joined})`).raw();
  });
  return (request) => {
    const { after, where, parameters, cursorAfter } = read(request);
    // The conditions are in it twice, first in the question whether there are more.
    const [next, records] = statementOf(where).get(...parameters, after, ...parameters) ?? [null, ""];
    const metadata = JSON.stringify({ next_cursor: next === null ? null : cursorAfter(next) });
    return `{"data":[${records}],"metadata":${metadata}}`;
  };
}

/** The place where a page begins, and how it and its successor are found. */
interface Position {
  /** The id before its first record. */
  readonly after: number;
  /** SQL that follows the condition on the id. */
  readonly where: string;
  /** Values for the placeholders of `where`. */
  readonly parameters: readonly unknown[];
  /** The cursor of the page that begins after this id. */
  cursorAfter(id: number): string;
}

function positionReader(
  db: Database,
  table: Pick<PagedTable<never, never>, "operation" | "reach" | "filters">,
): (request: PageRequest) => Position {
  const key = createSecretKey(cursorKey(db));
  return ({ cursor, filters, reach }) => {
    const binding = cursorBinding(table.operation, filters);
    const [after] = cursor === undefined ? [0] : (decodeCursor(key, cursor, binding, 1) ?? []);
    if (after === undefined) throw cursorInvalid("query");
    return { after, ...conditionsOf(table, filters, reach), cursorAfter: (id) => encodeCursor(key, [id], binding) };
  };
}

/** Statements by their conditions, of which there are as many as there are sets of parameters. */
function keptStatements<Row>(prepare: (where: string) => Statement<unknown[], Row>): (where: string) => Statement<unknown[], Row> {
  const kept = new Map<string, Statement<unknown[], Row>>();
  return (where) => {
    const statement = kept.get(where) ?? prepare(where);
    kept.set(where, statement);
    return statement;
  };
}

/**
 * Not `= ?`: beside ORDER BY, SQLite plans by the value that is bound there, and compiles the statement again whenever one is bound, which takes
 * as long as reading the page.
 */
const ONE_VALUE = "= +?";

/** SQL that follows the condition on the cursor, and the values for its placeholders. */
function conditionsOf(
  table: Pick<PagedTable<never, never>, "filters" | "reach">,
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
