import type { Position } from "./buffer.ts";

/** Ids with from <= id < to. */
export interface IdRange {
  readonly from: number;
  readonly to: number;
}

/** Older ranges one position may have; what exceeds it is joined to its neighbour. */
export const MAX_OLDER_RANGES = 16;

/** Nothing pending but what is still to come. */
export function startAtLiveEdge(nextId: number): Position {
  return { older: [], live: nextId };
}

export function isPending(position: Position, id: number): boolean {
  return id >= position.live || position.older.some((range) => id >= range.from && id < range.to);
}

/** The position without the ids of `ranges` (rising, apart). Has as many older ranges as that takes. */
export function subtract(position: Position, ranges: readonly IdRange[]): Position {
  const older = without([...position.older, { from: position.live, to: Number.POSITIVE_INFINITY }], ranges);
  const live = older.pop();
  return { older: union(older), live: live?.from ?? position.live };
}

/**
 * Joins the closest older ranges until MAX_OLDER_RANGES are left: what is between them is pending again, so it may be delivered twice and is
 * never lost. `regained` is that, rising.
 */
export function joinClosest(position: Position): { readonly position: Position; readonly regained: readonly IdRange[] } {
  if (position.older.length <= MAX_OLDER_RANGES) return { position, regained: [] };
  const gaps: IdRange[] = [];
  let previous: IdRange | undefined;
  for (const range of position.older) {
    if (previous) gaps.push({ from: previous.to, to: range.from });
    previous = range;
  }
  const regained = gaps
    .sort((a, b) => a.to - a.from - (b.to - b.from) || a.from - b.from)
    .slice(0, position.older.length - MAX_OLDER_RANGES)
    .sort((a, b) => a.from - b.from);
  return { position: { older: union([...position.older, ...regained]), live: position.live }, regained };
}

/** The ids as ranges, rising and apart. */
export function rangesOf(ids: readonly number[]): IdRange[] {
  return union(ids.map((id) => ({ from: id, to: id + 1 })));
}

/** Joins ranges in any order to rising ones that do not touch; empty ones vanish. */
export function union(ranges: readonly IdRange[]): IdRange[] {
  const result: IdRange[] = [];
  for (const range of ranges.filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last && range.from <= last.to) result[result.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
    else result.push(range);
  }
  return result;
}

/** Returns `ranges` without `taken`; both rising and apart (ranges may touch, and keep their borders). */
export function without(ranges: readonly IdRange[], taken: readonly IdRange[]): IdRange[] {
  const left: IdRange[] = [];
  let first = 0;
  for (const range of ranges) {
    let from = range.from;
    while (first < taken.length && (taken[first]?.to ?? 0) <= from) first++;
    for (let i = first; i < taken.length; i++) {
      const cut = taken[i];
      if (!cut || cut.from >= range.to) break;
      if (cut.from > from) left.push({ from, to: cut.from });
      from = Math.max(from, cut.to);
    }
    if (from < range.to) left.push({ from, to: range.to });
  }
  return left;
}
