import type { Steps } from "../base/timer.ts";
import { Stream, Streams } from "./pack-bytes.ts";
import { F64, I32, type Kind, type Place, putColumn, widthOf } from "./pack-column.ts";
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
import { type Fields, hasShape, isTimed, type Shape, SPAN_AT, shapeOf, TIME_AT, TIMED_BYTES } from "./pack-shape.ts";
import type { BatchRow } from "./schema.ts";

/** Shapes of one layout and flags in one pack; rows of further ones have their values in no columns. */
const MAX_SHAPES = 4;
const FIRST_ROWS = 1024;
/** A row has so many in the columns of its head. */
const NUMBERS_BYTES = 16;
/** Columns are put into streams in steps of so many bytes: about a millisecond. */
const STEP_BYTES = 64 * 1024;

/** Rows in their packed form. */
export interface Packed {
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

/** Rows as they came, and memory for the columns of one group: to be used for one pack after the other. */
export class PackScratch {
  readonly payloads = new Stream();
  readonly ids = new Stream();
  readonly order = new Stream();
  readonly head = new Streams();
  readonly body = new Streams();
  readonly matrix = new Stream();
  rows = 0;
  /** By row: where its payload ends. */
  ends = new Int32Array(FIRST_ROWS);
  /** By row: the next one of its group. */
  after = new Int32Array(FIRST_ROWS);
  ts = new Float64Array(FIRST_ROWS);
  n = new Int32Array(FIRST_ROWS);
  nExploration = new Int32Array(FIRST_ROWS);
  /** These are of the rows of one group. */
  groupTs = new Float64Array(FIRST_ROWS);
  groupN = new Int32Array(FIRST_ROWS);
  groupNExploration = new Int32Array(FIRST_ROWS);
  groupLengths = new Int32Array(FIRST_ROWS);

  clear(): void {
    for (const one of [this.payloads, this.ids, this.order, this.head, this.body, this.matrix]) one.clear();
    this.rows = 0;
  }

  /** Returns its number. */
  add({ ts, n, n_exploration, payload }: Omit<BatchRow, "crc">): number {
    const row = this.rows++;
    if (row >= this.ts.length) this.#grow();
    this.payloads.put(payload);
    this.ends[row] = this.payloads.length;
    this.ts[row] = ts;
    this.n[row] = n;
    this.nExploration[row] = n_exploration;
    return row;
  }

  #grow(): void {
    const larger = <T extends Int32Array | Float64Array>(old: T): T => {
      const made = (old instanceof Int32Array ? new Int32Array(2 * old.length) : new Float64Array(2 * old.length)) as T;
      made.set(old);
      return made;
    };
    this.ends = larger(this.ends);
    this.after = larger(this.after);
    this.ts = larger(this.ts);
    this.n = larger(this.n);
    this.nExploration = larger(this.nExploration);
    this.groupTs = larger(this.groupTs);
    this.groupN = larger(this.groupN);
    this.groupNExploration = larger(this.groupNExploration);
    this.groupLengths = larger(this.groupLengths);
  }
}

/** Rows of one layout and one shape. */
interface Group {
  readonly layout: number;
  readonly kind: number;
  readonly flags: number;
  readonly shape: Shape | undefined;
  /** Bytes of each payload up to where its fields end. */
  readonly stride: number;
  rows: number;
  first: number;
  last: number;
  /** The group whose row followed one of this group, the last time. */
  next: number;
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
  readonly #fieldsOf: (layout: number) => Fields | undefined;
  readonly #scratch: PackScratch;
  readonly #groups: Group[] = [];
  readonly #byLayout = new Map<number, OfLayout[]>();
  readonly #opaque = new Map<number, number>();
  #first = 0;
  #last = 0;
  #lastGroup = -1;
  #n = 0;
  #nExploration = 0;

  /** `fieldsOf`: of the layout with this id; undefined: the file has none. `scratch`: of no pack that is under way. */
  constructor(fieldsOf: (layout: number) => Fields | undefined, scratch = new PackScratch()) {
    this.#fieldsOf = fieldsOf;
    this.#scratch = scratch;
    scratch.clear();
  }

  get firstId(): number {
    return this.#first;
  }

  get lastId(): number {
    return this.#last;
  }

  get rows(): number {
    return this.#scratch.rows;
  }

  /** Rows of a source's shape, on average. */
  get rowsOfGroup(): number {
    return this.rows / Math.max(1, this.#groups.length);
  }

  /** Readings of ACTIVE variables in all rows, and of EXPLORATION ones. */
  get counts(): { readonly n: number; readonly nExploration: number } {
    return { n: this.#n, nExploration: this.#nExploration };
  }

  get isFull(): boolean {
    return this.rows >= MAX_ROWS;
  }

  /** Ids rise. The row is whole (`isIntact`). */
  add(row: Omit<BatchRow, "crc">): void {
    const number = this.#groupOf(row);
    const group = this.#groups[number];
    if (!group) throw new RangeError(`no group ${number} in a pack`);
    const scratch = this.#scratch;
    if (scratch.rows === 0) this.#first = row.id;
    const at = scratch.add(row);
    if (group.rows++ === 0) group.first = at;
    else scratch.after[group.last] = at;
    group.last = at;
    scratch.ids.putVarint(row.id - this.#last - 1);
    this.#last = row.id;
    const before = this.#groups[this.#lastGroup];
    const expected = before ? before.next : 0;
    scratch.order.putVarint(number === expected ? 0 : number + 1);
    if (before) before.next = number;
    this.#lastGroup = number;
    this.#n += row.n;
    this.#nExploration += row.n_exploration;
  }

  /** At least one row was added, and none is from now on. */
  *finish(): Steps<Packed> {
    const { head, body, ids, order } = this.#scratch;
    head.of(IDS).put(ids.whole());
    head.of(ORDER).put(order.whole());
    let bytes = 0;
    for (const group of this.#groups) {
      gather(group, this.#scratch);
      putHead(group, this.#scratch);
      bytes += group.rows * NUMBERS_BYTES;
      for (const columnBytes of putBody(group, this.#scratch)) {
        bytes += columnBytes;
        if (bytes < STEP_BYTES) continue;
        bytes = 0;
        yield;
      }
    }
    return { head: yield* head.packed(), body: yield* body.packed() };
  }

  #groupOf({ layout, payload }: Omit<BatchRow, "crc">): number {
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
      const fields = this.#fieldsOf(layout);
      const shape = fields && shapeOf(fields, payload);
      // Others of the shape follow where all is good, and none where states change with each row.
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
    const stride = shape?.fixedBytes ?? (kind === TIMED ? TIMED_BYTES : 0);
    this.#groups.push({ layout, kind, flags, shape, stride, rows: 0, first: -1, last: -1, next: number + 1 });
    return number;
  }
}

/** Copies the rows of the group to where columns are read from, and what is behind their fields to its stream. */
function gather({ stride, rows, first }: Group, scratch: PackScratch): void {
  const { payloads, matrix, ends, after, body } = scratch;
  matrix.length = 0;
  matrix.take(stride * rows);
  const tails = body.of(TAIL);
  for (let place = 0, row = first; place < rows; place++, row = after[row] ?? 0) {
    const begin = row === 0 ? 0 : (ends[row - 1] ?? 0);
    const end = ends[row] ?? 0;
    payloads.bytes.copy(matrix.bytes, place * stride, begin, begin + stride);
    if (begin + stride < end) tails.put(payloads.bytes.subarray(begin + stride, end));
    scratch.groupTs[place] = scratch.ts[row] ?? 0;
    scratch.groupN[place] = scratch.n[row] ?? 0;
    scratch.groupNExploration[place] = scratch.nExploration[row] ?? 0;
    scratch.groupLengths[place] = end - begin - stride;
  }
}

function putHead({ layout, kind, flags, rows }: Group, { head: streams, groupTs, groupN, groupNExploration }: PackScratch): void {
  const head = streams.of(HEAD);
  head.putVarint(layout);
  head.putByte(kind);
  if (kind === TIMED) head.putByte(flags);
  head.putVarint(rows);
  putColumn(F64, numbersOf(groupTs, rows), head, streams, TS_AREA);
  putColumn(I32, numbersOf(groupN, rows), head, streams, COUNT_AREA);
  putColumn(I32, numbersOf(groupNExploration, rows), head, streams, COUNT_AREA);
}

/** Yields the bytes of each column. */
function* putBody({ kind, shape, rows, stride }: Group, { body: streams, matrix, groupTs, groupLengths }: PackScratch): Generator<number> {
  const body = streams.of(BODY);
  const view = new DataView(matrix.bytes.buffer, matrix.bytes.byteOffset, matrix.bytes.length);
  const place = { view, stride, rows };
  if (kind === TIMED) {
    const isStamped = haveTimes(view, groupTs, stride, rows);
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
  putColumn(I32, numbersOf(groupLengths, rows), body, streams, LENGTH_AREA);
}

/** The times in the payloads are those of the rows, to the bit. */
function haveTimes(payloads: DataView, ts: Float64Array, stride: number, rows: number): boolean {
  for (let row = 0; row < rows; row++) if (!Object.is(payloads.getFloat64(row * stride + TIME_AT, true), ts[row])) return false;
  return true;
}

/** Little endian, as the processors that this runs on. */
const numbersOf = (numbers: Float64Array | Int32Array, rows: number): Place => ({
  view: new DataView(numbers.buffer),
  offset: 0,
  stride: numbers.BYTES_PER_ELEMENT,
  rows,
});

function runsOf(kinds: readonly Kind[]): readonly (readonly [Kind, number])[] {
  const runs: [Kind, number][] = [];
  for (const kind of kinds) {
    const last = runs.at(-1);
    if (last?.[0] === kind) last[1]++;
    else runs.push([kind, 1]);
  }
  return runs;
}
