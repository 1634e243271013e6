import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { sortSteps } from "../lib/sort.ts";
import { sizeOf } from "../lib/step7-types.ts";
import { accessString, type Place, type PlusAddress } from "./address.ts";
import { BytesOut } from "./bytes-out.ts";
import { type Decoder, decoderOf, rawBytes } from "./decode.ts";
import { itemBytes, itemFields, MAX_ITEMS_BYTES, putItem } from "./requests.ts";

/** One read. `decoders[i]` belongs to `points[i]`; `items` are the addresses of all of them. */
export interface PlusRead extends Request<PlusAddress> {
  readonly items: Buffer;
  readonly fields: number;
  readonly decoders: readonly Decoder[];
  /** Something in it was looked up in the CPU's program. */
  readonly hasSymbols: boolean;
}

export interface PlusLimits extends Limits {
  /** Variables in one request, as the CPU takes them. */
  readonly maxItems: number;
}

/** Number of the item, flags, type, and lengths: around a value in an answer. */
const VALUE_HEAD_BYTES = 8;
/** Of a value whose type is not known before it comes. */
const UNKNOWN_BYTES = 8;

/** Of a value in an answer, about. */
function valueBytes({ kind, chars, count }: Place): number {
  return (
    VALUE_HEAD_BYTES +
    (kind === undefined
      ? UNKNOWN_BYTES
      : sizeOf({ kind, chars: chars ?? (kind === "STRING" || kind === "WSTRING" ? 254 : undefined), count }, 0))
  );
}

/**
 * As few requests as the limits allow, in the order of the source's variables, whatever order the points come in. Points without a place are
 * not to be had yet, and are in a request without items. One of `apart` begins a request: an answer may be unreadable as a whole. Pure.
 */
export const plan = (points: readonly Point<PlusAddress>[], limits: PlusLimits, apart?: ReadonlySet<Point>): PlusRead[] =>
  atOnce(planSteps(points, limits, apart));

/** Points in one step. */
const AT_ONCE = 200;

/** plan in steps. */
export function* planSteps(
  points: readonly Point<PlusAddress>[],
  { maxItems, maxPoints, maxBytes }: PlusLimits,
  apart?: ReadonlySet<Point>,
): Steps<PlusRead[]> {
  const inOrder = yield* sortSteps(points, (one, other) => one.index - other.index);
  const decoders = new Map<string, Decoder>();
  const most = Math.max(1, Math.min(maxItems, maxPoints));
  const reads: PlusRead[] = [];
  let draft = new Draft(decoders);
  for (const [i, point] of inOrder.entries()) {
    if (i % AT_ONCE === 0) yield;
    const isApart = draft.points.length > 0 && apart?.has(point) === true;
    if (!isApart && draft.take(point, most, maxBytes)) continue;
    reads.push(draft.read());
    draft = new Draft(decoders);
    draft.take(point, most, maxBytes);
  }
  if (draft.points.length > 0) reads.push(draft.read());
  return reads;
}

/** A read while its points are taken. */
class Draft {
  readonly points: Point<PlusAddress>[] = [];
  readonly #items = new BytesOut();
  readonly #decoders: Decoder[] = [];
  readonly #known: Map<string, Decoder>;
  #valueBytes = 0;
  #fields = 0;
  #hasSymbols = false;

  constructor(known: Map<string, Decoder>) {
    this.#known = known;
  }

  /** False: it has no room for it. A first one is always taken. */
  take(point: Point<PlusAddress>, maxPoints: number, maxBytes: number): boolean {
    const { place, isAuto, levels, isRaw, encoding } = point.address;
    const isFirst = this.points.length === 0;
    const isPlaced = this.#items.length > 0;
    if (this.points.length >= maxPoints || (!isFirst && isPlaced !== (place !== undefined))) return false;
    if (place) {
      const bytes = valueBytes(place);
      const isFull = this.#items.length + itemBytes(place, place.crc) > MAX_ITEMS_BYTES || this.#valueBytes + bytes > maxBytes;
      if (!isFirst && isFull) return false;
      putItem(this.#items, place, place.crc);
      this.#valueBytes += bytes;
      this.#fields += itemFields(place);
      this.#hasSymbols ||= levels !== undefined;
      this.#decoders.push(isRaw ? rawBytes : decoderOf({ ...place, encoding }, isAuto ? point.type : undefined, this.#known));
    }
    this.points.push(point);
    return true;
  }

  read(): PlusRead {
    const { points } = this;
    return { points, items: this.#items.done(), fields: this.#fields, decoders: this.#decoders, hasSymbols: this.#hasSymbols };
  }
}

/** `"Motor_DB".speed (8A0E0001.9)`. */
export const describePoint = ({ text, levels, place }: PlusAddress): string =>
  levels && place ? `${text} (${accessString(place)})` : text;

const NAMED = 3;
const MAX_NAME = 50;
const short = (text: string): string => (text.length > MAX_NAME ? `${text.slice(0, MAX_NAME)}…` : text);

/** `"Motor_DB".speed, 8A0E0001.A and 3 more variables`. */
export function describeRead({ points }: Pick<PlusRead, "points">): string {
  const named = points.slice(0, NAMED).map(({ address }) => short(address.text));
  const more = points.length - NAMED;
  return more > 0 ? `${named.join(", ")} and ${more} more variables` : named.join(", ");
}
