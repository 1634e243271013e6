import { isMap, isNode, isSeq, LineCounter, parseDocument } from "yaml";
import { LargeList } from "../base/large-list.ts";
import { LargeMap } from "../base/large-map.ts";
import { nearest } from "../base/nearest.ts";
import { cellText } from "../base/plain-text.ts";
import { atOnce, inSlices, type Steps, type YieldToEventLoop } from "../base/timer.ts";
import { messageOf } from "../model/failure.ts";
import { VARIABLE_STATUSES, type VariableInput, variableInputSchema } from "../model/variable.ts";
import { type CsvRow, csvRows, DELIMITERS, delimiterOf, textPieces } from "./csv.ts";

export const MAX_ROWS = 100_000;
export const MAX_PROBLEMS = 100;

/** The fields of a variable in a local file: the columns of a CSV file, the keys of a YAML one. */
export const COLUMNS = ["name", "address", "type", "unit", "factor", "offset", "comment", "status"] as const;
type Column = (typeof COLUMNS)[number];
export type Cells = Readonly<Partial<Record<Column, string>>>;

export interface LineProblem {
  /** From 1; absent where the whole file is meant. */
  readonly line?: number;
  /** What is wrong, in which field, and what would be right. */
  readonly message: string;
}

export interface ParsedVariables {
  readonly variables: readonly VariableInput[];
  /** At most MAX_PROBLEMS; the last one then counts the others. */
  readonly problems: readonly LineProblem[];
  /** The text ends within a line that lacks fields: what wrote it may have been ended before the rest. Absent: it does not. */
  readonly cut?: LineProblem;
}

/** What is wrong with a variable beyond its own form; undefined: nothing. */
export type CheckVariable = (variable: VariableInput) => string | undefined;

/**
 * Variables of a CSV file: delimiter `;`, `,` or tab, UTF-8 or Windows-1252, decimal point or comma, the first line names the columns. A
 * bad line, and one that `check` finds bad, is a problem and the rest is read; with a column that is not known nothing is read, since the
 * values could be wrong without it. Never throws.
 */
export const parseVariableCsv = (bytes: Uint8Array, check?: CheckVariable): ParsedVariables => atOnce(csvSteps(bytes, check));

/** parseVariableCsv by slices. */
export const parseVariableCsvInSlices = (bytes: Uint8Array, yieldToEventLoop: YieldToEventLoop): Promise<ParsedVariables> =>
  inSlices(csvSteps(bytes), yieldToEventLoop);

/** A step for each row. */
function* csvSteps(bytes: Uint8Array, check?: CheckVariable): Steps<ParsedVariables> {
  const pieces = textPieces(bytes);
  // A header is in the first of them.
  const text = pieces.next().value ?? "";
  const separator = /^sep=(.)(?:\r\n|\n|\r)/.exec(text);
  const body = separator ? text.slice(separator[0].length) : text;
  const header = /^\s*([^\r\n]*)/.exec(body)?.[1] ?? "";
  const delimiter = DELIMITERS.find((known) => known === separator?.[1]) ?? delimiterOf(header);
  const rows = csvRows(body, delimiter, MAX_ROWS + 1, separator ? 2 : 1, pieces);
  const first = rows.next();
  if (first.done)
    return { variables: [], problems: [{ message: `is empty; its first line must name the columns: ${COLUMNS.join(delimiter)}` }] };
  const columns = columnsOf(first.value);
  if ("problems" in columns) return { variables: [], problems: columns.problems };
  const collected = collect(check);
  let row = rows.next();
  for (; !row.done; row = rows.next()) {
    const { line } = row.value;
    const cells = cellsOf(row.value, columns.columns);
    if (typeof cells === "string") collected.problem({ line, message: cells });
    else collected.variable(line, variableOf(cells));
    yield;
  }
  const { more, open } = row.value;
  if (more) collected.problem({ message: `has more than ${MAX_ROWS} variables; those after the first ${MAX_ROWS} are not read` });
  const cut = open && cutOf(open, first.value, columns.columns.length);
  return { ...collected.result(), ...(cut && { cut }) };
}

/** What is missing of the last line, which has no end. */
function cutOf(open: CsvRow, header: CsvRow, columns: number): LineProblem | undefined {
  const { line, fields, problem } = open;
  const message = (what: string): LineProblem => ({
    line,
    message: `the last line has no line end and ${what}: the rest seems to be missing`,
  });
  if (open === header) return message("no variable follows");
  if (problem !== undefined) return message(problem);
  return fields.length < columns ? message(`has ${fields.length} of the ${columns} fields that the first line names`) : undefined;
}

/** Variables of a YAML file: a list of mappings with the keys of COLUMNS. As parseVariableCsv otherwise. */
export function parseVariableYaml(bytes: Uint8Array, check?: CheckVariable): ParsedVariables {
  const failed = (message: string, line?: number): ParsedVariables => ({
    variables: [],
    problems: [{ ...(line !== undefined && { line }), message }],
  });
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return failed("is not UTF-8; save the file as UTF-8");
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, strict: true, uniqueKeys: true, stringKeys: true });
  const fault = document.errors[0] ?? document.warnings[0];
  if (fault) return failed(`is not valid YAML: ${fault.message.split("\n")[0]}`, lines.linePos(fault.pos[0]).line);
  const list = document.contents;
  if (!isSeq(list)) return failed("must be a list of variables, each beginning with `- name: …`");
  const collected = collect(check);
  for (const item of list.items.slice(0, MAX_ROWS)) {
    const line = isNode(item) && item.range ? lines.linePos(item.range[0]).line : 1;
    try {
      const value: unknown = isNode(item) ? item.toJS(document, { maxAliasCount: 100 }) : item;
      collected.variable(line, isMap(item) ? variableOf(keysOf(value)) : ["a variable must be a mapping with name and address"]);
    } catch (error) {
      collected.variable(line, [messageOf(error)]);
    }
  }
  if (list.items.length > MAX_ROWS)
    collected.problem({ message: `has more than ${MAX_ROWS} variables; those after the first ${MAX_ROWS} are not read` });
  return collected.result();
}

/** Gathers variables of which each name occurs once, and a bounded number of problems. */
export function collect(check: CheckVariable = () => undefined) {
  const byName = new LargeMap<number>();
  const variables = new LargeList<VariableInput>();
  const problems: LineProblem[] = [];
  let unnamed = 0;
  const problem = (found: LineProblem): void => {
    if (problems.length < MAX_PROBLEMS) problems.push(found);
    else unnamed++;
  };
  return {
    problem,
    variable(line: number, parsed: VariableInput | readonly string[]): void {
      if (isMessages(parsed)) {
        for (const message of parsed) problem({ line, message });
        return;
      }
      const before = byName.get(parsed.name);
      if (before !== undefined) {
        problem({
          line,
          message: `name: ${quote(parsed.name)} is already in line ${before}; a name is unique per data source, and this line is left out`,
        });
        return;
      }
      const wrong = check(parsed);
      if (wrong !== undefined) {
        problem({ line, message: wrong });
        return;
      }
      byName.set(parsed.name, line);
      variables.push(parsed);
    },
    result(): ParsedVariables {
      return {
        variables: variables.whole(),
        problems: unnamed === 0 ? problems : [...problems, { message: `has ${unnamed} more problems` }],
      };
    },
  };
}

const isMessages = (parsed: VariableInput | readonly string[]): parsed is readonly string[] => Array.isArray(parsed);

function columnsOf({
  line,
  fields,
  problem,
}: CsvRow): { readonly columns: readonly Column[] } | { readonly problems: readonly LineProblem[] } {
  if (problem !== undefined) return { problems: [{ line, message: problem }] };
  const problems: LineProblem[] = [];
  const columns: Column[] = [];
  // Empty names at the end are what a spreadsheet leaves of columns that were cleared.
  const names = fields.slice(0, fields.findLastIndex((field) => field !== "") + 1);
  for (const name of names) {
    const column = COLUMNS.find((known) => known === name.toLowerCase());
    if (!column) problems.push({ line, message: unknownField("column", name) });
    else if (columns.includes(column)) problems.push({ line, message: `the column ${column} occurs twice; keep one of them` });
    else columns.push(column);
  }
  for (const needed of ["name", "address"] as const)
    if (!columns.includes(needed))
      problems.push({ line, message: `the column ${needed} is missing; known columns: ${COLUMNS.join(", ")}` });
  return problems.length > 0 ? { problems: problems.slice(0, MAX_PROBLEMS) } : { columns };
}

function unknownField(what: "column" | "key", name: string): string {
  const meant = nearest(name, COLUMNS);
  return `the ${what} ${quote(name)} is not known${meant === undefined ? "" : `, did you mean ${meant}?`}; known ${what}s: ${COLUMNS.join(", ")}`;
}

function cellsOf({ fields, problem }: CsvRow, columns: readonly Column[]): Cells | string {
  if (problem !== undefined) return problem;
  if (fields.slice(columns.length).some((field) => field !== ""))
    return `has ${fields.length} fields and the first line ${columns.length}; put a field that holds the delimiter (a decimal comma, too) into quotes`;
  return Object.fromEntries(columns.map((column, i) => [column, cellText(fields[i] ?? "")]));
}

/** Values of a YAML entry as the text that a CSV cell would hold; what is neither text nor a number nor empty is named by `bad`. */
function keysOf(value: unknown): Cells & { readonly bad?: readonly string[] } {
  const bad: string[] = [];
  const cells: Partial<Record<Column, string>> = {};
  for (const [key, cell] of Object.entries(typeof value === "object" && value !== null ? value : {})) {
    const column = COLUMNS.find((known) => known === key);
    if (!column) bad.push(unknownField("key", key));
    else if (typeof cell === "string" || typeof cell === "number") cells[column] = String(cell);
    else if (cell !== null) bad.push(`${column}: must be text or a number`);
  }
  return bad.length > 0 ? { ...cells, bad } : cells;
}

/** The variable, or what is wrong with it. */
export function variableOf(cells: Cells & { readonly bad?: readonly string[] }): VariableInput | readonly string[] {
  if (cells.bad) return cells.bad;
  const problems: string[] = [];
  const filled = (column: Column): string | null => (cells[column] === undefined || cells[column] === "" ? null : cells[column]);
  const number = (column: "factor" | "offset"): number | undefined => {
    const text = filled(column);
    if (text === null) return undefined;
    const value = parseNumber(text);
    if (value === undefined)
      problems.push(`${column}: ${quote(text)} is not a number; write 0.1 or 0,1, without separators between thousands`);
    return value;
  };
  const factor = number("factor");
  const offset = number("offset");
  for (const needed of ["name", "address"] as const)
    if (filled(needed) === null) problems.push(`${needed}: is empty; each variable needs one`);
  const statusText = filled("status")?.toUpperCase();
  const status = statusText === undefined ? undefined : VARIABLE_STATUSES.find((known) => known === statusText);
  if (statusText !== undefined && status === undefined)
    problems.push(`status: ${quote(cells.status)} is not one of ${VARIABLE_STATUSES.join(", ")}`);
  if (problems.length > 0) return problems;
  const result = variableInputSchema.safeParse({
    name: cells.name,
    address: cells.address,
    type: filled("type"),
    unit: filled("unit"),
    scaling:
      factor === undefined && offset === undefined
        ? null
        : { ...(factor !== undefined && { factor }), ...(offset !== undefined && { offset }) },
    comment: filled("comment"),
    ...(status !== undefined && { status }),
  });
  if (result.success) return result.data;
  return result.error.issues.map(({ path, message }) => {
    const column = COLUMNS.find((known) => known === path.at(-1));
    return column === undefined ? message : `${column}: ${quote(cells[column])}: ${message}`;
  });
}

/** `12`, `-0.5`, `0,5`, `1e-3`; undefined for anything else and beyond the range of a float64. */
export function parseNumber(text: string): number | undefined {
  if (!/^[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?$/.test(text)) return undefined;
  const value = Number(text.replace(",", "."));
  return Number.isFinite(value) ? value : undefined;
}

const quote = (text: string | undefined): string => JSON.stringify((text ?? "").length > 80 ? `${text?.slice(0, 80)}…` : (text ?? ""));
