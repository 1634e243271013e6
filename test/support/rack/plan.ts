import type { Limits, Point, Request } from "../../../drivers/driver.ts";
import { groupSpans } from "../../../drivers/lib/spans.ts";
import type { Place, RackAddress } from "./address.ts";
import type { ItemRange } from "./frames.ts";

/** A range of words and the points in it. */
export interface RackItem extends ItemRange {
  /** In `request.points`. */
  readonly places: readonly number[];
}

export interface RackRead extends Request<RackAddress> {
  /** In which the addresses of its points were looked up. */
  readonly program: number;
  readonly items: readonly RackItem[];
}

export interface RackLimits extends Limits {
  readonly maxItems: number;
  /** Words that nobody asked for and an item may bridge. */
  readonly maxGap: number;
}

/** Bytes that each item adds to an answer beside its words. */
const ITEM_BYTES = 3;

const placeOf = ({ address: { place, symbol } }: Point<RackAddress>): Place => {
  if (!place) throw new Error(`${symbol} has not been looked up`);
  return place;
};

interface Item extends ItemRange {
  readonly program: number;
  readonly points: readonly Point<RackAddress>[];
}

/** Joins neighbours of one block to items over small gaps, and items to requests. Pure. */
export function plan(points: readonly Point<RackAddress>[], limits: RackLimits, apart?: ReadonlySet<Point>): RackRead[] {
  const requests: RackRead[] = [];
  let held: Item[] = [];
  let [bytes, count] = [0, 0];
  const flush = () => {
    if (held.length > 0) requests.push(requestOf(held));
    held = [];
    bytes = 0;
    count = 0;
  };
  for (const item of itemsOf(points, limits, apart)) {
    const size = item.words * 2 + ITEM_BYTES;
    const isFull = held.length >= limits.maxItems || bytes + size > limits.maxBytes || count + item.points.length > limits.maxPoints;
    if (isFull || held[0]?.program !== item.program) flush();
    held.push(item);
    bytes += size;
    count += item.points.length;
  }
  flush();
  return requests;
}

function itemsOf(points: readonly Point<RackAddress>[], limits: RackLimits, apart: ReadonlySet<Point> | undefined): Item[] {
  const blocks = new Map<number, Point<RackAddress>[]>();
  // Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
  for (const point of [...points].sort((a, b) => a.index - b.index)) {
    const { program, block } = placeOf(point);
    const key = program * 0x1_0000 + block;
    const known = blocks.get(key);
    if (known) known.push(point);
    else blocks.set(key, [point]);
  }
  const spanOf = (point: Point<RackAddress>) => ({ start: placeOf(point).offset, length: placeOf(point).words });
  const length = Math.max(1, (limits.maxBytes - ITEM_BYTES) >> 1);
  return [...blocks]
    .sort(([a], [b]) => a - b)
    .flatMap(([key, block]) =>
      groupSpans(block, spanOf, { length, gap: limits.maxGap, count: limits.maxPoints }, apart).map((group) => ({
        program: Math.floor(key / 0x1_0000),
        block: key % 0x1_0000,
        offset: group.start,
        words: group.length,
        points: group.items,
      })),
    );
}

function requestOf(items: readonly Item[]): RackRead {
  let at = 0;
  return {
    program: items[0]?.program ?? 0,
    points: items.flatMap(({ points }) => points),
    items: items.map(({ block, offset, words, points }) => ({ block, offset, words, places: points.map(() => at++) })),
  };
}

const NAMED_ITEMS = 4;

/** `words 10..12 of block 3, word 7 of block 4`. Pure. */
export function describe({ items }: RackRead): string {
  const words = items
    .slice(0, NAMED_ITEMS)
    .map(({ block, offset, words }) => `${words === 1 ? `word ${offset}` : `words ${offset}..${offset + words - 1}`} of block ${block}`);
  const more = items.length - words.length;
  return `${words.join(", ")}${more > 0 ? ` and ${more} more items` : ""}`;
}
