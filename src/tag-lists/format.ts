import { decodeText } from "../configuration/csv.ts";
import { type Cells, MAX_ROWS } from "../configuration/variable-file.ts";
import { type JsonText, parseJson } from "./json-text.ts";
import { readXlsx, type Sheet } from "./xlsx.ts";
import { type Fault, isZip } from "./zip.ts";

/** A place in a file, for the person who mends it: a line from 1, or words (`Tags, row 7`, `Line 3/Motor/Speed`). */
export type Place = number | string;

/** A file that another program has written, by its content. Its parts are made when first needed, and kept. Pure. */
export class TagFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  #text: string | undefined;
  #json: { readonly parsed: JsonText | undefined } | undefined;
  #sheets: Promise<readonly Sheet[] | Fault> | undefined;

  /** `name`: as it was typed; a pipe has none. */
  constructor(name: string, bytes: Uint8Array) {
    this.name = name;
    this.bytes = bytes;
  }

  /** UTF-8, UTF-16 with a byte order mark, or Windows-1252. */
  get text(): string {
    this.#text ??= decodeText(this.bytes);
    return this.#text;
  }

  /** The sheets of a spreadsheet with the rows of one list, or why they cannot be read; undefined: it is not a zip file. */
  get sheets(): Promise<readonly Sheet[] | Fault> | undefined {
    if (!isZip(this.bytes)) return undefined;
    // A row in addition to the columns' names says that there are more.
    this.#sheets ??= readXlsx(this.bytes, { maxRows: MAX_ROWS + 1 });
    return this.#sheets;
  }

  /** Undefined: it does not begin as a JSON object or list does. */
  get json(): JsonText | undefined {
    this.#json ??= { parsed: parseJson(this.text) };
    return this.#json.parsed;
  }
}

/** The data source for which a list is read: a tag is another address to another driver. */
export interface Wanted {
  /** Its type, as the API names it (`modbus_tcp`); also one that this collector does not know. */
  readonly type: string;
  /** Numbers of data blocks by their names, which sources of blocks leave out; the empty name stands for the only block of a file. */
  readonly blockNumbers?: ReadonlyMap<string, number>;
}

/** One thing that a list holds. */
export type TagEntry =
  /** A tag in the words of our own columns: its address as the program writes it, or already another form of it, made of `from`. */
  | { readonly place: Place; readonly device?: string; readonly tag: Cells; readonly from?: string }
  /** A tag that cannot be a variable. Equal reasons are told once: neither the name nor the place stands in it. */
  | { readonly place: Place; readonly device?: string; readonly name?: string; readonly problem: string }
  /** The file is broken: nothing of it is taken. */
  | { readonly place?: Place; readonly refusal: string }
  /** A remark for the person about the whole file, or one device in it: a setting of the data source that follows from it. */
  | { readonly device?: string; readonly note: string };

/** One kind of file of one program. */
export interface TagListFormat {
  /** Its name in `Form.tool` of the drivers' spellings: addresses are read as this program's. */
  readonly program: string;
  /** For people, after the program: `tag list (CSV)`. */
  readonly what: string;
  /**
   * Gives the entries one after the other; the caller may stop. Undefined: the content is not of this kind. A file that is of this
   * kind and broken is a refusal. Bounded in memory and time by the format; never throws. Pure.
   */
  read(file: TagFile, wanted: Wanted): Entries | undefined | Promise<Entries | undefined>;
}

export type Entries = Iterable<TagEntry> | AsyncIterable<TagEntry>;

/** Why a text of lines may be cut off within its last one; undefined: it ends with a line, a quote or a bracket. Pure. */
export const cutLineOf = (text: string): string | undefined =>
  text === "" || /[\n\r"'}\]]$/.test(text)
    ? undefined
    : "the last line has no line end, and may be cut off: add one where the file is whole";
