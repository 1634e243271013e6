import type { Steps } from "../../src/base/timer.ts";

/** Items in one step. */
const AT_ONCE = 1000;

/** toSorted in steps: it is stable, and costs what comparing costs where all are in order already. */
export function* sortSteps<T>(items: readonly T[], compare: (one: T, other: T) => number): Steps<T[]> {
  if (items.length <= AT_ONCE) return items.toSorted(compare);
  if (yield* isSorted(items, compare)) return items.slice();
  let runs: T[][] = [];
  for (let from = 0; from < items.length; from += AT_ONCE) {
    runs.push(items.slice(from, from + AT_ONCE).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(yield* merge(runs[i] ?? [], runs[i + 1] ?? [], compare));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* isSorted<T>(items: readonly T[], compare: (one: T, other: T) => number): Steps<boolean> {
  let last: T | undefined;
  for (const [i, item] of items.entries()) {
    if (i > 0 && compare(last as T, item) > 0) return false;
    last = item;
    if (i % AT_ONCE === 0) yield;
  }
  return true;
}

/** Of equal ones, those of `first` come first. */
function* merge<T>(first: readonly T[], second: readonly T[], compare: (one: T, other: T) => number): Steps<T[]> {
  const merged: T[] = [];
  let [at, other] = [0, 0];
  while (at < first.length && other < second.length) {
    const isFirst = compare(first[at] as T, second[other] as T) <= 0;
    merged.push((isFirst ? first[at++] : second[other++]) as T);
    if (merged.length % AT_ONCE === 0) yield;
  }
  for (; at < first.length; at++) merged.push(first[at] as T);
  for (; other < second.length; other++) merged.push(second[other] as T);
  return merged;
}
