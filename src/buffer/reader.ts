import Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import type { Account, BufferReader, Place, Position, Start, StoredBatch } from "./buffer.ts";
import { layoutRows } from "./layout-rows.ts";
import { lossReader } from "./losses.ts";
import { type BatchRow, isIntact } from "./schema.ts";

/** What a reader of the file knows in addition: the life of the file. */
export interface BufferFileReader extends BufferReader {
  readonly file: string;
  /** Id of the file's life: ids of two epochs have nothing in common. */
  epoch(): string;
}

interface SinkRow {
  readonly older: string;
  readonly live: number;
  readonly next_id: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly unconfirmed: number;
  readonly dropped: string;
}

const placeOf = ({ older, live, next_id, accepted, delivered, unconfirmed, dropped }: SinkRow): Place => ({
  position: { older: JSON.parse(older) as Position["older"], live },
  nextId: next_id,
  account: { accepted, delivered, unconfirmed, dropped: JSON.parse(dropped) as Account["dropped"] },
});

/** What a row takes of the memory beyond its payload: a read of many small ones is bounded too. */
const ROW_BYTES = 200;
const NOTHING = new Uint8Array();

/** As SQLite sums what a damaged page has in the place of a number. */
const numberIn = (value: unknown): number => (typeof value === "number" ? value : 0);

/**
 * Opens the buffer's file for short reads, while its one writer writes. Throws if it is not there or not a buffer's file.
 * A row whose checksum is wrong comes with an empty payload, which `decodeReadout` refuses: it is to be counted as damaged.
 */
export function openReader(file: string): BufferFileReader {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  // KiB; rows are read once and in order, so that pages are seldom met again.
  db.pragma("cache_size = -512");
  const meta = db.prepare<[], { epoch: string }>("SELECT epoch FROM meta");
  // One statement is one moment: next_id runs ahead of the commits as soon as the last sink is not active any more.
  const sink = db.prepare<[string], SinkRow>(
    "SELECT older, live, next_id, accepted, delivered, unconfirmed, dropped FROM sink, meta WHERE sink.id = ? AND active = 1",
  );
  const layouts = layoutRows(db);
  const batches = db.prepare<[number, number], BatchRow>(
    "SELECT id, layout, ts, n, n_exploration, crc, payload FROM batch WHERE id >= ? AND id < ? ORDER BY id",
  );
  const starts = db.prepare<[], { from_id: number; name: string }>("SELECT from_id, name FROM start ORDER BY from_id");
  const corrections = db.prepare<[number, number], { from_id: number; to_id: number; correction: number }>(
    "SELECT from_id, to_id, correction FROM stamp WHERE correction IS NOT NULL AND from_id < ? AND to_id > ?",
  );
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
    position: (id) => place(id)?.position,
    place,
    read(from, to, maxBytes): readonly StoredBatch[] {
      const found: StoredBatch[] = [];
      const corrected = corrections.all(to, from);
      let bytes = 0;
      // Leaving the loop closes the statement: no read stays open that would keep the WAL from being checkpointed.
      for (const row of batches.iterate(from, to)) {
        const payload = isIntact(row) ? row.payload : NOTHING;
        bytes += payload.byteLength + ROW_BYTES;
        if (found.length > 0 && bytes > maxBytes) break;
        const correction = corrected.find(({ from_id, to_id }) => row.id >= from_id && row.id < to_id)?.correction;
        found.push({
          id: row.id,
          layout: row.layout,
          time: row.ts + (correction ?? 0),
          correctionMs: correction,
          count: numberIn(row.n),
          explorationCount: numberIn(row.n_exploration),
          payload,
        });
        if (bytes >= maxBytes) break;
      }
      return found;
    },
    layout: (id): Layout | undefined => layouts(id)?.layout,
    losses,
    starts: (): readonly Start[] => starts.all().map(({ from_id: from, name }) => ({ from, name })),
    close: () => void db.close(),
  };
}
