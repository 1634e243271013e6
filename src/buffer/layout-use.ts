import type { CommitWork, StoredBatch } from "./buffer.ts";
import { createRecentLayouts } from "./recent-layouts.ts";

/** Which layouts of the file may still be named, by a row that is there or by one to come. */
export class LayoutUse {
  readonly #nextId: number;
  /** By id in the file; the host sends a layout again before it names one that is not among these. */
  readonly #recent = createRecentLayouts<number, true>();
  /** The last row that names it. */
  readonly #last = new Map<number, number>();

  /** `nextId`: rows below may name any layout that the file had when it was opened. */
  constructor(nextId: number) {
    this.#nextId = nextId;
  }

  /** What was committed; `ids` are those of the layouts after it. */
  committed({ layouts }: CommitWork, batches: readonly StoredBatch[], ids: ReadonlyMap<string, number>): void {
    for (const { key, layout } of layouts) {
      const id = ids.get(key);
      if (id !== undefined) this.#recent.add(id, layout.source.uuid, true);
    }
    for (const { id, layout } of batches) this.#last.set(layout, id);
  }

  /** Keys of layouts that nothing names. `firstId`: rows below are gone. */
  unused(ids: ReadonlyMap<string, number>, firstId: number): readonly string[] {
    const unused: string[] = [];
    for (const [key, id] of ids) if (!this.#recent.get(id) && (this.#last.get(id) ?? this.#nextId - 1) < firstId) unused.push(key);
    return unused;
  }
}
