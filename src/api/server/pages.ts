import type { Page } from "../../model/resources.ts";
import { cursorBinding, decodeCursor, encodeCursor, type Filters } from "./cursor.ts";
import { cursorKey, type Database } from "./database.ts";
import { invalid } from "./errors.ts";

/** Records on one page (DESIGN, 6). */
export const PAGE_SIZE = 50;

export interface PageRequest {
  readonly cursor: string | undefined;
  /** By query parameter. */
  readonly filters: Filters;
  /** Collectors whose records the key reaches; undefined: all. */
  readonly reach: readonly string[] | undefined;
}

/**
 * Reads pages of one table in creation order, each by its key and never by counting: a page costs the same wherever it lies, and
 * what is created or deleted between two pages neither repeats nor hides another record.
 * `select` names its table `r`; `columns` says which column a filter compares.
 */
export function pageReader<Row extends { readonly id: number }, T>(
  db: Database,
  operation: string,
  select: string,
  columns: Readonly<Record<string, string>>,
  toRecord: (row: Row) => T,
): (request: PageRequest) => Page<T> {
  const key = cursorKey(db);
  return ({ cursor, filters, reach }) => {
    const binding = cursorBinding(operation, filters);
    const after = cursor === undefined ? 0 : decodeCursor(key, cursor, binding);
    if (after === undefined)
      throw invalid({
        loc: ["query", "cursor"],
        msg: "the cursor is not valid: it was altered, or another parameter is not as it was on the previous page; start again without it",
        type: "cursor_invalid",
      });
    const wanted = [...Object.entries(filters), ["collector", reach] as const].filter((entry) => entry[1] !== undefined);
    const where = wanted.map(([name]) => ` AND r.${columns[name]} IN (SELECT value FROM json_each(?))`).join("");
    const rows = db
      .prepare<unknown[], Row>(`${select} WHERE r.id > ?${where} ORDER BY r.id LIMIT ${PAGE_SIZE + 1}`)
      .all(after, ...wanted.map(([, values]) => JSON.stringify(values)));
    const shown = rows.slice(0, PAGE_SIZE);
    const last = shown.at(-1);
    return {
      data: shown.map(toRecord),
      metadata: { next_cursor: rows.length > PAGE_SIZE && last ? encodeCursor(key, last.id, binding) : null },
    };
  };
}
