import type { StoredBatch } from "../buffer/buffer.ts";
import { wasClockSynced } from "../buffer/codec.ts";
import { type IdRange, rangesOf, union } from "../buffer/position.ts";
import { readSentStamps, SentStamps } from "../buffer/sent-stamps.ts";

/** With more ranges the oldest are forgotten. */
const MAX_RANGES = 1000;
/** With more corrections the oldest are forgotten: their rows have long been read with them. */
const MAX_CORRECTIONS = 64;

/** Rows that are about to be sent. */
export interface Sending {
  /** With the stamps to send them with. */
  readonly rows: readonly StoredBatch[];
  /** Ids of those that are sent for the first time with stamps that may be wrong. */
  readonly used: readonly number[];
}

/**
 * The batches that sinks were sent with the stamps they were read with although these may be wrong: they are sent so again, to each sink, since
 * what is sent twice is the same twice. The store learns of them a moment later, and then keeps their stamps too; until then a note beside the
 * file has them. A sink that was away may have rows in memory from before a correction that another was sent: those are sent as that was.
 */
export class UsedStamps {
  #ranges: readonly IdRange[] = [];
  /** What was sent corrected, by the correction in ms. */
  readonly #corrected = new Map<number, readonly IdRange[]>();
  #of = "";
  #note: SentStamps | undefined;

  /** The buffer's file from now on: what was sent of it in an earlier life is known again. */
  use(file: string, epoch: string): void {
    const of = `${epoch} ${file}`;
    if (of === this.#of) return;
    this.#of = of;
    this.close();
    this.#corrected.clear();
    this.#ranges = readSentStamps(file, epoch);
    this.#note = new SentStamps(file, epoch);
  }

  /** To be called before they are sent. */
  sending(rows: readonly StoredBatch[]): Sending {
    const known = this.restored(this.#corrected.size === 0 ? rows : rows.map((row) => this.#asSent(row)));
    const used = known
      .filter(({ id, correctionMs, payload }) => id >= 0 && correctionMs === undefined && !wasClockSynced(payload) && !this.#has(id))
      .map(({ id }) => id);
    if (used.length > 0) {
      this.#ranges = union([...this.#ranges, ...rangesOf(used)]).slice(-MAX_RANGES);
      this.#note?.write(this.#ranges);
    }
    this.#noteCorrected(known);
    return { rows: known, used };
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

  /** As another sink was sent it: corrected, although it was read before that was known. */
  #asSent(row: StoredBatch): StoredBatch {
    if (row.correctionMs !== undefined || this.#has(row.id)) return row;
    for (const [correctionMs, ranges] of this.#corrected)
      if (isIn(ranges, row.id)) return { ...row, time: row.time + correctionMs, correctionMs };
    return row;
  }

  #noteCorrected(rows: readonly StoredBatch[]): void {
    if (!rows.some(({ correctionMs }) => correctionMs !== undefined)) return;
    for (const [correctionMs, found] of Map.groupBy(rows, (row) => row.correctionMs)) {
      if (correctionMs === undefined) continue;
      const before = this.#corrected.get(correctionMs) ?? [];
      this.#corrected.delete(correctionMs);
      this.#corrected.set(correctionMs, union([...before, ...rangesOf(found.map(({ id }) => id))]).slice(-MAX_RANGES));
    }
    for (const oldest of this.#corrected.keys()) {
      if (this.#corrected.size <= MAX_CORRECTIONS) return;
      this.#corrected.delete(oldest);
    }
  }

  #has(id: number): boolean {
    return isIn(this.#ranges, id);
  }
}

const isIn = (ranges: readonly IdRange[], id: number): boolean => ranges.some(({ from, to }) => id >= from && id < to);
