import { crc32 } from "node:zlib";
import type Database from "better-sqlite3";
import { messageOf } from "../model/failure.ts";
import { type Packed, type PackIndex, type PayloadOf, readBody, readHead, wasRowSynced } from "./pack.ts";
import { isWhole } from "./pack-bytes.ts";
import { type IdRange, union, without } from "./position.ts";
import { DamagedFileError } from "./set-aside.ts";

/** A row of the table `pack`. Rows of the table `batch` never have ids between its first and its last. */
export interface PackRow {
  /** The first id in it, and the last. */
  readonly id: number;
  readonly last: number;
  /** Rows that are left in it, and their readings. */
  readonly rows: number;
  readonly n: number;
  readonly n_exploration: number;
  /** JSON: the ranges of ids that are not in it any more. */
  readonly gone: string;
  readonly crc: number;
}

/** The ranges that are gone from a new pack. */
export const NONE_GONE = "[]";

/** Packs that stay unpacked: two sinks that drain the file at different places do not unpack theirs again and again. */
const KEPT_UNPACKED = 2;

const checksumOf = ({ id, last, rows, n, n_exploration, gone }: Omit<PackRow, "crc">): number =>
  crc32([id, last, rows, n, n_exploration, gone].join());

/** Reads packs through any connection. Throws DamagedFileError where one is not as it was written, and what SQLite throws. */
export class PackReader {
  protected readonly db: Database.Database;
  readonly #first: Database.Statement<[number, number, number], PackRow>;
  readonly #in: Database.Statement<[number, number, number], PackRow>;
  readonly #head: Database.Statement<[number], unknown>;
  readonly #body: Database.Statement<[number], unknown>;
  /** By first and last id. */
  readonly #indexes = new Map<string, PackIndex>();
  readonly #payloads = new Map<string, PayloadOf>();

  /** Throws where the file has no packs: it is of an earlier version. */
  constructor(db: Database.Database) {
    this.db = db;
    // Packs do not overlap: the one before the range is the only earlier one that may reach into it.
    const select =
      "SELECT * FROM pack WHERE id >= coalesce((SELECT max(id) FROM pack WHERE id <= ?), 0) AND id < ? AND last >= ? ORDER BY id";
    this.#first = db.prepare(`${select} LIMIT 1`);
    this.#in = db.prepare(select);
    this.#head = db.prepare<[number], unknown>("SELECT head FROM pack_data WHERE id = ?").pluck();
    this.#body = db.prepare<[number], unknown>("SELECT body FROM pack_data WHERE id = ?").pluck();
  }

  /** Those that may have ids of the range, by rising ids. */
  in({ from, to }: IdRange): readonly PackRow[] {
    return this.#in.all(from, to, from).map(intact);
  }

  /** The first of them. */
  firstOf({ from, to }: IdRange): PackRow | undefined {
    const row = this.#first.get(from, to, from);
    return row && intact(row);
  }

  /** Throws DamagedFileError if its head, without which the writer knows nothing of it, is not as it was written. */
  check(pack: PackRow): void {
    if (!isWhole(asDamage(pack, () => blobOf(this.#head.get(pack.id)))))
      throw new DamagedFileError(`the head of pack ${pack.id} has changed`);
  }

  index(pack: PackRow): PackIndex {
    return kept(this.#indexes, keyOf(pack), () => {
      const index = asDamage(pack, () => readHead(blobOf(this.#head.get(pack.id))));
      if (index.ids[0] !== pack.id || index.ids.at(-1) !== pack.last)
        throw new DamagedFileError(`pack ${pack.id} has other rows than it says`);
      return index;
    });
  }

  payloads(pack: PackRow): PayloadOf {
    const index = this.index(pack);
    return kept(this.#payloads, keyOf(pack), () => asDamage(pack, () => readBody(index, blobOf(this.#body.get(pack.id)))));
  }

  /** Numbers of the rows of the range, as the index counts them, by rising ids. */
  *rowsIn(pack: PackRow, { from, to }: IdRange): Generator<number> {
    const { ids } = this.index(pack);
    for (const part of without([{ from: Math.max(from, pack.id), to: Math.min(to, pack.last + 1) }], goneOf(pack)))
      for (let row = firstAtLeast(ids, part.from); row < ids.length && (ids[row] ?? 0) < part.to; row++) yield row;
  }

  /** Reads what was unpacked again. */
  forget(): void {
    this.#indexes.clear();
    this.#payloads.clear();
  }
}

/** The packs of the file's one writer; changes belong into a transaction. */
export class Packs extends PackReader {
  readonly #insert: Database.Statement<[number, number, number, number, number, string, number]>;
  readonly #insertData: Database.Statement<[number, Uint8Array, Uint8Array]>;
  readonly #update: Database.Statement<[number, number, number, string, number, number]>;
  readonly #delete: Database.Statement<[number]>;
  readonly #deleteData: Database.Statement<[number]>;

  constructor(db: Database.Database) {
    super(db);
    this.#insert = db.prepare("INSERT INTO pack VALUES (?, ?, ?, ?, ?, ?, ?)");
    this.#insertData = db.prepare("INSERT INTO pack_data VALUES (?, ?, ?)");
    this.#update = db.prepare("UPDATE pack SET rows = ?, n = ?, n_exploration = ?, gone = ?, crc = ? WHERE id = ?");
    this.#delete = db.prepare("DELETE FROM pack WHERE id = ?");
    this.#deleteData = db.prepare("DELETE FROM pack_data WHERE id = ?");
  }

  add(row: Omit<PackRow, "crc">, { head, body }: Packed): void {
    this.#insert.run(row.id, row.last, row.rows, row.n, row.n_exploration, row.gone, checksumOf(row));
    this.#insertData.run(row.id, head, body);
  }

  /** Readings in the rows of the range. */
  sum(range: IdRange): { readonly n: number; readonly x: number } {
    let [n, x] = [0, 0];
    for (const pack of this.in(range)) {
      const part = this.#sumOf(pack, range);
      n += part.n;
      x += part.x;
    }
    return { n, x };
  }

  firstIn({ from, to }: IdRange): number | undefined {
    for (let at = from; ; ) {
      const pack = this.firstOf({ from: at, to });
      if (!pack) return undefined;
      const first = this.#firstFrom(pack, at);
      if (first !== undefined) return first < to ? first : undefined;
      at = pack.last + 1;
    }
  }

  /** The last row with a smaller id. */
  lastBefore(id: number): number | undefined {
    for (const pack of [...this.in({ from: 0, to: id })].reverse()) {
      const row = [...this.rowsIn(pack, { from: 0, to: id })].at(-1);
      if (row !== undefined) return this.index(pack).ids[row];
    }
    return undefined;
  }

  /** The rows with the least and the greatest ts in the range, and whether any of all was stamped by a clock that was not synchronised. */
  times(range: IdRange): { readonly first: PackedTime; readonly last: PackedTime; readonly isAnyUnsynced: boolean } | undefined {
    let found: { first: PackedTime; last: PackedTime; isAnyUnsynced: boolean } | undefined;
    for (const pack of this.in(range)) {
      const index = this.index(pack);
      for (const row of this.rowsIn(pack, range)) {
        const time = { ts: index.ts[row] ?? 0, isSynced: wasRowSynced(index, row) };
        found ??= { first: time, last: time, isAnyUnsynced: false };
        if (time.ts < found.first.ts) found.first = time;
        if (time.ts > found.last.ts) found.last = time;
        if (!time.isSynced) found.isAnyUnsynced = true;
      }
    }
    return found;
  }

  /** Returns how many rows there were. */
  remove(range: IdRange): number {
    let removed = 0;
    for (const pack of this.in(range)) {
      const left = range.from <= pack.id && range.to > pack.last ? undefined : this.#without(pack, range);
      removed += pack.rows - (left?.rows ?? 0);
      if (left && left.rows > 0) this.#update.run(left.rows, left.n, left.n_exploration, left.gone, checksumOf(left), pack.id);
      else {
        this.#delete.run(pack.id);
        this.#deleteData.run(pack.id);
      }
    }
    return removed;
  }

  /** Its first row with such an id, or a greater one. */
  #firstFrom(pack: PackRow, from: number): number | undefined {
    if (from <= pack.id && pack.gone === NONE_GONE) return pack.id;
    for (const row of this.rowsIn(pack, { from, to: pack.last + 1 })) return this.index(pack).ids[row];
    return undefined;
  }

  #without(pack: PackRow, range: IdRange): Omit<PackRow, "crc"> {
    let rows = 0;
    for (const _ of this.rowsIn(pack, range)) rows++;
    const { n, x } = this.#sumOf(pack, range);
    const gone = union([...goneOf(pack), { from: Math.max(range.from, pack.id), to: Math.min(range.to, pack.last + 1) }]);
    return { ...pack, rows: pack.rows - rows, n: pack.n - n, n_exploration: pack.n_exploration - x, gone: JSON.stringify(gone) };
  }

  #sumOf(pack: PackRow, range: IdRange): { readonly n: number; readonly x: number } {
    if (range.from <= pack.id && range.to > pack.last) return { n: pack.n, x: pack.n_exploration };
    const index = this.index(pack);
    let [n, x] = [0, 0];
    for (const row of this.rowsIn(pack, range)) {
      n += index.n[row] ?? 0;
      x += index.nExploration[row] ?? 0;
    }
    return { n, x };
  }
}

/** When a row was stamped; epoch ms. */
export interface PackedTime {
  readonly ts: number;
  readonly isSynced: boolean;
}

/** True: the row is as it was written. */
export const isPackIntact = (row: PackRow): boolean => typeof row.gone === "string" && checksumOf(row) === row.crc;

function intact(row: PackRow): PackRow {
  if (!isPackIntact(row)) throw new DamagedFileError(`the row of pack ${String(row.id)} has changed`);
  return row;
}

const goneOf = ({ gone }: PackRow): readonly IdRange[] => JSON.parse(gone) as readonly IdRange[];
const keyOf = ({ id, last }: PackRow): string => `${id} ${last}`;

function blobOf(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new Error("its data are missing");
  return value;
}

function asDamage<T>({ id }: PackRow, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new DamagedFileError(`pack ${id}: ${messageOf(error)}`, { cause: error });
  }
}

/** The one that was used longest ago goes. */
function kept<T>(known: Map<string, T>, key: string, make: () => T): T {
  const value = known.get(key) ?? make();
  known.delete(key);
  known.set(key, value);
  for (const oldest of known.keys()) {
    if (known.size <= KEPT_UNPACKED) break;
    known.delete(oldest);
  }
  return value;
}

/** Number of the first id that is at least so large. */
function firstAtLeast(ids: Float64Array, id: number): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ids[middle] ?? 0) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
