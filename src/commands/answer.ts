import type { CommandIo } from "./io.ts";
import { writeJson } from "./lines.ts";
import { commandsAsTyped } from "./printed-commands.ts";
import { formatTable } from "./table.ts";

/** What a verb prints at its end: one JSON object on a line of its own where `--json` is given, else its text for people. */
export function answer(io: CommandIo, { json = false }: { readonly json?: boolean }, value: object, text: string): void {
  if (json) writeJson(io, value);
  else io.stdout.write(commandsAsTyped(text, io.typed));
}

/**
 * What a verb that lists prints: one JSON array where `--json` is given, else a table with a column for each heading, or `none`. Numbers are
 * aligned to the right.
 */
export function answerList<T>(
  io: CommandIo,
  options: { readonly json?: boolean },
  records: readonly T[],
  none: string,
  columns: Readonly<Record<string, (record: T) => string>>,
  numbers: readonly string[] = [],
): void {
  const headings = Object.keys(columns);
  const rows = records.map((record) => headings.map((heading) => columns[heading]?.(record) ?? ""));
  const table = formatTable([headings, ...rows], new Set(numbers.map((heading) => headings.indexOf(heading))));
  answer(io, options, records, records.length === 0 ? none : `${table.join("\n")}\n`);
}
