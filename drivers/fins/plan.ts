import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { groupSteps } from "../lib/group.ts";
import { sortSteps } from "../lib/sort.ts";
import type { FinsVariable } from "./address.ts";
import { areaName, type Place } from "./areas.ts";
import { type Bounds, type Choice, chooseRanges, isDense, type SpaceUnits } from "./cover.ts";
import { type Decoder, type Decoders, decoderOf } from "./decode.ts";
import type { WireRange } from "./frames.ts";

/** Words and flags that are read one by one: `codes[i]` and `addresses[i]` belong together. */
export interface ItemList {
  readonly codes: Uint8Array;
  readonly addresses: Uint16Array;
  /** Bytes of each: 2 for a word, 1 for a flag, 4 for a long register. */
  readonly sizes: Uint8Array;
}

/** One memory area read of a range, or one multiple memory area read. `decoders[i]` and `offsets[i]` belong to `points[i]`. */
export interface FinsRead extends Request<FinsVariable> {
  /** Undefined: it reads `items`. A value that is longer than one read brings has a range of its own. */
  readonly range: WireRange | undefined;
  readonly items: ItemList | undefined;
  /** The ranges that it asks for, in words. */
  readonly text: string;
  /** Of the values, without the area codes between them in an answer. */
  readonly dataBytes: number;
  readonly decoders: readonly Decoder[];
  /** The place where a point begins in these bytes. */
  readonly offsets: Int32Array;
}

export interface FinsLimits extends Limits {
  /** Words or flags of one range. */
  readonly maxWords: number;
  /** Words and flags of one multiple read; 0: the controller has no such command. */
  readonly maxItems: number;
  /** Unused words that one range may bridge. */
  readonly maxGap: number;
}

/** What is at one code and base on the wire, and its points, sorted. */
interface Space {
  readonly place: Place;
  /** Any of its variables: for names. */
  readonly sample: FinsVariable;
  readonly elementBytes: number;
  /** Units of one element: a long register counts as two words, so that limits hold for it. */
  readonly weight: number;
  readonly points: readonly Point<FinsVariable>[];
  readonly units: SpaceUnits;
}

/** Values of one space that are read together, by their units: from `first` to before `end`. */
interface Units {
  readonly space: Space;
  readonly first: number;
  readonly end: number;
}

/**
 * As few requests as the limits allow, in the order of code and address: ranges where words are dense, and single words where they are
 * scattered. A value is never split, unless one range cannot hold it. Pure.
 */
export const plan = (points: readonly Point<FinsVariable>[], limits: FinsLimits, apart?: ReadonlySet<Point>): FinsRead[] =>
  atOnce(planSteps(points, limits, apart));

/** Points, and units that lists are made of, in one step. */
const [AT_ONCE, LOOSE_AT_ONCE] = [1000, 250];

/** plan in steps. */
export function* planSteps(points: readonly Point<FinsVariable>[], limits: FinsLimits, apart?: ReadonlySet<Point>): Steps<FinsRead[]> {
  const maxWords = Math.max(1, Math.min(limits.maxWords, limits.maxBytes >> 1));
  // In an answer each word comes behind its area code.
  const maxItems = Math.min(limits.maxItems, Math.floor(limits.maxBytes / 3));
  const bounds = { maxWords, maxItems, maxGap: limits.maxGap, maxPoints: limits.maxPoints };
  const spaces = yield* spacesOf(points, maxWords, limits.maxPoints, apart);
  const { ranges, loose } = yield* chooseRanges(
    spaces.map(({ units }) => units),
    bounds,
  );
  const decoders: Decoders = new Map();
  const reads: FinsRead[] = [];
  for (const { space, first, end } of ranges) {
    reads.push(rangeOf({ space: spaceAt(spaces, space), first, end }, decoders));
    yield;
  }
  yield* addLists(reads, { spaces, loose, bounds, decoders });
  return reads;
}

function spaceAt(spaces: readonly Space[], at: number): Space {
  const space = spaces[at];
  if (!space) throw new RangeError(`there is no space ${at}`);
  return space;
}

const placeIn = ({ place, area, start }: FinsVariable): Place => {
  if (!place) throw new TypeError(`${area}${start} has not been looked up`);
  return place;
};

const BASES = 0x1_0000;

function* spacesOf(
  points: readonly Point<FinsVariable>[],
  maxWords: number,
  maxPoints: number,
  apart: ReadonlySet<Point> | undefined,
): Steps<Space[]> {
  const byPlace = yield* groupSteps(points, ({ address }) => placeIn(address).code * BASES + placeIn(address).base);
  const spaces: Space[] = [];
  for (const [, own] of [...byPlace].sort(([a], [b]) => a - b)) {
    const space = yield* spaceOf(own, maxWords, maxPoints, apart);
    if (space) spaces.push(space);
  }
  return spaces;
}

// Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
const byStart = (a: Point<FinsVariable>, b: Point<FinsVariable>): number =>
  a.address.start - b.address.start || a.address.count - b.address.count || a.index - b.index;

/** Values that overlap are one unit, unless it becomes too long: they are asked for together. */
function* spaceOf(
  points: readonly Point<FinsVariable>[],
  maxWords: number,
  maxPoints: number,
  apart: ReadonlySet<Point> | undefined,
): Steps<Space | undefined> {
  const own = yield* sortSteps(points, byStart);
  const sample = own[0]?.address;
  if (!sample) return undefined;
  const weight = placeIn(sample).hasLongElements ? 2 : 1;
  const [starts, ends, firsts, aparts]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (const [i, point] of own.entries()) {
    if (i % AT_ONCE === 0) yield;
    const [start, count] = [point.address.start * weight, point.address.count * weight];
    const last = starts.length - 1;
    const [from = 0, to = -1, first = 0] = [starts[last], ends[last], firsts[last]];
    const isApart = apart?.has(point) === true;
    const joined = Math.max(to, start + count);
    if (start < to && !isApart && joined - from <= maxWords && i - first < maxPoints) ends[last] = joined;
    else {
      starts.push(start);
      ends.push(start + count);
      firsts.push(i);
      aparts.push(isApart ? 1 : 0);
    }
  }
  firsts.push(own.length);
  const units = {
    starts: new Int32Array(starts),
    ends: new Int32Array(ends),
    firsts: new Int32Array(firsts),
    isApart: new Uint8Array(aparts),
  };
  return { place: placeIn(sample), sample, elementBytes: sample.isFlag ? 1 : 2 * weight, weight, points: own, units };
}

function rangeOf({ space, first, end }: Units, decoders: Decoders): FinsRead {
  const { starts, firsts } = space.units;
  const { elementBytes, weight, place, sample } = space;
  const start = (starts[first] ?? 0) / weight;
  const count = reachOf({ space, first, end }) / weight - start;
  const points = space.points.slice(firsts[first], firsts[end]);
  return {
    points,
    range: { code: place.code, address: place.base + start, count },
    items: undefined,
    text: rangeText(sample, start, count),
    dataBytes: count * elementBytes,
    decoders: points.map(({ address, type }) => decoderOf(address, type.count, decoders)),
    offsets: Int32Array.from(points, ({ address }) => (address.start - start) * elementBytes),
  };
}

/** Behind the last word of these units, which may overlap. */
const reachOf = ({ space: { units }, first, end }: Units): number => Math.max(...units.ends.subarray(first, end));

interface Lists extends Pick<Choice, "loose"> {
  readonly spaces: readonly Space[];
  readonly bounds: Bounds;
  readonly decoders: Decoders;
}

/** What is in no range, in lists: each filled up to what one read takes, and begun again where a point has to be apart. */
function* addLists(reads: FinsRead[], { spaces, loose, bounds, decoders }: Lists): Steps<void> {
  let held: Units[] = [];
  let [items, points] = [0, 0];
  const flush = () => {
    const run = asRun(held, items, bounds);
    if (held.length > 0) reads.push(run ? rangeOf(run, decoders) : listOf(held, decoders));
    held = [];
    [items, points] = [0, 0];
  };
  for (const [i, { space: at, unit }] of loose.entries()) {
    if (i % LOOSE_AT_ONCE === 0) yield;
    const space = spaceAt(spaces, at);
    const { starts, ends, firsts, isApart } = space.units;
    const size = (ends[unit] ?? 0) - (starts[unit] ?? 0);
    const own = (firsts[unit + 1] ?? 0) - (firsts[unit] ?? 0);
    if (isApart[unit] === 1 || items + size > bounds.maxItems || points + own > bounds.maxPoints) flush();
    held.push({ space, first: unit, end: unit + 1 });
    items += size;
    points += own;
  }
  flush();
}

/** A list whose words are one dense run: a range of it has fewer bytes. */
function asRun(held: readonly Units[], items: number, { maxWords, maxGap }: Bounds): Units | undefined {
  const [head] = held;
  if (!head) return undefined;
  const run = { ...head, end: head.first + held.length };
  const { starts, ends } = head.space.units;
  for (const [i, { space, first }] of held.entries()) {
    if (space !== head.space || first !== head.first + i) return undefined;
    if (i > 0 && (starts[first] ?? 0) - (ends[first - 1] ?? 0) > maxGap) return undefined;
  }
  const words = reachOf(run) - (starts[head.first] ?? 0);
  return words <= maxWords && isDense(words, items) ? run : undefined;
}

function listOf(held: readonly Units[], decoders: Decoders): FinsRead {
  const count = held.reduce(
    (sum, { space: { units, weight }, first }) => sum + ((units.ends[first] ?? 0) - (units.starts[first] ?? 0)) / weight,
    0,
  );
  const items = { codes: new Uint8Array(count), addresses: new Uint16Array(count), sizes: new Uint8Array(count) };
  const points: Point<FinsVariable>[] = [];
  const offsets: number[] = [];
  const texts: string[] = [];
  let [n, bytes] = [0, 0];
  for (const { space, first } of held) {
    const { place, units, elementBytes, weight, sample } = space;
    const [start, to] = [(units.starts[first] ?? 0) / weight, (units.ends[first] ?? 0) / weight];
    if (texts.length < NAMED_ITEMS) texts.push(rangeText(sample, start, to - start));
    for (let i = units.firsts[first] ?? 0; i < (units.firsts[first + 1] ?? 0); i++) {
      const point = space.points[i];
      if (!point) continue;
      points.push(point);
      offsets.push(bytes + (point.address.start - start) * elementBytes);
    }
    for (let at = start; at < to; at++, n++) {
      items.codes[n] = place.code;
      items.addresses[n] = place.base + at;
      items.sizes[n] = elementBytes;
      bytes += elementBytes;
    }
  }
  const more = held.length - texts.length;
  return {
    points,
    range: undefined,
    items,
    text: `${texts.join(", ")}${more > 0 ? ` and ${more} more places, ${count} items in all` : ""}`,
    dataBytes: bytes,
    decoders: points.map(({ address, type }) => decoderOf(address, type.count, decoders)),
    offsets: Int32Array.from(offsets),
  };
}

const NAMED_ITEMS = 4;

/** `D100..121`, `CIO5`, `completion flags T5..8`. */
function rangeText(sample: FinsVariable, start: number, count: number): string {
  const what = sample.isFlag ? (count === 1 ? "completion flag " : "completion flags ") : "";
  return `${what}${areaName(sample)}${start}${count === 1 ? "" : `..${start + count - 1}`}`;
}

/** `D100..121`, or `D5, D80, W3 and 20 more places, 24 items in all`. */
export const describeRead = ({ text }: FinsRead): string => text;
