import { crc32 } from "node:zlib";
import type Database from "better-sqlite3";

type Rows = readonly Record<string, unknown>[];

/** The rows of these tables, as they are; copies of earlier versions have those of `meta` and `sink` alone. */
export interface AccountRows {
  readonly meta: Rows;
  readonly sink: Rows;
  readonly rejected?: Rows;
  /** Absent also where there are too many to be written with each transaction. */
  readonly stamp?: Rows;
}

const MAX_STAMPS = 64;

/** In the order in which they are in the copy, each with the order of its rows. */
const TABLES = { meta: "rowid", sink: "rowid", rejected: "reason", stamp: "from_id" } as const;
type Table = keyof typeof TABLES;

const isTable = (name: string): name is Table => Object.hasOwn(TABLES, name);

/**
 * Keeps the account of a file a second time, on pages of its own and with a checksum, written in each transaction: a page that is damaged costs
 * what is in it, and not all that the account is about.
 */
export class AccountCopy {
  readonly #read: Readonly<Record<Table, Database.Statement<[], Record<string, unknown>>>>;
  readonly #save: Database.Statement<[string, number]>;

  constructor(db: Database.Database) {
    const read = (table: Table) => db.prepare<[], Record<string, unknown>>(`SELECT * FROM ${table} ORDER BY ${TABLES[table]}`);
    this.#read = { meta: read("meta"), sink: read("sink"), rejected: read("rejected"), stamp: read("stamp") };
    this.#save = db.prepare(
      "INSERT INTO account VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET body = excluded.body, crc = excluded.crc",
    );
  }

  /** Belongs into the transaction that changes one of the tables, behind its changes. */
  save(): void {
    const body = this.#text(Object.keys(TABLES));
    this.#save.run(body, crc32(body));
  }

  /** True when the copied tables still hold the same contents. */
  isOf(kept: string): boolean {
    return this.#text(Object.keys(JSON.parse(kept) as AccountRows)) === kept;
  }

  #text(tables: readonly string[]): string {
    const rows = tables.filter(isTable).map((table) => [table, this.#read[table].all()] as const);
    return JSON.stringify(Object.fromEntries(rows.filter(([table, { length }]) => table !== "stamp" || length <= MAX_STAMPS)));
  }
}

/** The text of the copy; undefined: there is none, or it is damaged. */
export function keptAccount(db: Database.Database): string | undefined {
  try {
    const row = db.prepare<[], { body: unknown; crc: unknown }>("SELECT body, crc FROM account").get();
    return row && typeof row.body === "string" && crc32(row.body) === row.crc ? row.body : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the result of `keptAccount` as rows. */
export function keptRows(db: Database.Database): AccountRows | undefined {
  const body = keptAccount(db);
  return body === undefined ? undefined : (JSON.parse(body) as AccountRows);
}
