import { crc32 } from "node:zlib";
import type Database from "better-sqlite3";

/** The rows of the tables `meta` and `sink`, as they are. */
export interface AccountRows {
  readonly meta: readonly Record<string, unknown>[];
  readonly sink: readonly Record<string, unknown>[];
}

/**
 * Keeps the account of a file a second time, on pages of its own and with a checksum, written in each transaction: a page that is damaged costs
 * what is in it, and not all that the account is about.
 */
export class AccountCopy {
  readonly #meta: Database.Statement<[], Record<string, unknown>>;
  readonly #sink: Database.Statement<[], Record<string, unknown>>;
  readonly #save: Database.Statement<[string, number]>;

  constructor(db: Database.Database) {
    this.#meta = db.prepare("SELECT * FROM meta");
    this.#sink = db.prepare("SELECT * FROM sink ORDER BY rowid");
    this.#save = db.prepare(
      "INSERT INTO account VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET body = excluded.body, crc = excluded.crc",
    );
  }

  /** Belongs into the transaction that changes one of the tables, behind its changes. */
  save(): void {
    const body = this.#text();
    this.#save.run(body, crc32(body));
  }

  /** Whether the tables hold what they held when they were copied. */
  isOf(kept: string): boolean {
    return this.#text() === kept;
  }

  #text(): string {
    return JSON.stringify({ meta: this.#meta.all(), sink: this.#sink.all() } satisfies AccountRows);
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

/** As `keptAccount`, as rows. */
export function keptRows(db: Database.Database): AccountRows | undefined {
  const body = keptAccount(db);
  return body === undefined ? undefined : (JSON.parse(body) as AccountRows);
}
