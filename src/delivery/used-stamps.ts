import type { StoredBatch } from "../buffer/buffer.ts";
import { wasClockSynced } from "../buffer/codec.ts";
import { type IdRange, rangesOf, union } from "../buffer/position.ts";

/** With more ranges the oldest are forgotten. */
const MAX_RANGES = 1000;

/**
 * The batches that sinks were sent with the stamps they were read with although these may be wrong: they are sent so again, since what is sent
 * twice is the same twice. The store learns of them a moment later, and then keeps their stamps too.
 */
export class UsedStamps {
  #ranges: readonly IdRange[] = [];

  /** The ids of those that are now sent so for the first time. */
  use(rows: readonly StoredBatch[]): readonly number[] {
    const ids = rows
      .filter(({ id, correctionMs, payload }) => id >= 0 && correctionMs === undefined && !wasClockSynced(payload) && !this.#has(id))
      .map(({ id }) => id);
    if (ids.length > 0) this.#ranges = union([...this.#ranges, ...rangesOf(ids)]).slice(-MAX_RANGES);
    return ids;
  }

  /** The rows as the file has them now, with the stamps under which they were sent. */
  restored(rows: readonly StoredBatch[]): readonly StoredBatch[] {
    if (this.#ranges.length === 0) return rows;
    return rows.map((row) => {
      if (row.correctionMs === undefined || !this.#has(row.id)) return row;
      return { ...row, time: row.time - row.correctionMs, correctionMs: undefined };
    });
  }

  #has(id: number): boolean {
    return this.#ranges.some(({ from, to }) => id >= from && id < to);
  }
}
