import { MAX_ROWS } from "../configuration/variable-file.ts";
import type { Place, TagEntry, TagFile } from "./format.ts";
import type { Sheet } from "./xlsx.ts";

/** A sheet whose first row that is not empty names the columns, in lower case. */
export interface SheetTable {
  readonly sheet: Sheet;
  readonly columns: readonly string[];
}

/**
 * The sheets of a spreadsheet that have all of `wanted` columns (in lower case). Undefined: the file is not a spreadsheet, or no sheet has
 * them. A list: the refusal of a spreadsheet that cannot be read.
 */
export async function sheetTables(
  file: TagFile,
  wanted: readonly string[],
): Promise<{ readonly tables: readonly SheetTable[] } | readonly TagEntry[] | undefined> {
  const sheets = await file.sheets;
  if (!sheets) return undefined;
  if ("fault" in sheets) return [{ refusal: sheets.fault }];
  const tables = sheets
    .map((sheet) => ({ sheet, columns: sheet.rows[0]?.cells.map((name) => name.trim().toLowerCase()) ?? [] }))
    .filter(({ columns }) => wanted.every((column) => columns.includes(column)));
  return tables.length === 0 ? undefined : { tables };
}

/** The entries of the rows below the names of the columns; a column that the sheet lacks is empty. */
export function* rowsOf(
  { sheet, columns }: SheetTable,
  entriesOf: (cell: (column: string) => string, place: Place) => readonly TagEntry[],
): Generator<TagEntry> {
  for (const { row, cells } of sheet.rows.slice(1))
    yield* entriesOf((column) => (cells[columns.indexOf(column)] ?? "").trim(), `${sheet.name}, row ${row}`);
  if (sheet.isCut) yield { place: sheet.name, problem: `has more than ${MAX_ROWS} rows; those after the first ${MAX_ROWS} are not read` };
}
