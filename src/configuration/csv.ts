import { isUtf8 } from "node:buffer";

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
 * Text of a file as a spreadsheet may have written it: UTF-8 or UTF-16 with or without a byte order mark, else Windows-1252. Never throws.
 */
export const decodeText = (bytes: Uint8Array): string => [...textPieces(bytes)].join("");

const BYTES_OF_PIECE = 64 * 1024;

/** decodeText piece by piece. */
export function* textPieces(bytes: Uint8Array): Generator<string> {
  const decoder = new TextDecoder(encodingOf(bytes));
  for (let from = 0; from < bytes.length; from += BYTES_OF_PIECE)
    yield decoder.decode(bytes.subarray(from, from + BYTES_OF_PIECE), { stream: true });
  yield decoder.decode();
}

function encodingOf(bytes: Uint8Array): "utf-16le" | "utf-16be" | "utf-8" | "windows-1252" {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  // UTF-16 without a mark begins with characters of ASCII: every other byte is 0, which no text has otherwise.
  if (bytes.length >= 4 && bytes[1] === 0 && bytes[3] === 0 && bytes[0] !== 0 && bytes[2] !== 0) return "utf-16le";
  if (bytes.length >= 4 && bytes[0] === 0 && bytes[2] === 0 && bytes[1] !== 0 && bytes[3] !== 0) return "utf-16be";
  return isUtf8(bytes) ? "utf-8" : "windows-1252";
}

/** False: the encoding is a guess, Windows-1252. Pure. */
export const isEncodingKnown = (bytes: Uint8Array): boolean => encodingOf(bytes) !== "windows-1252";

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
 * with its line, so that it costs none of the rows after it. The text goes on with `rest`, which is taken piece by piece. Pure, never throws.
 */
export function* csvRows(
  start: string,
  delimiter: Delimiter,
  maxRows: number,
  firstLine = 1,
  rest: Iterator<string, unknown> = [][Symbol.iterator](),
): Generator<CsvRow, CsvEnd> {
  let text = start;
  let isWhole = false;
  let count = 0;
  let at = 0;
  let line = firstLine;
  /** Twice as long where not one row fits: a long row is not parsed for each piece of it. */
  const goOn = (): void => {
    const pieces = [text.slice(at)];
    for (let wanted = Math.max(1, text.length - at); wanted > 0; ) {
      const piece = rest.next();
      if (piece.done) {
        isWhole = true;
        break;
      }
      pieces.push(piece.value);
      wanted -= piece.value.length;
    }
    text = pieces.join("");
    at = 0;
  };
  for (;;) {
    if (at >= text.length) {
      if (isWhole) return { more: false };
      goOn();
      continue;
    }
    const { row, next, upTo } = parseRow(text, at, line, delimiter);
    if (upTo >= text.length && !isWhole) {
      goOn();
      continue;
    }
    if (row.problem !== undefined || row.fields.some((field) => field !== "")) {
      if (count === maxRows) return { more: true };
      count++;
      yield row;
    }
    if (next === text.length && !isBreak(text[next - 1]) && !isBlank(row)) return { more: false, open: row };
    for (let i = at; i < next; i++) if (isLineEnd(text, i)) line++;
    at = next;
  }
}

const isBlank = ({ fields, problem }: CsvRow): boolean => problem === undefined && fields.length === 1 && fields[0] === "";

/** A quoted field that goes on for longer than this has lost its closing quote. */
const MAX_QUOTED = 10_000;

interface ParsedRow {
  readonly row: CsvRow;
  /** The place where the row after it begins. */
  readonly next: number;
  /** Behind the last character that had a part in this; at or beyond the end of the text: what follows it has a part. */
  readonly upTo: number;
}

function parseRow(text: string, start: number, line: number, delimiter: Delimiter): ParsedRow {
  const fields: string[] = [];
  const ended = (row: CsvRow, from: number, upTo: number): ParsedRow => {
    const next = nextLine(text, from);
    // Behind a carriage return the next character says whether the line has ended.
    return { row, next, upTo: Math.max(next, upTo) + 1 };
  };
  const broken = (problem: string, upTo: number) => ended({ line, fields: [], problem }, start, upTo);
  let at = start;
  for (;;) {
    at = behindBlanks(text, at);
    if (text[at] === '"') {
      const end = closingQuote(text, at);
      const behind = end === undefined ? at + MAX_QUOTED + 2 : behindBlanks(text, end + 1);
      if (end === undefined || (spansLines(text, at, end) && !isFieldEnd(text, behind, delimiter)))
        return broken('a field opens with " and is never closed; close it, or write "" for a quote inside', behind);
      fields.push(
        text
          .slice(at + 1, end)
          .replaceAll('""', '"')
          .trim(),
      );
      at = behind;
      if (!isFieldEnd(text, at, delimiter)) return broken('text follows a closing "; write "" for a quote inside a quoted field', at);
    } else {
      const from = at;
      while (at < text.length && text[at] !== delimiter && !isBreak(text[at])) at++;
      fields.push(text.slice(from, at).trim());
    }
    if (at >= text.length || text[at] !== delimiter) return ended({ line, fields }, at, at);
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

function behindBlanks(text: string, from: number): number {
  let at = from;
  while (text[at] === " ") at++;
  return at;
}

/** True: a field that is over there is followed by its delimiter or the end of the line. */
const isFieldEnd = (text: string, at: number, delimiter: Delimiter): boolean =>
  at >= text.length || text[at] === delimiter || isBreak(text[at]);

const spansLines = (text: string, from: number, to: number): boolean => /[\r\n]/.test(text.slice(from, to));
const isBreak = (char: string | undefined): boolean => char === "\n" || char === "\r";
/** The last character of a line end. */
const isLineEnd = (text: string, at: number): boolean => text[at] === "\n" || (text[at] === "\r" && text[at + 1] !== "\n");

function nextLine(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (isLineEnd(text, at)) return at + 1;
  return text.length;
}
