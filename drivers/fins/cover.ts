import type { Steps } from "../../src/base/timer.ts";
import { sortSteps } from "../lib/sort.ts";

/**
 * Which words are read as ranges and which one by one, so that as few requests as possible are needed. A range is one request for up to
 * `maxWords` words that lie near each other; what is in no range shares requests of `maxItems` words from anywhere.
 */

/** Values of one address space in the order of their place; what must be asked for together is one unit. */
export interface SpaceUnits {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** First point of each unit; one more than there are units. */
  readonly firsts: Int32Array;
  /** 1: the unit begins a request. */
  readonly isApart: Uint8Array;
}

export interface Bounds {
  readonly maxWords: number;
  readonly maxItems: number;
  readonly maxGap: number;
  readonly maxPoints: number;
}

/** Units `first` to before `end` of a space. */
export interface Range {
  readonly space: number;
  readonly first: number;
  readonly end: number;
}

/** In the order of space and place. */
export interface Choice {
  readonly ranges: readonly Range[];
  readonly loose: readonly { readonly space: number; readonly unit: number }[];
}

/** Bytes of a request and its answer beside the words; of one more word in a list, and in a range. */
const [HEADER_BYTES, ITEM_BYTES, WORD_BYTES] = [36, 7, 2];
/** Of a request: bytes decide between equal numbers of requests, and never beyond that. */
const PER_BYTE = 1e-9;
/** What is read as a range because that takes fewer bytes bridges no more than this. */
const DENSE_GAP = 4;

/** True: so many of these words are worth a range instead of a list: it takes no more bytes. */
export const isDense = (words: number, items: number): boolean => words * WORD_BYTES <= items * ITEM_BYTES;

/** Units in one step. */
const AT_ONCE = 1000;

/** Pure; takes a time in proportion to the units, in steps. */
export function* chooseRanges(spaces: readonly SpaceUnits[], bounds: Bounds): Steps<Choice> {
  const ranges: Range[] = [];
  const loose: { space: number; unit: number }[] = [];
  for (const [space, units] of spaces.entries()) {
    const owner = yield* cheapest(units, bounds);
    for (let unit = 0, step = 0; unit < owner.length; step++) {
      if (step % AT_ONCE === 0) yield;
      const end = owner[unit] ?? 0;
      if (end === 0) loose.push({ space, unit: unit++ });
      else {
        ranges.push({ space, first: unit, end });
        unit = end;
      }
    }
  }
  return yield* withDenseRanges(spaces, { ranges, loose }, bounds);
}

const sizeOf = ({ starts, ends }: SpaceUnits, unit: number): number => (ends[unit] ?? 0) - (starts[unit] ?? 0);

/**
 * The cheapest cover of one space, from its first unit to its last: a unit costs its part of a list, or a range that ends with it costs one
 * request. Gives for each unit at which a range begins the unit after it, 0 for those that are in none. As lists are filled up, no cover
 * needs fewer requests: a cover that costs less than n + 1 whole requests makes n at most.
 */
function* cheapest(units: SpaceUnits, { maxWords, maxItems, maxGap, maxPoints }: Bounds): Steps<Int32Array> {
  const { starts, ends, firsts, isApart } = units;
  const n = starts.length;
  const cost = new Float64Array(n + 1);
  /** The place where the range that ends with the unit begins; -1: the unit is in a list. */
  const from = new Int32Array(n).fill(-1);
  let first = 0;
  // Units may overlap where they had to be split.
  let reach = starts[0] ?? 0;
  for (let i = 0; i < n; i++) {
    if (i % AT_ONCE === 0) yield;
    const start = starts[i] ?? 0;
    // No range goes on over this.
    if (isApart[i] === 1 || start - reach > maxGap) first = i;
    reach = Math.max(reach, ends[i] ?? 0);
    while (first < i && (reach - (starts[first] ?? 0) > maxWords || (firsts[i + 1] ?? 0) - (firsts[first] ?? 0) > maxPoints)) first++;
    const size = sizeOf(units, i);
    const single = size <= maxItems ? (cost[i] ?? 0) + size / maxItems + size * ITEM_BYTES * PER_BYTE : Number.POSITIVE_INFINITY;
    const range = (cost[first] ?? 0) + 1 + (HEADER_BYTES + (reach - (starts[first] ?? 0)) * WORD_BYTES) * PER_BYTE;
    if (range <= single) from[i] = first;
    cost[i + 1] = Math.min(range, single);
  }
  const owner = new Int32Array(n);
  for (let i = n - 1, step = 1; i >= 0; step++) {
    if (step % AT_ONCE === 0) yield;
    const begin = from[i] ?? -1;
    if (begin >= 0) owner[begin] = i + 1;
    i = begin >= 0 ? begin - 1 : i - 1;
  }
  return owner;
}

/** Dense runs of what is left become ranges where that takes no more requests and fewer bytes. */
function* withDenseRanges(spaces: readonly SpaceUnits[], { ranges, loose }: Choice, bounds: Bounds): Steps<Choice> {
  const { maxItems } = bounds;
  const found = yield* runsOf(spaces, loose, bounds);
  let left = found.reduce((sum, { items }) => sum + items, 0);
  /** 1: the unit of the space is in a dense run. */
  const dense = spaces.map(({ starts }) => new Uint8Array(starts.length));
  const more: Range[] = [];
  const runs = yield* sortSteps(found, (a, b) => b.items - a.items);
  for (const [i, { space, first, end, items, words }] of runs.entries()) {
    if (i % AT_ONCE === 0) yield;
    // What the last list holds: a run that takes at least as much away saves that list.
    const inLast = left - (Math.ceil(left / maxItems) - 1) * maxItems;
    if (items < inLast || !isDense(words, items)) continue;
    left -= items;
    more.push({ space, first, end });
    dense[space]?.fill(1, first, end);
    if (left === 0) break;
  }
  if (more.length === 0) return { ranges, loose };
  const rest: Choice["loose"][number][] = [];
  for (const [i, one] of loose.entries()) {
    if (i % AT_ONCE === 0) yield;
    if (dense[one.space]?.[one.unit] !== 1) rest.push(one);
  }
  return { ranges: yield* sortSteps([...ranges, ...more], (a, b) => a.space - b.space || a.first - b.first), loose: rest };
}

interface Run extends Range {
  /** Words that were asked for, and those from the first to the last. */
  readonly items: number;
  readonly words: number;
}

/** Runs of units that are in no range, with small gaps between them. */
function* runsOf(spaces: readonly SpaceUnits[], loose: Choice["loose"], { maxWords, maxGap, maxPoints }: Bounds): Steps<Run[]> {
  const gap = Math.min(maxGap, DENSE_GAP);
  const runs: { space: number; first: number; end: number; items: number; words: number }[] = [];
  for (const [i, { space, unit }] of loose.entries()) {
    if (i % AT_ONCE === 0) yield;
    const units = spaces[space] as SpaceUnits;
    const { starts, ends, firsts, isApart } = units;
    const size = sizeOf(units, unit);
    const last = runs.at(-1);
    const words = (ends[unit] ?? 0) - (starts[last?.first ?? 0] ?? 0);
    const isNext = last?.space === space && last.end === unit && isApart[unit] === 0;
    if (
      last &&
      isNext &&
      (starts[unit] ?? 0) - (ends[unit - 1] ?? 0) <= gap &&
      words <= maxWords &&
      (firsts[unit + 1] ?? 0) - (firsts[last.first] ?? 0) <= maxPoints
    ) {
      last.end = unit + 1;
      last.items += size;
      last.words = words;
    } else runs.push({ space, first: unit, end: unit + 1, items: size, words: size });
  }
  return runs;
}
