import { atOnce, type Steps } from "../../src/base/timer.ts";
import { sortSteps } from "./sort.ts";

/** A run of registers, bits or bytes in one address space: `length` from `start`. */
export interface Span {
  readonly start: number;
  readonly length: number;
}

export interface SpanLimits {
  /** Longest group; an item that is longer by itself stands alone. */
  readonly length: number;
  /** Unasked-for places that a group may bridge at once. */
  readonly gap: number;
  /** Items in a group. */
  readonly count: number;
}

export interface SpanGroup<T> extends Span {
  readonly items: readonly T[];
}

/** Items in one step. */
const AT_ONCE = 1000;

/**
 * Groups the spans of one address space into few reads. Pure; the same groups whatever the order of the items. No item is split, and
 * one of `apart` begins a group.
 */
export const groupSpans = <T>(
  items: readonly T[],
  spanOf: (item: T) => Span,
  limits: SpanLimits,
  apart?: ReadonlySet<unknown>,
): SpanGroup<T>[] => atOnce(groupSpansSteps(items, spanOf, limits, apart));

/** groupSpans in steps. */
export function* groupSpansSteps<T>(
  items: readonly T[],
  spanOf: (item: T) => Span,
  limits: SpanLimits,
  apart?: ReadonlySet<unknown>,
): Steps<SpanGroup<T>[]> {
  const sorted = yield* sortSteps(items, (a, b) => {
    const [one, other] = [spanOf(a), spanOf(b)];
    return one.start - other.start || one.length - other.length;
  });
  const groups: { start: number; length: number; items: T[] }[] = [];
  for (const [i, item] of sorted.entries()) {
    if (i % AT_ONCE === 0) yield;
    const span = spanOf(item);
    const last = apart?.has(item) ? undefined : groups.at(-1);
    const length = last ? Math.max(last.length, span.start + span.length - last.start) : 0;
    if (last && span.start <= last.start + last.length + limits.gap && length <= limits.length && last.items.length < limits.count) {
      last.length = length;
      last.items.push(item);
    } else groups.push({ start: span.start, length: span.length, items: [item] });
  }
  return groups;
}
