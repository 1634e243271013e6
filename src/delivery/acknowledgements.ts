import type { Acknowledgement, DropReason } from "../buffer/buffer.ts";

/** What became of one row, in values. */
export interface Outcome {
  readonly delivered: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
}

export type Settled = Omit<Acknowledgement, "sink">;

/**
 * Rows on their way, in the order in which they came. They are acknowledged from the front only, so that what is pending
 * stays a few ranges of ids however the sources' rows lie between each other.
 */
export interface Lane {
  add(id: number): void;
  /** Rows that are not on their way (any more) are left alone. */
  settle(id: number, outcome: Outcome): void;
  /** Takes a row off: it goes another way. */
  remove(id: number): void;
  /** Of all that is in the lane. */
  ids(): Iterable<number>;
  /** The settled rows in front of the first that is not. */
  takeSettled(): Settled | undefined;
  /** Empties the lane: all that is settled, and the rest. */
  takeAll(): { readonly settled: Settled | undefined; readonly unsettled: readonly number[] };
}

export function createLane(): Lane {
  const rows = new Map<number, Outcome | undefined>();
  return {
    add: (id) => void rows.set(id, undefined),
    settle(id, outcome) {
      if (rows.has(id)) rows.set(id, outcome);
    },
    remove: (id) => void rows.delete(id),
    ids: () => rows.keys(),
    takeSettled() {
      const taken: [number, Outcome][] = [];
      for (const [id, outcome] of rows) {
        if (!outcome) break;
        taken.push([id, outcome]);
        rows.delete(id);
      }
      return sum(taken);
    },
    takeAll() {
      const taken: [number, Outcome][] = [];
      const unsettled: number[] = [];
      for (const [id, outcome] of rows)
        if (outcome) taken.push([id, outcome]);
        else unsettled.push(id);
      rows.clear();
      return { settled: sum(taken), unsettled };
    },
  };
}

function sum(rows: readonly (readonly [number, Outcome])[]): Settled | undefined {
  if (rows.length === 0) return undefined;
  let delivered = 0;
  const dropped: Partial<Record<DropReason, number>> = {};
  for (const [, outcome] of rows) {
    delivered += outcome.delivered;
    addDropped(dropped, outcome.dropped);
  }
  return { ids: rows.map(([id]) => id), delivered, dropped };
}

/** Two acknowledgements as one. */
export const joinSettled = (a: Settled, b: Settled): Settled => joinAllSettled([a, b]);

export function joinAllSettled(all: readonly Settled[]): Settled {
  const dropped: Partial<Record<DropReason, number>> = {};
  for (const one of all) addDropped(dropped, one.dropped);
  return { ids: all.flatMap(({ ids }) => ids), delivered: all.reduce((sum, one) => sum + one.delivered, 0), dropped };
}

function addDropped(into: Partial<Record<DropReason, number>>, more: Outcome["dropped"]): void {
  for (const [reason, values] of Object.entries(more) as [DropReason, number][]) into[reason] = (into[reason] ?? 0) + values;
}
