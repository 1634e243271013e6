import type { Acknowledgement, DropReason } from "../buffer/buffer.ts";

/** What became of one row, in values. */
export interface Outcome {
  readonly delivered: number;
  /** Left out by the filter of the sink; absent: none. */
  readonly filtered?: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
}

export type Settled = Omit<Acknowledgement, "sink">;

/**
 * The rows that are being delivered, in the order in which they came. Acknowledges from the front: what is pending then stays a few ranges
 * of ids, however the rows of several sources alternate. Where a few rows hold up all behind them, those can be taken over their heads.
 */
export class AcknowledgementTracker {
  /** By row, in order; undefined: not settled yet. */
  readonly #rows = new Map<number, Outcome | undefined>();
  #settled = 0;

  add(id: number): void {
    this.#rows.set(id, undefined);
  }

  /** Ignores rows that are not tracked (any more). */
  settle(id: number, outcome: Outcome): void {
    if (!this.#rows.has(id)) return;
    if (!this.#rows.get(id)) this.#settled++;
    this.#rows.set(id, outcome);
  }

  /** Stops tracking a row, without an outcome. */
  remove(id: number): void {
    this.#forget(id);
  }

  /** Rows that are settled and not taken. */
  settled(): number {
    return this.#settled;
  }

  /** Of all tracked rows. */
  ids(): Iterable<number> {
    return this.#rows.keys();
  }

  /** Takes the settled rows before the first unsettled one; undefined: there are none. */
  takeSettled(): Settled | undefined {
    const taken: [number, Outcome][] = [];
    for (const [id, outcome] of this.#rows) {
      if (!outcome) break;
      taken.push([id, outcome]);
      this.#forget(id);
    }
    return sum(taken);
  }

  /** Takes the settled rows behind unsettled ones, as far as these are at most so many ranges of ids; undefined: there are none. */
  takeSettledBehind(maxRanges: number): Settled | undefined {
    const taken: [number, Outcome][] = [];
    let ranges = 0;
    let last: number | undefined;
    for (const [id, outcome] of this.#rows) {
      if (outcome) {
        taken.push([id, outcome]);
        continue;
      }
      if (last === undefined || id !== last + 1) ranges++;
      if (ranges > maxRanges) break;
      last = id;
    }
    for (const [id] of taken) this.#forget(id);
    return sum(taken);
  }

  /** Empties the tracker: all settled rows, and the ids of the others. */
  takeAll(): { readonly settled: Settled | undefined; readonly unsettled: readonly number[] } {
    const taken: [number, Outcome][] = [];
    const unsettled: number[] = [];
    for (const [id, outcome] of this.#rows)
      if (outcome) taken.push([id, outcome]);
      else unsettled.push(id);
    this.#rows.clear();
    this.#settled = 0;
    return { settled: sum(taken), unsettled };
  }

  #forget(id: number): void {
    if (this.#rows.get(id)) this.#settled--;
    this.#rows.delete(id);
  }
}

function sum(rows: readonly (readonly [number, Outcome])[]): Settled | undefined {
  if (rows.length === 0) return undefined;
  let delivered = 0;
  let filtered = 0;
  const dropped: Partial<Record<DropReason, number>> = {};
  for (const [, outcome] of rows) {
    delivered += outcome.delivered;
    filtered += outcome.filtered ?? 0;
    addDropped(dropped, outcome.dropped);
  }
  const droppedIds = rows.flatMap(([id, outcome]) => (Object.keys(outcome.dropped).length > 0 ? [id] : []));
  return {
    ids: rows.map(([id]) => id),
    delivered,
    ...(filtered > 0 && { filtered }),
    dropped,
    ...(droppedIds.length > 0 && { droppedIds }),
  };
}

/** Two acknowledgements as one. */
export const joinSettled = (a: Settled, b: Settled): Settled => joinAllSettled([a, b]);

/** All of one sink: they are all confirmed, or none of them is. */
export function joinAllSettled(all: readonly Settled[]): Settled {
  const dropped: Partial<Record<DropReason, number>> = {};
  for (const one of all) addDropped(dropped, one.dropped);
  const filtered = all.reduce((sum, one) => sum + (one.filtered ?? 0), 0);
  const droppedIds = all.flatMap((one) => one.droppedIds ?? []);
  return {
    ids: all.flatMap(({ ids }) => ids),
    delivered: all.reduce((sum, one) => sum + one.delivered, 0),
    dropped,
    ...(filtered > 0 && { filtered }),
    ...(droppedIds.length > 0 && { droppedIds }),
    ...(all.some(({ isUnconfirmed }) => isUnconfirmed) && { isUnconfirmed: true }),
  };
}

function addDropped(into: Partial<Record<DropReason, number>>, more: Outcome["dropped"]): void {
  for (const [reason, values] of Object.entries(more) as [DropReason, number][]) into[reason] = (into[reason] ?? 0) + values;
}
