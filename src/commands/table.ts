import { escapeControls } from "../base/plain-text.ts";

const GAP = "  ";

/**
 * Works as formatTable does, within so many columns of a terminal where that is possible without the columns that are headed by the first of
 * `dispensable`, the first two, and so on; undefined: however wide. Pure.
 */
export function fittingTable(
  rows: readonly (readonly string[])[],
  columns: number | undefined,
  { right, dispensable }: { readonly right: ReadonlySet<string>; readonly dispensable: readonly string[] },
): string[] {
  const [headings = []] = rows;
  const most = columns ?? Number.POSITIVE_INFINITY;
  let lines: string[] = [];
  for (let count = 0; count <= dispensable.length; count++) {
    const gone = new Set(dispensable.slice(0, count));
    const kept = headings.flatMap((heading, i) => (gone.has(heading) ? [] : [i]));
    const isRight = new Set(kept.flatMap((from, i) => (right.has(headings[from] ?? "") ? [i] : [])));
    lines = formatTable(
      rows.map((row) => kept.map((i) => row[i] ?? "")),
      isRight,
    );
    if (lines.every((line) => line.length <= most)) return lines;
  }
  return lines;
}

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
