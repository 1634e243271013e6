import { closeSync, existsSync, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import Database from "better-sqlite3";
import { NoteFile, readNote } from "./note-file.ts";

/*
 * SQLite file format, 1.3 (the header) and 2.6 (the schema): the first page of a file says where each table begins. It is noted beside the file
 * what it says, so that the tables are found where that page is damaged.
 */
const PAGE_BYTES = 4096;
const BYTES = 4096;
const WRITE_VERSION = 18;
const READ_VERSION = 19;
/** A file without a log is read as one that never has any, so that none is made for it. */
const JOURNAL_MODE = 1;
const WAL_MODE = 2;
const CHANGES = 24;
const PAGES = 28;
const PAGES_VALID_FOR = 92;

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly rootpage: number;
  readonly sql: string | null;
}

interface SchemaNote {
  readonly version: number;
  readonly rows: readonly SchemaRow[];
}

const noteFile = (file: string): string => `${file}.schema`;

/** Notes where the tables of the file begin, if that is not noted already. Never throws. */
export function noteSchema(db: Database.Database, file: string): void {
  const rows = db.prepare<[], SchemaRow>("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY rowid").all();
  const note: SchemaNote = { version: Number(db.pragma("user_version", { simple: true })), rows };
  if (JSON.stringify(readNote(noteFile(file))) === JSON.stringify(note)) return;
  const kept = new NoteFile(noteFile(file), BYTES);
  kept.write(note);
  kept.close();
}

/**
 * Does `work` while the file has the first page that the note knows, and puts back the page that it had. Undefined: there is no such note.
 * Throws what `work` and the file system throw.
 */
export function withNotedSchema<T>(file: string, work: () => T): T | undefined {
  const note = statSync(file, { throwIfNoEntry: false })?.isFile() ? notedSchema(file) : undefined;
  if (!note) return undefined;
  const fd = openSync(file, "r+");
  try {
    const before = Buffer.alloc(PAGE_BYTES);
    const bytes = readSync(fd, before, 0, PAGE_BYTES, 0);
    const mode = existsSync(`${file}-wal`) ? WAL_MODE : JOURNAL_MODE;
    writeSync(fd, pageOf(note, Math.ceil(fstatSync(fd).size / PAGE_BYTES), mode), 0, PAGE_BYTES, 0);
    try {
      return work();
    } finally {
      writeSync(fd, before, 0, bytes, 0);
    }
  } finally {
    closeSync(fd);
  }
}

function notedSchema(file: string): SchemaNote | undefined {
  const note: { readonly [K in keyof SchemaNote]?: unknown } = readNote(noteFile(file)) ?? {};
  const { version, rows } = note;
  return Number.isSafeInteger(version) && Array.isArray(rows) && rows.every(isRow) ? { version: Number(version), rows } : undefined;
}

function isRow(value: unknown): value is SchemaRow {
  if (typeof value !== "object" || value === null) return false;
  const { type, name, tbl_name, rootpage, sql } = value as { readonly [K in keyof SchemaRow]?: unknown };
  const isText = [type, name, tbl_name].every((text) => typeof text === "string");
  return isText && Number.isSafeInteger(rootpage) && (sql === null || typeof sql === "string");
}

/** Made by SQLite itself: the first page of a database with these rows in its schema. */
function pageOf({ version, rows }: SchemaNote, pages: number, mode: number): Buffer {
  const db = new Database(":memory:");
  try {
    db.pragma(`page_size = ${PAGE_BYTES}`);
    db.pragma("auto_vacuum = INCREMENTAL");
    db.unsafeMode();
    db.pragma("writable_schema = ON");
    const insert = db.prepare("INSERT INTO sqlite_schema VALUES (@type, @name, @tbl_name, @rootpage, @sql)");
    for (const row of rows) insert.run(row);
    db.pragma(`user_version = ${version}`);
    const page = Buffer.from(db.serialize().subarray(0, PAGE_BYTES));
    page.writeUInt8(mode, WRITE_VERSION);
    page.writeUInt8(mode, READ_VERSION);
    page.writeUInt32BE(pages, PAGES);
    page.copy(page, PAGES_VALID_FOR, CHANGES, CHANGES + 4);
    return page;
  } finally {
    db.close();
  }
}
