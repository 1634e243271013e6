import type { StoredBatch } from "./buffer.ts";

/** The newest row of each source, for a sink of current values that takes it later. */
export class NewestRows {
  readonly #keyOf: (row: StoredBatch) => string;
  readonly #maxBytes: number;
  /** By source, oldest first. */
  readonly #rows = new Map<string, StoredBatch>();
  /** By source: the newest row where it had to go. */
  readonly #forgotten = new Map<string, ForgottenRow>();
  #bytes = 0;

  /**
   * `keyOf` names the source of a row. `maxBytes`, of payload: beyond it the oldest are forgotten. The largest row does not count, so that
   * it neither goes itself nor pushes out all others.
   */
  constructor(keyOf: (row: StoredBatch) => string, maxBytes: number) {
    this.#keyOf = keyOf;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** By source: the newest rows that are not kept here. */
  get forgotten(): ReadonlyMap<string, ForgottenRow> {
    return this.#forgotten;
  }

  add(rows: readonly StoredBatch[]): void {
    for (const row of rows) {
      const key = this.#keyOf(row);
      this.delete(key);
      this.#forgotten.delete(key);
      this.#bytes += row.payload.byteLength;
      this.#rows.set(key, row);
    }
    if (this.#bytes <= this.#maxBytes) return;
    const boundBytes = this.#maxBytes + [...this.#rows.values()].reduce((most, { payload }) => Math.max(most, payload.byteLength), 0);
    for (const [key, { id, payload }] of this.#rows) {
      if (this.#bytes <= boundBytes) return;
      this.delete(key);
      this.#forgotten.set(key, { id, bytes: payload.byteLength });
    }
  }

  /** Its row is not needed any more. */
  delete(key: string): void {
    this.#bytes -= this.#rows.get(key)?.payload.byteLength ?? 0;
    this.#rows.delete(key);
  }

  /** Oldest first. */
  rows(): Iterable<StoredBatch> {
    return this.#rows.values();
  }

  /** Forgets the sources that are not among these. */
  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#forgotten.keys()) if (!keys.has(key)) this.#forgotten.delete(key);
  }

  clear(): void {
    this.#rows.clear();
    this.#forgotten.clear();
    this.#bytes = 0;
  }
}

export interface ForgottenRow {
  readonly id: number;
  /** Of its payload. */
  readonly bytes: number;
}
