import type { CommitWork, StoredBatch } from "./buffer.ts";
import { createRecentLayouts } from "./recent-layouts.ts";

/** Which layouts of the file may still be named, by a row that is there or by one to come. */
export interface LayoutUse {
  /** What was committed; `ids` are those of the layouts after it. */
  committed(work: CommitWork, batches: readonly StoredBatch[], ids: ReadonlyMap<string, number>): void;
  /** Keys of layouts that nothing names. `firstId`: rows below are gone. */
  unused(ids: ReadonlyMap<string, number>, firstId: number): readonly string[];
}

/** `nextId`: rows below may name any layout that the file had when it was opened. */
export function createLayoutUse(nextId: number): LayoutUse {
  /** By id in the file; the acquisition sends a layout anew before it names one that is not among these. */
  const recent = createRecentLayouts<number, true>();
  /** The last row that names it. */
  const last = new Map<number, number>();
  return {
    committed({ layouts }, batches, ids) {
      for (const { key, layout } of layouts) {
        const id = ids.get(key);
        if (id !== undefined) recent.add(id, layout.source.uuid, true);
      }
      for (const { id, layout } of batches) last.set(layout, id);
    },
    unused(ids, firstId) {
      const unused: string[] = [];
      for (const [key, id] of ids) if (!recent.get(id) && (last.get(id) ?? nextId - 1) < firstId) unused.push(key);
      return unused;
    },
  };
}
