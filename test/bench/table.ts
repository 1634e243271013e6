/** One row of docs/figures.md. */
export interface FigureRow {
  readonly what: string;
  /** Empty: the figure has none. */
  readonly budget: string;
  readonly figure: string;
  /** Processors and their model. */
  readonly machine: string;
  /** YYYY-MM-DD. */
  readonly date: string;
  /** Command that measures it again. */
  readonly command: string;
}

const HEADER = "| what | budget | figure | machine | date | command |";
const RULE = "| --- | --- | --- | --- | --- | --- |";
const BUDGET = /[ ,;]*\(?budget ([^();]+?)\)?(?=$|[;,)] |\)$)/;

/** Rows of what a bench printed: each line `what: figure`, with `(budget …)` taken out of the figure. Other lines have no row. Pure. */
export function rowsOf(printed: string, measured: Pick<FigureRow, "machine" | "date" | "command">): readonly FigureRow[] {
  return printed.split("\n").flatMap((line) => {
    const [, what, rest] = /^\s*(\S.*?): +(\S.*)$/.exec(line) ?? [];
    if (what === undefined || rest === undefined) return [];
    const budget = BUDGET.exec(rest)?.[1] ?? "";
    return [{ what, budget, figure: rest.replace(BUDGET, "").trim(), ...measured }];
  });
}

/**
 * The page with the rows of the commands that were run now in the place of their earlier ones; a command without a row yet comes last. All
 * else stays as it is. Pure. Throws where the page has no table.
 */
export function withRows(page: string, rows: readonly FigureRow[]): string {
  const lines = page.split("\n");
  const begin = lines.indexOf(HEADER);
  if (begin === -1 || lines[begin + 1] !== RULE) throw new Error(`the page has no table that begins with ${HEADER}`);
  const after = lines.findIndex((line, at) => at > begin && !line.startsWith("|"));
  const end = after === -1 ? lines.length : after;
  const renewed = new Map(Map.groupBy(rows, ({ command }) => `\`${command}\``));
  const table = lines.slice(begin + 2, end).flatMap((line) => {
    const command = commandOf(line);
    const found = renewed.get(command);
    if (!found) return rows.some((row) => `\`${row.command}\`` === command) ? [] : [line];
    renewed.delete(command);
    return found.map(lineOf);
  });
  return [...lines.slice(0, begin + 2), ...table, ...[...renewed.values()].flat().map(lineOf), ...lines.slice(end)].join("\n");
}

/** The last cell. */
const commandOf = (line: string): string => line.split("|").at(-2)?.trim() ?? "";

const lineOf = ({ what, budget, figure, machine, date, command }: FigureRow): string =>
  `| ${[what, budget, figure, machine, date].map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} | \`${command}\` |`;
