import type { StoredBatch } from "../buffer/buffer.ts";

/** The newest row of each source, for a sink of current values that opens after the row came. */
export class NewestRows {
  readonly #keyOf: (row: StoredBatch) => string;
  readonly #maxBytes: number;
  /** By source, oldest first. */
  readonly #rows = new Map<string, StoredBatch>();
  #bytes = 0;

  /** `keyOf` names the source of a row. `maxBytes`, of payload: beyond it the oldest are forgotten. */
  constructor(keyOf: (row: StoredBatch) => string, maxBytes: number) {
    this.#keyOf = keyOf;
    this.#maxBytes = maxBytes;
  }

  add(rows: readonly StoredBatch[]): void {
    for (const row of rows) {
      const key = this.#keyOf(row);
      this.#bytes += row.payload.byteLength - (this.#rows.get(key)?.payload.byteLength ?? 0);
      this.#rows.delete(key);
      this.#rows.set(key, row);
    }
    for (const [key, { payload }] of this.#rows) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#rows.delete(key);
      this.#bytes -= payload.byteLength;
    }
  }

  /** Oldest first. */
  rows(): Iterable<StoredBatch> {
    return this.#rows.values();
  }

  clear(): void {
    this.#rows.clear();
    this.#bytes = 0;
  }
}
