import type { StoredBatch } from "../buffer/buffer.ts";
import { wasClockSynced } from "../buffer/codec.ts";
import { type IdRange, rangesOf, union } from "../buffer/position.ts";
import { readSentStamps, SentStamps } from "../buffer/sent-stamps.ts";

/** With more ranges the oldest are forgotten. */
const MAX_RANGES = 1000;

/**
 * The batches that sinks were sent with the stamps they were read with although these may be wrong: they are sent so again, since what is sent
 * twice is the same twice. The store learns of them a moment later, and then keeps their stamps too; until then a note beside the file has them.
 */
export class UsedStamps {
  #ranges: readonly IdRange[] = [];
  #of = "";
  #note: SentStamps | undefined;

  /** The buffer's file from now on: what was sent of it in an earlier life is known again. */
  use(file: string, epoch: string): void {
    const of = `${epoch} ${file}`;
    if (of === this.#of) return;
    this.#of = of;
    this.close();
    this.#ranges = readSentStamps(file, epoch);
    this.#note = new SentStamps(file, epoch);
  }

  /** To be called before they are sent. The ids of those that are now sent so for the first time. */
  sending(rows: readonly StoredBatch[]): readonly number[] {
    const ids = rows
      .filter(({ id, correctionMs, payload }) => id >= 0 && correctionMs === undefined && !wasClockSynced(payload) && !this.#has(id))
      .map(({ id }) => id);
    if (ids.length > 0) {
      this.#ranges = union([...this.#ranges, ...rangesOf(ids)]).slice(-MAX_RANGES);
      this.#note?.write(this.#ranges);
    }
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

  close(): void {
    this.#note?.close();
  }

  #has(id: number): boolean {
    return this.#ranges.some(({ from, to }) => id >= from && id < to);
  }
}
