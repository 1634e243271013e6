import type Database from "better-sqlite3";
import { errorCode } from "../model/failure.ts";
import type { BufferFill } from "./buffer.ts";
import { fileBytes } from "./file-state.ts";
import { rowBytes } from "./row-bytes.ts";
import type { Tables } from "./tables.ts";

/** The WAL restarts at this, or at a sixteenth of the whole, and is cut to it then. */
const WAL_BYTES = 4 * 2 ** 20;
/** A WAL above that, which a reader kept from restarting, may grow to this, or a quarter of the whole. */
const MAX_WAL_BYTES = 64 * 2 ** 20;
/** Free pages are kept for what comes, up to this; beyond half of the file they go back to the file system. */
const KEPT_FREE_BYTES = 16 * 2 ** 20;
const VACUUM_PAGES = 256;

/** Keeps the file and its WAL within `maxBytes` together. */
export class FileSpace {
  readonly #db: Database.Database;
  readonly #file: string;
  readonly #tables: Tables;
  readonly pageBytes: number;
  #walLimitBytes = 0;
  #maxWalBytes = 0;
  #maxPages = 0;
  #dropAbovePages = 0;

  constructor(db: Database.Database, file: string, tables: Tables, maxBytes: number) {
    this.#db = db;
    this.#file = file;
    this.#tables = tables;
    this.pageBytes = Number(db.pragma("page_size", { simple: true }));
    this.setMaxBytes(maxBytes);
  }

  /** Sets the bounds that SQLite keeps by itself, too. A file that is larger is made smaller by what follows, not here. */
  setMaxBytes(maxBytes: number): void {
    const db = this.#db;
    this.#walLimitBytes = Math.min(WAL_BYTES, maxBytes / 16);
    this.#maxWalBytes = Math.min(MAX_WAL_BYTES, maxBytes / 4);
    // Room is left for what a commit adds before it drops. SQLite's own bound is above it, and only stops what could not be foreseen.
    this.#maxPages = Math.max(1, Math.floor((maxBytes - this.#maxWalBytes) / this.pageBytes));
    this.#dropAbovePages = this.#maxPages - Math.min(WAL_BYTES / this.pageBytes, Math.floor(this.#maxPages / 8));
    db.pragma(`journal_size_limit = ${Math.floor(this.#walLimitBytes)}`);
    db.pragma(`wal_autocheckpoint = ${Math.ceil(this.#walLimitBytes / this.pageBytes)}`);
    db.pragma(`max_page_count = ${this.#maxPages}`);
  }

  /** Bytes of the file with its WAL. */
  bytes(): number {
    return fileBytes(this.#file) + this.#walBytes();
  }

  /** True when the oldest values have to be dropped. */
  isTooLarge(): boolean {
    const { all, free } = this.#tables.pages();
    return all - free > this.#dropAbovePages;
  }

  /** Bytes in use, with more than how many the oldest values are dropped, and those that hold nothing. */
  fill(): Pick<BufferFill, "usedBytes" | "dropAtBytes" | "spareBytes"> {
    const { all, free } = this.#tables.pages();
    const bytes = this.pageBytes;
    return { usedBytes: (all - free) * bytes, dropAtBytes: this.#dropAbovePages * bytes, spareBytes: free * bytes };
  }

  /** Bytes that a batch with this payload takes. */
  rowBytes(payloadBytes: number): number {
    return rowBytes(payloadBytes, this.pageBytes);
  }

  /** Restarts a WAL that has grown. Throws where a reader that does not end keeps it growing. */
  keepWalBounded(): void {
    if (this.#walBytes() <= 2 * this.#walLimitBytes) return;
    this.#db.pragma("wal_checkpoint(RESTART)");
    if (this.#walBytes() > this.#maxWalBytes) this.#db.pragma("wal_checkpoint(TRUNCATE)");
    if (this.#walBytes() > this.#maxWalBytes)
      throw new Error(
        `${this.#file}-wal has ${this.#walBytes()} bytes and cannot be emptied, because another program reads the buffer without an end`,
      );
  }

  /** After a failed commit: on a full disk the WAL begins again, so that the next one needs no more room than there is. Never throws. */
  failed(error: unknown): void {
    if (!/^(SQLITE_FULL|SQLITE_IOERR)/.test(errorCode(error))) return;
    try {
      this.#db.pragma("wal_checkpoint(RESTART)");
    } catch {}
  }

  /** Gives free pages back in a small step; false: there are none to give. */
  shrink(): boolean {
    const { all, free } = this.#tables.pages();
    const isWide = free * this.pageBytes > KEPT_FREE_BYTES && free > all / 2;
    if (free === 0 || !(isWide || all > this.#maxPages)) {
      // Pages that were given back leave the file when the WAL is folded into it.
      const isFolded = fileBytes(this.#file) <= all * this.pageBytes && this.#walBytes() <= 2 * this.#walLimitBytes;
      if (!isFolded) this.#db.pragma("wal_checkpoint(TRUNCATE)");
      return false;
    }
    this.keepWalBounded();
    this.#db.pragma(`incremental_vacuum(${Math.min(VACUUM_PAGES, Math.ceil(this.#maxPages / 16))})`);
    // SQLite raises a bound that the file exceeds, and does not lower it again.
    this.#db.pragma(`max_page_count = ${this.#maxPages}`);
    return true;
  }

  #walBytes(): number {
    return fileBytes(`${this.#file}-wal`);
  }
}
