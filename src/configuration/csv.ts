import { atOnce, type Steps } from "../model/timer.ts";

export const DELIMITERS = [";", ",", "\t"] as const;
export type Delimiter = (typeof DELIMITERS)[number];

export interface CsvRow {
  /** From 1; of the row's first line. */
  readonly line: number;
  readonly fields: readonly string[];
  /** The quotes of this row are broken; its fields are of no use. */
  readonly problem?: string;
}

/**
 * Text of a file as a spreadsheet may have written it: UTF-8 or UTF-16 with a byte order mark, UTF-8 without one, else Windows-1252. Never
 * throws.
 */
export const decodeText = (bytes: Uint8Array): string => atOnce(textSteps(bytes));

/** Bytes in one step. */
const BYTES_AT_ONCE = 256 * 1024;

/** As decodeText, in steps. */
export function* textSteps(bytes: Uint8Array): Steps<string> {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return yield* decodeSteps(bytes, new TextDecoder("utf-16le"));
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return yield* decodeSteps(bytes, new TextDecoder("utf-16be"));
  try {
    return yield* decodeSteps(bytes, new TextDecoder("utf-8", { fatal: true }));
  } catch {
    return yield* decodeSteps(bytes, new TextDecoder("windows-1252"));
  }
}

function* decodeSteps(bytes: Uint8Array, decoder: InstanceType<typeof TextDecoder>): Steps<string> {
  const pieces: string[] = [];
  for (let from = 0; from < bytes.length; from += BYTES_AT_ONCE) {
    pieces.push(decoder.decode(bytes.subarray(from, from + BYTES_AT_ONCE), { stream: true }));
    yield;
  }
  return [...pieces, decoder.decode()].join("");
}

/** The delimiter of which the line holds most outside quotes. */
export function delimiterOf(header: string): Delimiter {
  const bare = header.replace(/"[^"]*"/g, "");
  const count = (delimiter: string): number => bare.split(delimiter).length - 1;
  return DELIMITERS.reduce((best, next) => (count(next) > count(best) ? next : best));
}

/** How a CSV text ended. */
export interface CsvEnd {
  readonly more: boolean;
  readonly open?: CsvRow;
}

/**
 * The rows of a CSV text (RFC 4180, any line end, blanks around a field dropped), empty ones left out. At most `maxRows`; what is returned
 * at the end says whether there were `more`, and `open` is the last row where the text ends within its line. A row with broken quotes ends
 * with its line, so that it costs none of the rows after it. Pure, never throws.
 */
export function* csvRows(text: string, delimiter: Delimiter, maxRows: number, firstLine = 1): Generator<CsvRow, CsvEnd> {
  let count = 0;
  let at = 0;
  let line = firstLine;
  while (at < text.length) {
    const { row, next } = parseRow(text, at, line, delimiter);
    if (row.problem !== undefined || row.fields.some((field) => field !== "")) {
      if (count === maxRows) return { more: true };
      count++;
      yield row;
    }
    if (next === text.length && !isBreak(text[next - 1]) && !isBlank(row)) return { more: false, open: row };
    for (let i = at; i < next; i++) if (isLineEnd(text, i)) line++;
    at = next;
  }
  return { more: false };
}

const isBlank = ({ fields, problem }: CsvRow): boolean => problem === undefined && fields.length === 1 && fields[0] === "";

/** A quoted field that goes on for longer than this has lost its closing quote. */
const MAX_QUOTED = 10_000;

function parseRow(text: string, start: number, line: number, delimiter: Delimiter): { readonly row: CsvRow; readonly next: number } {
  const fields: string[] = [];
  const broken = (problem: string) => ({ row: { line, fields: [], problem }, next: nextLine(text, start) });
  let at = start;
  for (;;) {
    while (text[at] === " ") at++;
    if (text[at] === '"') {
      const end = closingQuote(text, at);
      if (end === undefined || (spansLines(text, at, end) && !endsField(text, end, delimiter)))
        return broken('a field opens with " and is never closed; close it, or write "" for a quote inside');
      fields.push(
        text
          .slice(at + 1, end)
          .replaceAll('""', '"')
          .trim(),
      );
      at = end + 1;
      if (!endsField(text, end, delimiter)) return broken('text follows a closing "; write "" for a quote inside a quoted field');
      while (text[at] === " ") at++;
    } else {
      const from = at;
      while (at < text.length && text[at] !== delimiter && !isBreak(text[at])) at++;
      fields.push(text.slice(from, at).trim());
    }
    if (at >= text.length || text[at] !== delimiter) return { row: { line, fields }, next: nextLine(text, at) };
    at++;
  }
}

function closingQuote(text: string, open: number): number | undefined {
  for (let at = open + 1; at < text.length && at - open <= MAX_QUOTED; at++) {
    if (text[at] !== '"') continue;
    if (text[at + 1] !== '"') return at;
    at++;
  }
  return undefined;
}

/** Whether the field's closing quote at `end` is followed by its delimiter or the end of the line. */
function endsField(text: string, end: number, delimiter: Delimiter): boolean {
  let at = end + 1;
  while (text[at] === " ") at++;
  return at >= text.length || text[at] === delimiter || isBreak(text[at]);
}

const spansLines = (text: string, from: number, to: number): boolean => /[\r\n]/.test(text.slice(from, to));
const isBreak = (char: string | undefined): boolean => char === "\n" || char === "\r";
/** The last character of a line end. */
const isLineEnd = (text: string, at: number): boolean => text[at] === "\n" || (text[at] === "\r" && text[at + 1] !== "\n");

function nextLine(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (isLineEnd(text, at)) return at + 1;
  return text.length;
}
