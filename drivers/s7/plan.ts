import type { Limits, Point, Request } from "../driver.ts";
import { groupSpans } from "../lib/spans.ts";
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
  /** Where a point begins in the bytes of its item. */
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

/** A range before it has its place in a job. */
interface Group extends Range {
  readonly bytes: number;
  readonly points: readonly Point<S7Address>[];
}

interface Job {
  readonly groups: Group[];
  points: number;
  answerBytes: number;
}

/**
 * As few jobs as the limits allow, in the order of area, block and byte. Neighbours become one range over small gaps, and over other gaps
 * where that saves jobs. A value is never split, unless one job cannot hold it. Pure.
 */
export function plan(points: readonly Point<S7Address>[], limits: S7Limits, apart?: ReadonlySet<Point>): S7Read[] {
  const areas = [...Map.groupBy(points, ({ address }) => AREA_ORDER[address.area] * BLOCKS + address.block)]
    .sort(([a], [b]) => a - b)
    // Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
    .map(([, area]) => area.sort((a, b) => a.address.start - b.address.start || a.address.length - b.address.length || a.index - b.index));
  const { maxGap } = limits;
  const cheap = Math.min(CHEAP_GAP, maxGap);
  let best = jobsOf(areas, limits, cheap, apart);
  for (const gap of [maxGap, ...OTHER_GAPS]) {
    if (best.length <= 1) break;
    if (gap > maxGap || gap === cheap) continue;
    const jobs = jobsOf(areas, limits, gap, apart);
    if (jobs.length < best.length) best = jobs;
  }
  const decoders: Decoders = new Map();
  return best.map((job) => readOf(job, decoders));
}

const pduOf = ({ pduBytes, maxBytes }: S7Limits): number => Math.min(pduBytes, maxBytes + pduBytes - maxItemBytes(pduBytes));

function jobsOf(
  areas: readonly (readonly Point<S7Address>[])[],
  limits: S7Limits,
  gap: number,
  apart: ReadonlySet<Point> | undefined,
): readonly Job[] {
  const pduBytes = pduOf(limits);
  const room = itemsRoom(pduBytes);
  const most = { items: Math.min(limits.maxItems, room.requestItems), answerBytes: room.answerBytes, points: limits.maxPoints };
  const jobs: Job[] = [];
  for (const area of areas)
    for (const group of groupsOf(area, maxItemBytes(pduBytes), limits.maxPoints, gap, apart)) {
      const size = answerBytes(group.bytes);
      const fits = (job: Job): boolean =>
        job.groups.length < most.items && job.answerBytes + size <= most.answerBytes && job.points + group.points.length <= most.points;
      const job = jobs.slice(-OPEN_JOBS).find(fits);
      if (job) {
        job.groups.push(group);
        job.points += group.points.length;
        job.answerBytes += size;
      } else jobs.push({ groups: [group], points: group.points.length, answerBytes: size });
    }
  return jobs;
}

function groupsOf(
  area: readonly Point<S7Address>[],
  maxBytes: number,
  maxPoints: number,
  gap: number,
  apart: ReadonlySet<Point> | undefined,
): Group[] {
  const first = area[0]?.address;
  if (!first) return [];
  // Bytes of one place: a timer or a counter has two.
  const unit = bytesOf({ area: first.area, length: 1 });
  const limits = { length: Math.floor(maxBytes / unit), gap: Math.floor(gap / unit), count: maxPoints };
  return groupSpans(area, ({ address }) => address, limits, apart).map(({ start, length, items }) => ({
    area: first.area,
    block: first.block,
    start,
    length,
    bytes: length * unit,
    points: items,
  }));
}

function readOf({ groups }: Job, decoders: Decoders): S7Read {
  const points = groups.flatMap((group) => group.points);
  let firstPoint = 0;
  const items = groups.map(({ points: own, ...range }): S7Item => {
    const item = { ...range, firstPoint, points: own.length };
    firstPoint += own.length;
    return item;
  });
  const offsets = groups.flatMap((group) =>
    group.points.map(({ address }) => bytesOf({ area: group.area, length: address.start - group.start })),
  );
  return {
    points,
    items,
    decoders: points.map(({ address, type }) => decoderOf(address, type, decoders)),
    offsets: Int32Array.from(offsets),
  };
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
