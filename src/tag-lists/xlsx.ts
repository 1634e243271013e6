import { type Attributes, readXml, type XmlHandler } from "./xml.ts";
import { type Fault, readZip, type ZipOptions } from "./zip.ts";

export interface Sheet {
  readonly name: string;
  readonly rows: readonly SheetRow[];
  /** The sheet has more rows than were taken. */
  readonly isCut: boolean;
}

export interface SheetRow {
  /** Counts from 1, with empty rows, in the way of a spreadsheet. */
  readonly row: number;
  /** By column from A on; a cell that is missing is empty. */
  readonly cells: readonly string[];
}

export interface XlsxOptions extends ZipOptions {
  /** Rows that are taken of each sheet. */
  readonly maxRows: number;
}

/** Columns beyond this one are not taken: a tag table has 11. */
const MAX_COLUMNS = 64;
/** Longest text of a cell, in UTF-16 units; a spreadsheet takes 32,767. */
const MAX_CELL = 32_767;
const MAX_SHEETS = 50;
/** Parts that a workbook refers to: sheets, styles, texts, a theme, and more. */
const MAX_RELATIONS = 1000;
/** Texts of all sheets; 100,000 rows of 11 columns have 1,100,000. */
const MAX_TEXTS = 2_000_000;

const WORKBOOK = "xl/workbook.xml";
const RELATIONS = "xl/_rels/workbook.xml.rels";
const PARTS = /^(?:xl\/workbook\.xml|xl\/_rels\/workbook\.xml\.rels|xl\/sharedStrings\.xml|xl\/worksheets\/[^/]+\.xml)$/i;

/**
 * The sheets of an XLSX file (ECMA-376, Part 1) as text: the cell's stored value, without its number format. A fault: it is no such file, or
 * beyond the bounds of readZip and readXml. Never throws.
 */
export async function readXlsx(bytes: Uint8Array, options: XlsxOptions): Promise<readonly Sheet[] | Fault> {
  const files = await readZip(bytes, (name) => PARTS.test(name), options);
  if ("fault" in files) return files;
  const part = (name: string): Buffer | undefined =>
    files.get(name) ?? [...files].find(([one]) => one.toLowerCase() === name.toLowerCase())?.[1];
  const workbook = part(WORKBOOK);
  if (!workbook) return { fault: "the zip file holds no workbook of a spreadsheet (xl/workbook.xml)" };
  const names: { readonly name: string; readonly id: string }[] = [];
  const targets = new Map<string, string>();
  const texts: string[] = [];
  const fault =
    (await readPart(
      WORKBOOK,
      workbook,
      elements("sheet", MAX_SHEETS, (a) => names.push({ name: a.get("name") ?? "", id: a.get("id") ?? "" })),
    )) ??
    (await readPart(
      RELATIONS,
      part(RELATIONS),
      elements("Relationship", MAX_RELATIONS, (a) => targets.set(a.get("Id") ?? "", a.get("Target") ?? "")),
    )) ??
    (await readPart("xl/sharedStrings.xml", part("xl/sharedStrings.xml"), sharedTexts(texts)));
  if (fault) return fault;
  if (names.length > MAX_SHEETS) return { fault: `the workbook has more than ${MAX_SHEETS} sheets` };
  if (texts.length > MAX_TEXTS) return { fault: `the workbook has more than ${MAX_TEXTS} texts` };
  const sheets: Sheet[] = [];
  for (const { name, id } of names) {
    const target = targets.get(id)?.replace(/^\/?xl\//i, "");
    const rows = new SheetRows(texts, options.maxRows);
    const place = `xl/${target}`;
    const sheet = target === undefined ? undefined : part(place);
    const broken = sheet && (await readPart(place, sheet, rows));
    if (broken) return broken;
    if (!sheet && !isChart(target)) return { fault: `the sheet ${JSON.stringify(name)} is missing from the workbook` };
    if (sheet) sheets.push({ name, rows: rows.rows, isCut: rows.isCut });
  }
  return sheets;
}

/** Sheets of charts, dialogs and macros have no cells. */
const isChart = (target: string | undefined): boolean => target !== undefined && !/^worksheets\//i.test(target);

/** A sign that XML cannot hold, or the beginning of what looks so (ECMA-376, Part 1, 22.9.2.19). */
const unescaped = (text: string): string =>
  text.replace(/_x([0-9a-fA-F]{4})_/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** A part that is missing is empty. */
async function readPart(name: string, bytes: Buffer | undefined, handler: XmlHandler): Promise<Fault | undefined> {
  const fault = bytes && (await readXml(pieces(bytes), handler));
  return fault && { fault: `${name}: ${fault.fault}` };
}

const BYTES_OF_PIECE = 64 * 1024;

/** XML parts of a spreadsheet are UTF-8 or UTF-16 (ECMA-376, Part 2). */
function* pieces(bytes: Buffer): Generator<string> {
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  const decoder = new TextDecoder(isUtf16 ? (bytes[0] === 0xff ? "utf-16le" : "utf-16be") : "utf-8");
  for (let from = 0; from < bytes.length; from += BYTES_OF_PIECE)
    yield decoder.decode(bytes.subarray(from, from + BYTES_OF_PIECE), { stream: true });
  yield decoder.decode();
}

/** Takes the attributes of each element of a name, one more than `most` of them at most. */
function elements(wanted: string, most: number, take: (attributes: Attributes) => void): XmlHandler {
  let count = 0;
  return {
    open(name, attributes) {
      if (name !== wanted) return undefined;
      if (count++ > most) return "stop";
      take(attributes);
      return undefined;
    },
    text() {},
    close() {},
  };
}

/** `<si><t>…</t></si>`, or several runs `<r><t>…</t></r>`; phonetic runs (`rPh`) are no part of the text. */
function sharedTexts(texts: string[]): XmlHandler {
  let text = "";
  let isText = false;
  let phonetic = 0;
  return {
    open(name) {
      if (name === "si") text = "";
      else if (name === "rPh") phonetic++;
      else if (name === "t") isText = phonetic === 0;
      return texts.length > MAX_TEXTS ? "stop" : undefined;
    },
    text(part) {
      if (isText && text.length < MAX_CELL) text += part.slice(0, MAX_CELL - text.length);
    },
    close(name) {
      if (name === "t") isText = false;
      else if (name === "rPh") phonetic--;
      else if (name === "si") texts.push(unescaped(text));
    },
  };
}

/** Gathers the rows of a worksheet: `<row r="2"><c r="A2" t="s"><v>0</v></c></row>`. */
class SheetRows implements XmlHandler {
  readonly rows: SheetRow[] = [];
  isCut = false;
  readonly #texts: readonly string[];
  readonly #maxRows: number;
  #row = 0;
  #cells: string[] = [];
  #column = -1;
  #kind = "n";
  #text = "";
  #isText = false;

  constructor(texts: readonly string[], maxRows: number) {
    this.#texts = texts;
    this.#maxRows = maxRows;
  }

  open(name: string, attributes: Attributes): "stop" | undefined {
    if (name === "row") {
      if (this.rows.length === this.#maxRows) {
        this.isCut = true;
        return "stop";
      }
      const number = Number(attributes.get("r"));
      this.#row = Number.isSafeInteger(number) && number > 0 ? number : this.#row + 1;
      this.#cells = [];
      this.#column = -1;
    } else if (name === "c") {
      this.#column = columnOf(attributes.get("r")) ?? this.#column + 1;
      this.#kind = attributes.get("t") ?? "n";
      this.#text = "";
    } else if (name === "v" || name === "t") this.#isText = true;
    return undefined;
  }

  text(part: string): void {
    if (this.#isText && this.#text.length < MAX_CELL) this.#text += part.slice(0, MAX_CELL - this.#text.length);
  }

  close(name: string): void {
    if (name === "v" || name === "t") this.#isText = false;
    else if (name === "c") this.#take();
    else if (name === "row" && this.#cells.some((cell) => cell !== "")) this.rows.push({ row: this.#row, cells: this.#cells });
  }

  #take(): void {
    if (this.#column < 0 || this.#column >= MAX_COLUMNS) return;
    while (this.#cells.length < this.#column) this.#cells.push("");
    this.#cells[this.#column] = this.#value();
  }

  #value(): string {
    if (this.#kind === "s") return this.#texts[Number(this.#text)] ?? "";
    if (this.#kind === "b") return this.#text.trim() === "1" ? "True" : "False";
    // An error such as #REF! is no value.
    if (this.#kind === "e") return "";
    return this.#kind === "n" ? this.#text : unescaped(this.#text);
  }
}

/** `A1` is 0, `AB7` is 27. */
function columnOf(reference: string | undefined): number | undefined {
  const letters = /^([A-Z]{1,3})\d*$/.exec(reference ?? "")?.[1];
  if (letters === undefined) return undefined;
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}
