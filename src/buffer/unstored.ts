import type { Layout } from "../model/layout.ts";
import type { NewBatch, StoredBatch } from "./buffer.ts";
import { createRecentLayouts } from "./recent-layouts.ts";

/** Batches that are handed out without being in a file: their ids, and those of their layouts, are negative. */
export class Unstored {
  /** By key, for as long as the host takes them to be known. */
  readonly #layouts = createRecentLayouts<string, { readonly number: number; readonly layout: Layout }>();
  #nextLayout = 1;
  /** The last batch that was shown before it was stored. */
  #shownTo = 0;

  addLayout(key: string, layout: Layout): void {
    this.#layouts.add(key, layout.source.uuid, { number: this.#nextLayout++, layout });
  }

  /** By the id that such a batch names. */
  layout(id: number): Layout | undefined {
    return this.#layouts.entries().find(([, { number }]) => number === -id)?.[1].layout;
  }

  /** Those of the batches that were not shown before. */
  notShown(batches: readonly NewBatch[]): readonly NewBatch[] {
    return this.#shownTo === 0 ? batches : batches.filter(({ seq }) => seq > this.#shownTo);
  }

  shown(batches: readonly NewBatch[]): void {
    this.#shownTo = batches.at(-1)?.seq ?? this.#shownTo;
  }

  numbered(batches: readonly NewBatch[]): readonly StoredBatch[] {
    return batches.map(({ seq, layoutKey, time, count, explorationCount, payload, shown }) => {
      const layout = -(this.#layouts.get(layoutKey)?.number ?? 0);
      return { id: -seq, layout, time, count, explorationCount, payload, ...(shown && { shown }) };
    });
  }
}
