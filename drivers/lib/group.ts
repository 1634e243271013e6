import { LargeMap } from "../../src/base/large-map.ts";
import type { Steps } from "../../src/base/timer.ts";

/** Items in one step, by numbers and by texts. */
const [AT_ONCE, TEXTS_AT_ONCE] = [1000, 250];

/** Map.groupBy in steps, for a few thousand groups at most: a large map is copied in one go as it grows. */
export function* groupSteps<T>(items: readonly T[], keyOf: (item: T) => number): Steps<Map<number, T[]>> {
  const groups = new Map<number, T[]>();
  for (const [i, item] of items.entries()) {
    if (i % AT_ONCE === 0) yield;
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** The items of one text together, in the order in which the texts come, in steps: one where there are few. For any number of groups. */
export function* groupTextSteps<T>(items: readonly T[], textOf: (item: T) => string): Steps<T[][]> {
  if (items.length <= TEXTS_AT_ONCE) return [...Map.groupBy(items, textOf).values()];
  const groups: T[][] = [];
  const byText = new LargeMap<T[]>();
  const newGroup = (): T[] => {
    const group: T[] = [];
    groups.push(group);
    return group;
  };
  for (const [i, item] of items.entries()) {
    if (i % TEXTS_AT_ONCE === 0) yield;
    byText.getOrMake(textOf(item), newGroup).push(item);
  }
  return groups;
}
