import { escapeControls } from "../model/plain-text.ts";

const GAP = "  ";

/** Lines with columns of equal width, the first row a heading; control characters are escaped. No line ends in blanks. */
export function formatTable(rows: readonly (readonly string[])[], right: ReadonlySet<number> = new Set()): string[] {
  const safe = rows.map((row) => row.map(escapeControls));
  const widths: number[] = [];
  for (const row of safe) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return safe.map((row) =>
    row
      .map((cell, i) => (right.has(i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join(GAP)
      .trimEnd(),
  );
}
