import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { groupSteps } from "../lib/group.ts";
import { sortSteps } from "../lib/sort.ts";
import type { Area, S7Address } from "./address.ts";
import { type Decoder, type Decoders, decoderOf } from "./decode.ts";
import { answerBytes, bytesOf, itemsRoom, maxItemBytes, type Range } from "./frames.ts";

/** One range of a read, and which of its points are in it. */
export interface S7Item extends Range {
  /** Of the range in an answer. */
  readonly bytes: number;
  /** In `points` of the read: its first point, and how many follow each other. */
  readonly firstPoint: number;
  readonly points: number;
}

/** One job; one item may be longer than a job can bring, and is then alone. `decoders[i]` and `offsets[i]` belong to `points[i]`. */
export interface S7Read extends Request<S7Address> {
  readonly items: readonly S7Item[];
  readonly decoders: readonly Decoder[];
  /** The place where a point begins in the bytes of its item. */
  readonly offsets: Int32Array;
}

export interface S7Limits extends Limits {
  /** Of one message. */
  readonly pduBytes: number;
  /** Ranges in one job. */
  readonly maxItems: number;
  /** Bytes that a range may bridge. */
  readonly maxGap: number;
}

const AREA_ORDER: Readonly<Record<Area, number>> = { DB: 0, DI: 1, I: 2, Q: 3, M: 4, T: 5, C: 6 };
const BLOCKS = 65_536;
/** Up to here a bridged byte costs no more than another item does: 12 bytes of the request and 4 of the answer. */
const CHEAP_GAP = 16;
const OTHER_GAPS = [64, 32, 8, 4, 0];
/** Jobs that still have room are looked at so far back, so that planning takes a time in proportion to the points. */
const OPEN_JOBS = 16;

/** The points of one area or block by their place, and their spans in arrays: every gap is tried on these. */
interface SortedArea {
  readonly area: Area;
  readonly block: number;
  readonly points: readonly Point<S7Address>[];
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1: the point begins a range. */
  readonly isApart: Uint8Array;
  /** Bytes of one place: a timer or a counter has two. */
  readonly unit: number;
}

/** What one job may hold. */
interface Room {
  readonly items: number;
  readonly answerBytes: number;
  readonly points: number;
  readonly itemBytes: number;
}

/** Points `from` to before `to` of an area, in one range. */
type TakeRange = (from: number, to: number, start: number, length: number) => void;

/**
 * As few jobs as the limits allow, in the order of area, block and byte. Neighbours become one range over small gaps, and over other gaps
 * where that saves jobs. A value is never split, unless one job cannot hold it. Pure.
 */
export const plan = (points: readonly Point<S7Address>[], limits: S7Limits, apart?: ReadonlySet<Point>): S7Read[] =>
  atOnce(planSteps(points, limits, apart));

/** Points in one step. */
const AT_ONCE = 1000;

/** plan in steps. */
export function* planSteps(points: readonly Point<S7Address>[], limits: S7Limits, apart?: ReadonlySet<Point>): Steps<S7Read[]> {
  const areas = yield* sortedAreas(points, apart);
  const { maxGap } = limits;
  const room = roomFor(limits);
  let gap = Math.min(CHEAP_GAP, maxGap);
  let fewest = yield* countJobs(areas, room, gap, Number.POSITIVE_INFINITY);
  for (const other of [maxGap, ...OTHER_GAPS]) {
    if (fewest <= 1) break;
    if (other > maxGap || other === gap) continue;
    const count = yield* countJobs(areas, room, other, fewest);
    if (count < fewest) [gap, fewest] = [other, count];
  }
  return yield* readsOf(areas, room, gap);
}

function* sortedAreas(points: readonly Point<S7Address>[], apart: ReadonlySet<Point> | undefined): Steps<readonly SortedArea[]> {
  const byArea = yield* groupSteps(points, ({ address }) => AREA_ORDER[address.area] * BLOCKS + address.block);
  const areas: SortedArea[] = [];
  for (const [, own] of [...byArea].sort(([a], [b]) => a - b)) areas.push(yield* sortedArea(own, apart));
  return areas;
}

// Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
const byPlace = (a: Point<S7Address>, b: Point<S7Address>): number =>
  a.address.start - b.address.start || a.address.length - b.address.length || a.index - b.index;

function* sortedArea(own: readonly Point<S7Address>[], apart: ReadonlySet<Point> | undefined): Steps<SortedArea> {
  const { area, block } = own[0]?.address ?? { area: "DB", block: 0 };
  const points = yield* sortSteps(own, byPlace);
  const [starts, ends, isApart] = [new Int32Array(own.length), new Int32Array(own.length), new Uint8Array(own.length)];
  for (const [i, point] of points.entries()) {
    if (i % AT_ONCE === 0) yield;
    starts[i] = point.address.start;
    ends[i] = point.address.start + point.address.length;
    isApart[i] = apart?.has(point) ? 1 : 0;
  }
  return { area, block, points, starts, ends, isApart, unit: bytesOf({ area, length: 1 }) };
}

function roomFor({ pduBytes, maxBytes, maxItems, maxPoints }: S7Limits): Room {
  const smaller = Math.min(pduBytes, maxBytes + pduBytes - maxItemBytes(pduBytes));
  const { requestItems, answerBytes } = itemsRoom(smaller);
  return { items: Math.min(maxItems, requestItems), answerBytes, itemBytes: maxItemBytes(smaller), points: maxPoints };
}

/** Each range over gaps of at most so many bytes, none longer than an item can bring, unless it is one value. */
function* forEachRange({ starts, ends, isApart, unit }: SortedArea, room: Room, gapBytes: number, take: TakeRange): Steps<void> {
  yield;
  const most = Math.floor(room.itemBytes / unit);
  const gap = Math.floor(gapBytes / unit);
  let from = 0;
  let [start, end] = [starts[0] ?? 0, ends[0] ?? 0];
  for (let i = 1; i < starts.length; i++) {
    if (i % AT_ONCE === 0) yield;
    const next = starts[i] ?? 0;
    const joined = Math.max(end, ends[i] ?? 0);
    if (isApart[i] === 0 && next <= end + gap && joined - start <= most && i - from < room.points) end = joined;
    else {
      take(from, i, start, end - start);
      [from, start, end] = [i, next, ends[i] ?? 0];
    }
  }
  if (starts.length > 0) take(from, starts.length, start, end - start);
}

/** Places ranges into jobs: each into the first of the last ones that has room. */
class Packing {
  readonly #room: Room;
  readonly #items: number[] = [];
  readonly #bytes: number[] = [];
  readonly #points: number[] = [];

  constructor(room: Room) {
    this.#room = room;
  }

  get jobs(): number {
    return this.#items.length;
  }

  /** The job that a range with so many bytes and points is in. */
  place(bytes: number, points: number): number {
    const size = answerBytes(bytes);
    let job = Math.max(0, this.jobs - OPEN_JOBS);
    while (job < this.jobs && !this.#fits(job, size, points)) job++;
    this.#items[job] = (this.#items[job] ?? 0) + 1;
    this.#bytes[job] = (this.#bytes[job] ?? 0) + size;
    this.#points[job] = (this.#points[job] ?? 0) + points;
    return job;
  }

  #fits(job: number, size: number, points: number): boolean {
    const { items, answerBytes: bytes, points: most } = this.#room;
    return (this.#items[job] ?? 0) < items && (this.#bytes[job] ?? 0) + size <= bytes && (this.#points[job] ?? 0) + points <= most;
  }
}

/** How many jobs it takes; `enough` or more where it takes no fewer than that. */
function* countJobs(areas: readonly SortedArea[], room: Room, gap: number, enough: number): Steps<number> {
  const packing = new Packing(room);
  for (const area of areas) {
    if (packing.jobs >= enough) break;
    yield* forEachRange(area, room, gap, (from, to, _start, length) => void packing.place(length * area.unit, to - from));
  }
  return packing.jobs;
}

/** A read while its items are placed. */
interface Draft {
  readonly points: Point<S7Address>[];
  readonly items: S7Item[];
  readonly offsets: number[];
}

function* readsOf(areas: readonly SortedArea[], room: Room, gap: number): Steps<S7Read[]> {
  const packing = new Packing(room);
  const drafts: Draft[] = [];
  for (const area of areas)
    yield* forEachRange(area, room, gap, (from, to, start, length) => {
      const bytes = length * area.unit;
      const job = packing.place(bytes, to - from);
      drafts[job] ??= { points: [], items: [], offsets: [] };
      const { points, items, offsets } = drafts[job];
      items.push({ area: area.area, block: area.block, start, length, bytes, firstPoint: points.length, points: to - from });
      for (let i = from; i < to; i++) {
        const point = area.points[i];
        if (!point) continue;
        points.push(point);
        offsets.push((point.address.start - start) * area.unit);
      }
    });
  const decoders: Decoders = new Map();
  const reads: S7Read[] = [];
  for (const { points, items, offsets } of drafts) {
    reads.push({
      points,
      items,
      decoders: points.map(({ address, type }) => decoderOf(address, type, decoders)),
      offsets: Int32Array.from(offsets),
    });
    yield;
  }
  return reads;
}

/** `DB1.DBB0..21`, `MB20`, `T5..8`. */
export function describeRange({ area, block, start, length }: Range): string {
  const letters = { DB: `DB${block}.DBB`, DI: `DI${block}.DIB`, I: "IB", Q: "QB", M: "MB", T: "T", C: "C" }[area];
  return `${letters}${start}${length === 1 ? "" : `..${start + length - 1}`}`;
}

const NAMED_ITEMS = 4;

/** `DB1.DBB0..21, MB20..23 and 3 more ranges`. */
export function describeRead({ items }: { readonly items: readonly (Range & { readonly bytes: number })[] }): string {
  const named = items.slice(0, NAMED_ITEMS).map(describeRange).join(", ");
  const more = items.length - NAMED_ITEMS;
  if (more <= 0) return named;
  const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
  return `${named} and ${more} more ranges, ${bytes} bytes in all`;
}
