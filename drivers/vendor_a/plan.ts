import { LargeMap } from "../../src/base/large-map.ts";
import type { Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { groupTextSteps } from "../lib/group.ts";
import { sortSteps } from "../lib/sort.ts";
import type { CipAddress } from "./address.ts";
import {
  elementBytes,
  MULTIPLE_REPLY_BYTES,
  MULTIPLE_REQUEST_BYTES,
  OFFSET_BYTES,
  REPLY_HEADER_BYTES,
  readRequest,
  tagPath,
} from "./cip.ts";
import { type Decoders, decoderOf, rawDecoder } from "./decode.ts";
import type { Decoder } from "./elements.ts";
import { indicesOf, type Place, type Source } from "./locate.ts";
import { STRUCTURE } from "./types.ts";

/** Elements of one tag that are read at once, and which points are in them. */
export interface CipItem {
  /** In words. */
  readonly name: string;
  readonly path: Buffer;
  /** Elements. */
  readonly count: number;
  /** Of the data in an answer, behind the type. */
  readonly bytes: number;
  readonly code: number;
  readonly handle: number;
  /** Read Tag. */
  readonly request: Buffer;
  /** In `points` of the read: its first point, and how many follow each other. */
  readonly firstPoint: number;
  readonly points: number;
}

/** One request, of one item or of several in a packet; an item that no answer has room for is alone. `decoders[i]` and `offsets[i]` belong to `points[i]`. */
export interface CipRead extends Request<CipAddress> {
  readonly items: readonly CipItem[];
  readonly decoders: readonly Decoder[];
  /** The place where a point begins in the data of its item. */
  readonly offsets: Int32Array;
}

export interface CipLimits extends Limits {
  /** Of a CIP request and of its reply. */
  readonly messageBytes: number;
  /** Items in one request; 1 where the controller takes no multiple service packets. */
  readonly maxItems: number;
}

/** Service, length of the path and count. */
const READ_BYTES = 4;
/** Requests that still have room are looked at so far back, so that planning takes a time in proportion to the points. */
const OPEN_REQUESTS = 16;

export const typeHeaderBytes = (code: number): number => (code === STRUCTURE ? 4 : 2);

/** Data that one answer to one item can bring. */
export const maxDataBytes = (messageBytes: number): number => messageBytes - REPLY_HEADER_BYTES - 4;

/** A point and the way in which it is read. */
interface Entry {
  readonly point: Point<CipAddress>;
  readonly place: Place;
  readonly source: Source;
}

/** Elements of one array, or one value, with the points in it. */
interface Run {
  readonly source: Source;
  readonly count: number;
  readonly requestBytes: number;
  readonly replyBytes: number;
  readonly entries: readonly Entry[];
}

/** What one request may hold. */
interface Room {
  readonly dataBytes: number;
  readonly requestBytes: number;
  readonly replyBytes: number;
  readonly items: number;
  readonly points: number;
}

/** Points, structures or runs in one step. */
const AT_ONCE = 250;

/**
 * As few requests as the limits allow. Neighbours in an array are read as one, and a structure as a whole where that takes fewer bytes than
 * its members one by one. Throws TypeError: a point was not looked up. In steps. Pure.
 */
export function* planSteps(points: readonly Point<CipAddress>[], limits: CipLimits, apart?: ReadonlySet<Point>): Steps<CipRead[]> {
  const room = roomFor(limits);
  const tree = new Node(undefined);
  for (const [i, point] of (yield* sortSteps(points, (a, b) => a.index - b.index)).entries()) {
    if (i % AT_ONCE === 0) yield;
    tree.add(point, placeOf(point), 0);
  }
  const runs = yield* runsOf((yield* tree.choose(room, apart)).entries, room, apart);
  const decoders: Decoders = new Map();
  const reads: CipRead[] = [];
  for (const packed of yield* pack(runs, room)) {
    reads.push(yield* readOf(packed, decoders));
  }
  return reads;
}

function placeOf({ address: { place, steps } }: Point<CipAddress>): Place {
  if (!place) throw new TypeError(`${steps.join(".")} was not looked up before it was planned`);
  return place;
}

function roomFor({ messageBytes, maxItems, maxPoints, maxBytes }: CipLimits): Room {
  return {
    dataBytes: Math.min(maxDataBytes(messageBytes), maxBytes),
    requestBytes: messageBytes - MULTIPLE_REQUEST_BYTES,
    replyBytes: messageBytes - MULTIPLE_REPLY_BYTES,
    items: maxItems,
    points: maxPoints,
  };
}

/** What was chosen for the points of a structure, and what it takes of messages, in bytes. */
interface Choice {
  readonly entries: readonly Entry[];
  readonly bytes: number;
}

/** Structures that are read as a whole, by their names. */
type Structures = Pick<LargeMap<readonly Entry[]>, "get">;
const NONE: Structures = new LargeMap();

function* structuresIn(entries: readonly Entry[]): Steps<Structures> {
  const structures = new LargeMap<Entry[]>();
  for (const [i, entry] of entries.entries()) {
    if (i % AT_ONCE === 0) yield;
    const { code, name } = entry.source;
    if (code !== STRUCTURE) continue;
    structures.getOrMake(name, () => []).push(entry);
  }
  return structures;
}

/** A structure with the points in it, or all tags. */
class Node {
  /** Undefined: all tags. */
  readonly #source: Source | undefined;
  readonly #inner: Node[] = [];
  #byElement: LargeMap<Node> | undefined;
  readonly #leaves: Entry[] = [];
  readonly #whole: Entry[] = [];

  constructor(source: Source | undefined) {
    this.#source = source;
  }

  add(point: Point<CipAddress>, place: Place, depth: number): void {
    const source = place.sources[depth];
    if (!source) return;
    if (depth === place.sources.length - 1) {
      this.#leaves.push({ point, place, source });
      return;
    }
    const key = `${source.name}[${source.start}]`;
    this.#byElement ??= new LargeMap();
    const node = this.#byElement.getOrMake(key, () => this.#newInner(source));
    node.#whole.push({ point, place, source });
    node.add(point, place, depth + 1);
  }

  #newInner(source: Source): Node {
    const node = new Node(source);
    this.#inner.push(node);
    return node;
  }

  /** A structure that is read as a whole anyway has its members with it. */
  *#chooseBeside(read: Structures, room: Room, apart: ReadonlySet<Point> | undefined): Steps<Choice> {
    const own = this.#source;
    const isRead = read
      .get(own?.name ?? "")
      ?.some(({ source: { start, count } }) => own && start <= own.start && own.start < start + count);
    const isFree = isRead === true && !this.#whole.some(({ point }) => apart?.has(point));
    return isFree ? { entries: this.#whole, bytes: 0 } : yield* this.choose(room, apart);
  }

  *choose(room: Room, apart: ReadonlySet<Point> | undefined): Steps<Choice> {
    const structures = this.#inner.length > 0 ? yield* structuresIn(this.#leaves) : NONE;
    const entries = this.#leaves.slice();
    let bytes = 0;
    let work = 0;
    for (const node of this.#inner) {
      work += node.#whole.length;
      if (work >= AT_ONCE) {
        work = 0;
        yield;
      }
      const choice = yield* node.#chooseBeside(structures, room, apart);
      for (const entry of choice.entries) entries.push(entry);
      bytes += choice.bytes;
    }
    if (!this.#source) return { entries, bytes: 0 };
    for (const run of yield* runsOf(this.#leaves, room, apart)) bytes += run.requestBytes + run.replyBytes;
    const whole = runOf(this.#whole);
    const wholeBytes = whole.requestBytes + whole.replyBytes;
    const isWhole = this.#source.bytes <= room.dataBytes && wholeBytes < bytes && !this.#whole.some(({ point }) => apart?.has(point));
    return isWhole ? { entries: this.#whole, bytes: wholeBytes } : { entries, bytes };
  }
}

/** Neighbours of one array are joined, where what lies between them is shorter than what another item takes. */
function* runsOf(entries: readonly Entry[], room: Room, apart: ReadonlySet<Point> | undefined): Steps<Run[]> {
  const runs: Run[] = [];
  let work = 0;
  for (const named of yield* groupTextSteps(entries, ({ source }) => source.name)) {
    work += named.length;
    if (work >= AT_ONCE) {
      work = 0;
      yield;
    }
    if (named.length === 1) runs.push(runOf(named));
    else if (yield* isOneType(named)) yield* addJoined(runs, named, room, apart);
    else for (const group of yield* groupTextSteps(named, typeIn)) yield* addJoined(runs, group, room, apart);
  }
  return runs;
}

function* isOneType(entries: readonly Entry[]): Steps<boolean> {
  const first = entries[0]?.source;
  for (const [i, { source }] of entries.entries()) {
    if (i > 0 && i % AT_ONCE === 0) yield;
    if (source.code !== first?.code || source.handle !== first.handle) return false;
  }
  return true;
}

const typeIn = ({ source: { code, handle } }: Entry): string => `${code} ${handle}`;

// Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
const byPlace = ({ source: a, point: { index } }: Entry, { source: b, point: { index: other } }: Entry): number =>
  a.start - b.start || a.count - b.count || index - other;

function* addJoined(runs: Run[], group: readonly Entry[], room: Room, apart: ReadonlySet<Point> | undefined): Steps<void> {
  let held: Entry[] = [];
  let [start, end] = [0, 0];
  for (const [i, entry] of (yield* sortSteps(group, byPlace)).entries()) {
    if (i > 0 && i % AT_ONCE === 0) yield;
    const { source } = entry;
    const joinedEnd = Math.max(end, source.start + source.count);
    const gapBytes = (source.start - end) * source.bytes;
    const isJoined =
      held.length > 0 &&
      held.length < room.points &&
      !apart?.has(entry.point) &&
      gapBytes <= overhead(source) &&
      ((joinedEnd - start) * source.bytes <= room.dataBytes || joinedEnd === end);
    if (!isJoined && held.length > 0) {
      runs.push(runOf(held));
      held = [];
    }
    if (held.length === 0) [start, end] = [source.start, source.start + source.count];
    else end = joinedEnd;
    held.push(entry);
  }
  runs.push(runOf(held));
}

/** What an item takes of a request and of its reply beside its data. */
const overhead = (source: Source): number => requestBytesOf(source) + replyHeaderBytes(source);
const replyHeaderBytes = ({ code }: Source): number => OFFSET_BYTES + REPLY_HEADER_BYTES + typeHeaderBytes(code);

function requestBytesOf(source: Source): number {
  let bytes = OFFSET_BYTES + READ_BYTES;
  for (const part of source.path) bytes += typeof part === "number" ? elementBytes(part) : 2 + part.length + (part.length & 1);
  for (const index of indicesOf(source.start, source.dimensions)) bytes += elementBytes(index);
  return bytes;
}

/** Of entries that are sorted by their start. */
function runOf(entries: readonly Entry[]): Run {
  const source = entries[0]?.source;
  if (!source) throw new TypeError("a run without points");
  const end = entries.reduce((last, entry) => Math.max(last, entry.source.start + entry.source.count), 0);
  const count = end - source.start;
  const dataBytes = count * source.bytes;
  return {
    source,
    count,
    entries,
    requestBytes: requestBytesOf(source),
    replyBytes: replyHeaderBytes(source) + dataBytes + (dataBytes & 1),
  };
}

/** Requests of runs: each into the first of the last requests that has room. */
function* pack(runs: readonly Run[], room: Room): Steps<Run[][]> {
  const packed: { readonly runs: Run[]; request: number; reply: number; points: number }[] = [];
  for (const [i, run] of runs.entries()) {
    if (i % AT_ONCE === 0) yield;
    const points = run.entries.length;
    const fits = (one: { readonly runs: readonly Run[]; request: number; reply: number; points: number }): boolean =>
      one.runs.length < room.items &&
      one.request + run.requestBytes <= room.requestBytes &&
      one.reply + run.replyBytes <= room.replyBytes &&
      one.points + points <= room.points;
    let at = Math.max(0, packed.length - OPEN_REQUESTS);
    while (at < packed.length && !fits(packed[at] ?? { runs: [], request: 0, reply: 0, points: 0 })) at++;
    const one = packed[at] ?? { runs: [], request: 0, reply: 0, points: 0 };
    packed[at] = one;
    one.runs.push(run);
    one.request += run.requestBytes;
    one.reply += run.replyBytes;
    one.points += points;
  }
  return packed.map((one) => one.runs);
}

function* readOf(runs: readonly Run[], known: Decoders): Steps<CipRead> {
  const points: Point<CipAddress>[] = [];
  const offsets: number[] = [];
  const decoders: Decoder[] = [];
  const items: CipItem[] = [];
  for (const { source, count, entries } of runs) {
    const firstPoint = points.length;
    for (const entry of entries) {
      if (points.length % AT_ONCE === 0) yield;
      points.push(entry.point);
      offsets.push((entry.source.start - source.start) * source.bytes + entry.source.offset);
      decoders.push(
        entry.point.address.isRaw
          ? rawDecoder(entry.place, entry.source)
          : decoderOf(entry.place, entry.source, entry.point.address, known),
      );
    }
    items.push({ ...itemOf(source, count), firstPoint, points: entries.length });
  }
  return { points, items, decoders, offsets: Int32Array.from(offsets) };
}

function itemOf(source: Source, count: number): Omit<CipItem, "firstPoint" | "points"> {
  const { dimensions, start, code, handle } = source;
  const path = tagPath([...source.path, ...indicesOf(start, dimensions)]);
  const bytes = count * source.bytes;
  return { name: nameOf(source, count), path, count, bytes, code, handle, request: readRequest(path, count) };
}

/** `Motor.Speeds[3..7]`; of a matrix `M[1,2] and 4 more elements`. */
function nameOf({ name, dimensions, start }: Source, count: number): string {
  if (dimensions.length === 0) return count === 1 ? name : `${name} and ${count - 1} more elements`;
  const indices = indicesOf(start, dimensions).join(",");
  if (count === 1) return `${name}[${indices}]`;
  return dimensions.length === 1 ? `${name}[${indices}..${start + count - 1}]` : `${name}[${indices}] and ${count - 1} more elements`;
}

const NAMED_ITEMS = 3;
const MAX_NAME = 48;

const clipped = (name: string): string => (name.length <= MAX_NAME ? name : `${name.slice(0, 16)}…${name.slice(16 + 1 - MAX_NAME)}`);

/** `Motor.Speed, Motor.Speeds[3..7] and 218 more tags`. */
export function describeRead({ items }: { readonly items: readonly { readonly name: string }[] }): string {
  const named = items.slice(0, NAMED_ITEMS).map(({ name }) => clipped(name));
  const more = items.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more tags` : named.join(", ");
}
