import { cellText } from "../base/plain-text.ts";
import { type CsvEnd, type CsvRow, csvRows, delimiterOf } from "../configuration/csv.ts";
import { MAX_ROWS } from "../configuration/variable-file.ts";
import type { TagEntry, TagFile } from "./format.ts";

/** Rows before the one that names the columns: remarks, and the version of the format. */
const MAX_HEAD = 50;
/** Rows that are not tags (remarks, comments of elements) are many in some lists. */
const ROWS_FOR_A_TAG = 4;

/** One row, by the names of its columns in lower case; a column that the list lacks is empty. */
export type Row = (column: string) => string;

/**
 * The rows of a CSV list that has all of `columns` (in lower case), which no other list has; undefined: it has not. Remarks may stand before
 * the names of the columns. A row makes any number of entries. Pure.
 */
export function csvTable(
  { text }: TagFile,
  columns: readonly string[],
  entriesOf: (row: Row, line: number) => readonly TagEntry[],
): Iterable<TagEntry> | undefined {
  const head = headOf(text, columns);
  return head && rowsBelow(text, head, entriesOf);
}

interface Head {
  readonly delimiter: ReturnType<typeof delimiterOf>;
  readonly columns: readonly string[];
  /** Rows before it. */
  readonly at: number;
}

function headOf(text: string, wanted: readonly string[]): Head | undefined {
  const start = text.slice(0, MAX_HEAD * 1000);
  const first = start.split(/\r?\n|\r/, MAX_HEAD).find((line) => line.split(/[;,\t]/).length >= wanted.length);
  if (first === undefined) return undefined;
  const delimiter = delimiterOf(first);
  let at = 0;
  for (const { fields } of csvRows(start, delimiter, MAX_HEAD)) {
    const columns = fields.map((field) => field.toLowerCase());
    if (wanted.every((column) => columns.includes(column))) return { delimiter, columns, at };
    at++;
  }
  return undefined;
}

function* rowsBelow(
  text: string,
  { delimiter, columns, at }: Head,
  entriesOf: (row: Row, line: number) => readonly TagEntry[],
): Generator<TagEntry> {
  const places = new Map(columns.map((column, place) => [column, place]));
  const rows = csvRows(text, delimiter, at + ROWS_FOR_A_TAG * MAX_ROWS);
  let row: IteratorResult<CsvRow, CsvEnd> = rows.next();
  for (let n = 0; !row.done; row = rows.next(), n++) {
    const { line, fields, problem } = row.value;
    if (n <= at) continue;
    const entries = problem === undefined ? entriesOf((column) => cellText(fields[places.get(column) ?? -1] ?? ""), line) : [];
    if (problem !== undefined) yield { place: line, problem };
    // Each field behind a delimiter too many stands in the column of another.
    else if (fields.length > columns.length && fields.slice(columns.length).some((field) => field !== "") && entries.length > 0)
      yield {
        place: line,
        problem: `has ${fields.length} fields, and the names of the columns are ${columns.length}: put a field that holds the delimiter (a decimal comma, too) into quotes`,
      };
    else yield* entries;
  }
  const { more, open } = row.value;
  const cut =
    open?.problem ?? (open && open.fields.length < columns.length ? `${open.fields.length} of ${columns.length} fields` : undefined);
  if (open && cut !== undefined)
    yield { place: open.line, refusal: `the last line has no line end and is incomplete (${cut}): the rest seems to be missing` };
  if (more) yield { place: 1, problem: `has more than ${ROWS_FOR_A_TAG * MAX_ROWS} rows; those after them are not read` };
}
