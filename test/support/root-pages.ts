import { readFileSync } from "node:fs";
import Database from "better-sqlite3";

/** SQLite file format, 1.3: the write and the read version of a file that has no WAL. */
const VERSIONS_AT = 18;
const WITHOUT_WAL = Buffer.from([1, 1]);

/** By table: the page on which it begins. Leaves the file alone. Throws where its first page is damaged. */
export function rootPagesOf(file: string): ReadonlyMap<string, number> {
  const bytes = readFileSync(file);
  WITHOUT_WAL.copy(bytes, VERSIONS_AT);
  const db = new Database(bytes);
  try {
    const rows = db.prepare<[], { name: string; rootpage: number }>("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").all();
    return new Map(rows.map(({ name, rootpage }) => [name, rootpage]));
  } finally {
    db.close();
  }
}
