import type { Steps } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import { Stream, Streams } from "./pack-bytes.ts";
import { F64, I32, type Kind, putColumn, widthOf } from "./pack-column.ts";
import {
  BODY,
  COUNT_AREA,
  FIELD_AREA,
  HEAD,
  IDS,
  LENGTH_AREA,
  MAX_ROWS,
  OPAQUE,
  ORDER,
  SPAN_AREA,
  TAIL,
  TIME_AREA,
  TIMED,
  TS_AREA,
} from "./pack-format.ts";
import { hasShape, isTimed, type Shape, SPAN_AT, shapeOf, TIME_AT, TIMED_BYTES } from "./pack-shape.ts";
import type { BatchRow } from "./schema.ts";

/** Shapes of one layout and flags in one pack; rows of further ones have their values in no columns. */
const MAX_SHAPES = 4;
/** Bytes per row in a group's table of numbers: ts f64, n i32, n_exploration i32, bytes behind the fields i32. */
const NUMBERS_BYTES = 20;
const N_AT = 8;
const N_EXPLORATION_AT = 12;
const LENGTH_AT = 16;
/** Columns are put into streams in steps of so many bytes: about a millisecond. */
const STEP_BYTES = 64 * 1024;

/** Rows in their packed form. */
export interface Packed {
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

/** Rows of one layout and one shape, one behind the other. */
class Group {
  readonly layout: number;
  readonly kind: number;
  readonly flags: number;
  readonly shape: Shape | undefined;
  /** Bytes of each payload in `fixed`. */
  readonly stride: number;
  readonly fixed = new Stream();
  readonly tail = new Stream();
  readonly numbers = new Stream();
  rows = 0;
  /** The group whose row followed one of this group, the last time. */
  next: number;

  constructor(layout: number, kind: number, flags: number, shape: Shape | undefined, next: number) {
    this.layout = layout;
    this.kind = kind;
    this.flags = flags;
    this.shape = shape;
    this.stride = shape?.fixedBytes ?? (kind === TIMED ? TIMED_BYTES : 0);
    this.next = next;
  }

  add({ ts, n, n_exploration, payload }: BatchRow): void {
    this.rows++;
    const { stride } = this;
    const length = payload.length - stride;
    this.fixed.put(length === 0 ? payload : payload.subarray(0, stride));
    if (length > 0) this.tail.put(payload.subarray(stride));
    const at = this.numbers.take(NUMBERS_BYTES);
    const { bytes } = this.numbers;
    bytes.writeDoubleLE(ts, at);
    bytes.writeInt32LE(n, at + N_AT);
    bytes.writeInt32LE(n_exploration, at + N_EXPLORATION_AT);
    bytes.writeInt32LE(length, at + LENGTH_AT);
  }
}

/** Groups of one layout with the same flags. */
interface OfLayout {
  readonly flags: number;
  /** The group of the row before. */
  last: number;
  readonly shaped: number[];
  /** For rows of a shape that was seen once, or of too many. */
  loose: number;
  /** The shape of the row before, where that has no group yet. */
  seen: Shape | undefined;
}

/** Collects rows for one pack. */
export class PackBuilder {
  readonly #layoutOf: (id: number) => Layout | undefined;
  readonly #groups: Group[] = [];
  readonly #byLayout = new Map<number, OfLayout[]>();
  readonly #opaque = new Map<number, number>();
  readonly #ids = new Stream();
  readonly #order = new Stream();
  #first = 0;
  #last = 0;
  #lastGroup = -1;
  #rows = 0;
  #n = 0;
  #nExploration = 0;

  /** `layoutOf`: by the id that rows have; undefined: the file has none. */
  constructor(layoutOf: (id: number) => Layout | undefined) {
    this.#layoutOf = layoutOf;
  }

  get firstId(): number {
    return this.#first;
  }

  get lastId(): number {
    return this.#last;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Of all rows: readings of ACTIVE variables, and of EXPLORATION ones. */
  get counts(): { readonly n: number; readonly nExploration: number } {
    return { n: this.#n, nExploration: this.#nExploration };
  }

  get isFull(): boolean {
    return this.#rows >= MAX_ROWS;
  }

  /** Ids rise. The row is whole (`isIntact`). */
  add(row: BatchRow): void {
    const number = this.#groupOf(row);
    const group = this.#groups[number];
    if (!group) throw new RangeError(`no group ${number} in a pack`);
    group.add(row);
    if (this.#rows === 0) this.#first = row.id;
    this.#ids.putVarint(row.id - this.#last - 1);
    this.#last = row.id;
    const before = this.#groups[this.#lastGroup];
    const expected = before ? before.next : 0;
    this.#order.putVarint(number === expected ? 0 : number + 1);
    if (before) before.next = number;
    this.#lastGroup = number;
    this.#rows++;
    this.#n += row.n;
    this.#nExploration += row.n_exploration;
  }

  /** At least one row was added, and none is from now on. */
  *finish(): Steps<Packed> {
    const head = new Streams();
    const body = new Streams();
    head.of(IDS).put(this.#ids.whole());
    head.of(ORDER).put(this.#order.whole());
    let bytes = 0;
    for (const group of this.#groups) {
      putHead(group, head);
      bytes += group.rows * NUMBERS_BYTES;
      for (const columnBytes of putBody(group, body)) {
        bytes += columnBytes;
        if (bytes < STEP_BYTES) continue;
        bytes = 0;
        yield;
      }
    }
    return { head: yield* head.packed(), body: yield* body.packed() };
  }

  #groupOf({ layout, payload }: BatchRow): number {
    if (!isTimed(payload)) return this.#opaqueOf(layout);
    const flags = payload[1] ?? 0;
    const known = this.#byLayout.get(layout);
    let of = known?.find((one) => one.flags === flags);
    if (!of) {
      of = { flags, last: -1, shaped: [], loose: -1, seen: undefined };
      if (known) known.push(of);
      else this.#byLayout.set(layout, [of]);
    }
    const last = this.#groups[of.last]?.shape;
    if (last && hasShape(last, payload)) return of.last;
    of.last = this.#shapedOf(layout, of, payload);
    return of.last;
  }

  #shapedOf(layout: number, of: OfLayout, payload: Uint8Array): number {
    for (const number of of.shaped) {
      const shape = this.#groups[number]?.shape;
      if (shape && hasShape(shape, payload)) return number;
    }
    if (of.shaped.length < MAX_SHAPES) {
      const isSeen = of.seen !== undefined && hasShape(of.seen, payload);
      const known = this.#layoutOf(layout);
      const shape = known && shapeOf(known, payload);
      // Where all is good, others of the shape follow; of states that change with each row, none does.
      if (shape && (isSeen || of.shaped.length + of.loose === -1)) {
        const number = this.#addGroup(layout, TIMED, of.flags, shape);
        of.shaped.push(number);
        return number;
      }
      of.seen = shape;
    }
    if (of.loose < 0) of.loose = this.#addGroup(layout, TIMED, of.flags, undefined);
    return of.loose;
  }

  #opaqueOf(layout: number): number {
    const known = this.#opaque.get(layout);
    if (known !== undefined) return known;
    const number = this.#addGroup(layout, OPAQUE, 0, undefined);
    this.#opaque.set(layout, number);
    return number;
  }

  #addGroup(layout: number, kind: number, flags: number, shape: Shape | undefined): number {
    const number = this.#groups.length;
    this.#groups.push(new Group(layout, kind, flags, shape, number + 1));
    return number;
  }
}

function putHead({ layout, kind, flags, rows, numbers }: Group, streams: Streams): void {
  const head = streams.of(HEAD);
  head.putVarint(layout);
  head.putByte(kind);
  if (kind === TIMED) head.putByte(flags);
  head.putVarint(rows);
  const view = viewOf(numbers);
  const place = { view, stride: NUMBERS_BYTES, rows };
  putColumn(F64, { ...place, offset: 0 }, head, streams, TS_AREA);
  putColumn(I32, { ...place, offset: N_AT }, head, streams, COUNT_AREA);
  putColumn(I32, { ...place, offset: N_EXPLORATION_AT }, head, streams, COUNT_AREA);
}

/** Yields the bytes of each column. */
function* putBody({ kind, shape, rows, stride, fixed, numbers, tail }: Group, streams: Streams): Generator<number> {
  const body = streams.of(BODY);
  const view = viewOf(fixed);
  const place = { view, stride, rows };
  if (kind === TIMED) {
    const isStamped = hasOwnTime(view, viewOf(numbers), stride, rows);
    body.putByte(isStamped ? 1 : 0);
    if (!isStamped) putColumn(F64, { ...place, offset: TIME_AT }, body, streams, TIME_AREA);
    putColumn(F64, { ...place, offset: SPAN_AT }, body, streams, SPAN_AREA);
    body.putVarint(shape?.prefix.length ?? 0);
    if (shape) body.put(shape.prefix);
    for (const [field, run] of runsOf(shape?.kinds ?? [])) {
      body.putByte(field);
      body.putVarint(run);
    }
    body.putByte(0);
  }
  let offset = TIMED_BYTES + (shape?.prefix.length ?? 0);
  for (const field of shape?.kinds ?? []) {
    putColumn(field, { ...place, offset }, body, streams, FIELD_AREA + field);
    offset += widthOf(field);
    yield rows * widthOf(field);
  }
  putColumn(I32, { view: viewOf(numbers), stride: NUMBERS_BYTES, rows, offset: LENGTH_AT }, body, streams, LENGTH_AREA);
  streams.of(TAIL).put(tail.whole());
  yield tail.length;
}

/** The time in the payload is the row's, to the bit. */
function hasOwnTime(payloads: DataView, numbers: DataView, stride: number, rows: number): boolean {
  for (let row = 0; row < rows; row++)
    for (let half = 0; half < 8; half += 4)
      if (payloads.getInt32(row * stride + TIME_AT + half) !== numbers.getInt32(row * NUMBERS_BYTES + half)) return false;
  return true;
}

function runsOf(kinds: readonly Kind[]): readonly (readonly [Kind, number])[] {
  const runs: [Kind, number][] = [];
  for (const kind of kinds) {
    const last = runs.at(-1);
    if (last?.[0] === kind) last[1]++;
    else runs.push([kind, 1]);
  }
  return runs;
}

const viewOf = ({ bytes }: Stream): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
