import Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import type { Account, BufferReader, Place, Position, Start, StoredBatch } from "./buffer.ts";
import { layoutRows } from "./layout-rows.ts";
import { lossReader } from "./losses.ts";
import type { PayloadOf } from "./pack.ts";
import { PackReader, type PackRow } from "./packs.ts";
import type { IdRange } from "./position.ts";
import { type BatchRow, isIntact } from "./schema.ts";
import { DamagedFileError } from "./set-aside.ts";

/** What a reader of the file knows in addition: the life of the file. */
export interface BufferFileReader extends BufferReader {
  readonly file: string;
  /** Id of the file's life: ids of two epochs have nothing in common. */
  epoch(): string;
  /** Ids of the first and the last batch; undefined: it has none. */
  ids(): { readonly first: number; readonly last: number } | undefined;
}

interface SinkRow {
  readonly older: string;
  readonly live: number;
  readonly next_id: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly unconfirmed: number;
  readonly filtered: number;
  readonly dropped: string;
}

const placeOf = ({ older, live, next_id, accepted, delivered, unconfirmed, filtered, dropped }: SinkRow): Place => ({
  position: { older: JSON.parse(older) as Position["older"], live },
  nextId: next_id,
  account: { accepted, delivered, unconfirmed, filtered, dropped: JSON.parse(dropped) as Account["dropped"] },
});

/** What a row takes of the memory beyond its payload: a read of many small ones is bounded too. */
const ROW_BYTES = 200;
const NOTHING = new Uint8Array();

/** As SQLite sums what a damaged page has in the place of a number. */
const numberIn = (value: unknown): number => (typeof value === "number" ? value : 0);

interface Correction {
  readonly from_id: number;
  readonly to_id: number;
  readonly correction: number;
}

/** Rows of one read, by rising ids. */
class Found {
  readonly rows: StoredBatch[] = [];
  isFull = false;
  readonly #maxBytes: number;
  readonly #corrections: readonly Correction[];
  #bytes = 0;

  constructor(maxBytes: number, corrections: readonly Correction[]) {
    this.#maxBytes = maxBytes;
    this.#corrections = corrections;
  }

  /** False: no more fits. */
  add({ id, layout, ts, n, n_exploration }: Omit<BatchRow, "payload" | "crc">, payload: Uint8Array): boolean {
    this.#bytes += payload.byteLength + ROW_BYTES;
    this.isFull = this.#bytes >= this.#maxBytes;
    // It is too much with those before it.
    if (this.rows.length > 0 && this.#bytes > this.#maxBytes) return false;
    const correction = this.#corrections.find(({ from_id, to_id }) => id >= from_id && id < to_id)?.correction;
    this.rows.push({
      id,
      layout,
      time: ts + (correction ?? 0),
      correctionMs: correction,
      count: numberIn(n),
      explorationCount: numberIn(n_exploration),
      payload,
    });
    return !this.isFull;
  }
}

function addPacked(found: Found, packs: PackReader, pack: PackRow, range: IdRange): void {
  const { ids, groups, groupOf, ts, n, nExploration } = packs.index(pack);
  const payloadOf = payloadsOf(packs, pack);
  for (const i of packs.rowsIn(pack, range)) {
    const row = {
      id: ids[i] ?? 0,
      layout: groups[groupOf[i] ?? 0]?.layout ?? 0,
      ts: ts[i] ?? 0,
      n: n[i] ?? 0,
      n_exploration: nExploration[i] ?? 0,
    };
    if (!found.add(row, payloadOf(i))) return;
  }
}

/** A body that is damaged costs its values: what they count for is in the head. */
function payloadsOf(packs: PackReader, pack: PackRow): PayloadOf {
  try {
    return packs.payloads(pack);
  } catch (error) {
    if (error instanceof DamagedFileError) return () => NOTHING;
    throw error;
  }
}

/**
 * Opens the buffer's file for short reads, while its one writer writes. Throws if it is not there or not a buffer's file.
 * A row whose checksum is wrong, and each of a pack whose values are, comes with an empty payload, which `decodeReadout` refuses: it is to be counted as damaged.
 */
export function openReader(file: string): BufferFileReader {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  // KiB; rows are read once and in order, so that pages are seldom met again.
  db.pragma("cache_size = -512");
  const meta = db.prepare<[], { epoch: string }>("SELECT epoch FROM meta");
  // One statement is one moment: next_id runs ahead of the commits as soon as the last sink is not active any more.
  const sink = db.prepare<[string], SinkRow>(
    "SELECT older, live, next_id, accepted, delivered, unconfirmed, filtered, dropped FROM sink, meta WHERE sink.id = ? AND active = 1",
  );
  const layouts = layoutRows(db);
  const ends = db.prepare<[], { first: number | null; last: number | null }>(
    "SELECT min(id) AS first, max(id) AS last FROM (SELECT min(id) AS id FROM batch UNION SELECT max(id) FROM batch UNION SELECT min(id) FROM pack UNION SELECT max(last) FROM pack)",
  );
  const batches = db.prepare<[number, number], BatchRow>(
    "SELECT id, layout, ts, n, n_exploration, crc, payload FROM batch WHERE id >= ? AND id < ? ORDER BY id",
  );
  const starts = db.prepare<[], { from_id: number; name: string }>("SELECT from_id, name FROM start ORDER BY from_id");
  const corrections = db.prepare<[number, number], Correction>(
    "SELECT from_id, to_id, correction FROM stamp WHERE correction IS NOT NULL AND from_id < ? AND to_id > ?",
  );
  const packs = new PackReader(db);
  const losses = lossReader(db);
  const place = (id: string): Place | undefined => {
    const row = sink.get(id);
    return row && placeOf(row);
  };
  return {
    file,
    epoch(): string {
      const row = meta.get();
      if (!row) throw new Error(`${file} is not a buffer: its table meta is empty`);
      return row.epoch;
    },
    ids: () => {
      const { first, last } = ends.get() ?? { first: null, last: null };
      return first === null || last === null ? undefined : { first, last };
    },
    position: (id) => place(id)?.position,
    place,
    // One moment: rows may move into a pack between two statements, and none of both would have them.
    read: db.transaction((from: number, to: number, maxBytes: number): readonly StoredBatch[] => {
      const found = new Found(maxBytes, corrections.all(to, from));
      for (let at = from; at < to && !found.isFull; ) {
        const pack = packs.firstOf({ from: at, to });
        // Leaving the loop closes the statement: no read stays open that would keep the WAL from being checkpointed.
        for (const row of batches.iterate(at, pack?.id ?? to)) if (!found.add(row, isIntact(row) ? row.payload : NOTHING)) break;
        if (!pack || found.isFull) break;
        addPacked(found, packs, pack, { from: at, to });
        at = pack.last + 1;
      }
      return found.rows;
    }),
    layout: (id): Layout | undefined => layouts(id)?.layout,
    losses,
    starts: (): readonly Start[] => starts.all().map(({ from_id: from, name }) => ({ from, name })),
    close: () => void db.close(),
  };
}
