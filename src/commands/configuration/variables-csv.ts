import { safeCell } from "../../base/plain-text.ts";
import { COLUMNS } from "../../configuration/variable-file.ts";
import type { VariableInput } from "../../model/variable.ts";

/** The delimiter that spreadsheets of every country open without a question asked about decimal commas. */
const DELIMITER = ";";
/** What Excel needs to take a file for UTF-8. */
const BYTE_ORDER_MARK = "\ufeff";

/** Variables as a CSV file that parseVariableCsv reads back the same. Pure. */
export function variablesCsv(variables: readonly VariableInput[]): string {
  const rows = variables.map(({ name, address, type, unit, scaling, comment, status }) => {
    const cells = { name, address, type, unit, factor: scaling?.factor ?? null, offset: scaling?.offset ?? null, comment, status };
    return COLUMNS.map((column) => field(cells[column])).join(DELIMITER);
  });
  return `${BYTE_ORDER_MARK}${[COLUMNS.join(DELIMITER), ...rows].join("\r\n")}\r\n`;
}

/** RFC 4180, 2: quoted where it holds what has a meaning. */
function field(value: string | number | null): string {
  const text = typeof value === "string" ? safeCell(value) : String(value ?? "");
  return /[";,\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
