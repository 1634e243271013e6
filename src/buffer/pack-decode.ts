import type { ByteReader } from "./bytes.ts";
import { CLOCK_SYNCED, VERSION } from "./codec-format.ts";
import { type StreamReaders, unpacked } from "./pack-bytes.ts";
import { F64, I32, isKind, type Kind, takeColumn, widthOf } from "./pack-column.ts";
import {
  BODY,
  COUNT_AREA,
  FIELD_AREA,
  HEAD,
  IDS,
  LENGTH_AREA,
  MAX_BYTES,
  MAX_ROWS,
  OPAQUE,
  ORDER,
  SPAN_AREA,
  TAIL,
  TIME_AREA,
  TIMED,
  TS_AREA,
} from "./pack-format.ts";
import { SPAN_AT, TIME_AT, TIMED_BYTES } from "./pack-shape.ts";

interface HeadGroup {
  readonly layout: number;
  readonly kind: number;
  readonly flags: number;
  readonly rows: number;
}

/** A pack's head: its rows in the order of their ids. */
export interface PackIndex {
  readonly groups: readonly HeadGroup[];
  readonly ids: Float64Array;
  /** By row: the number of its group, and its place in that. */
  readonly groupOf: Int32Array;
  readonly placeIn: Int32Array;
  readonly ts: Float64Array;
  readonly n: Int32Array;
  readonly nExploration: Int32Array;
}

/** The payload of a row of a pack, in memory of its own; `row`: as in the index. */
export type PayloadOf = (row: number) => Uint8Array;

/** Reads the head of a pack. Throws DamagedPayloadError if it is not one. */
export function readHead(blob: Uint8Array): PackIndex {
  const streams = unpacked(blob, MAX_BYTES);
  const head = streams.of(HEAD);
  const groups: HeadGroup[] = [];
  const columns: { readonly ts: Float64Array; readonly n: Int32Array; readonly nExploration: Int32Array }[] = [];
  let rows = 0;
  while (head.left > 0) {
    const group = takeGroup(head);
    rows += group.rows;
    if (rows > MAX_ROWS) head.fail(`more than ${MAX_ROWS} rows`);
    groups.push(group);
    const ts = new Float64Array(group.rows);
    const n = new Int32Array(group.rows);
    const nExploration = new Int32Array(group.rows);
    takeColumn(F64, placeOf(ts, 8), head, streams, TS_AREA);
    takeColumn(I32, placeOf(n, 4), head, streams, COUNT_AREA);
    takeColumn(I32, placeOf(nExploration, 4), head, streams, COUNT_AREA);
    columns.push({ ts, n, nExploration });
  }
  if (rows === 0) head.fail("a pack without rows");
  const index = {
    groups,
    ids: new Float64Array(rows),
    groupOf: new Int32Array(rows),
    placeIn: new Int32Array(rows),
    ts: new Float64Array(rows),
    n: new Int32Array(rows),
    nExploration: new Int32Array(rows),
  };
  const places = new Int32Array(groups.length);
  const follows = Int32Array.from(groups, (_, i) => i + 1);
  const [ids, order] = [streams.of(IDS), streams.of(ORDER)];
  let id = 0;
  let before = -1;
  for (let row = 0; row < rows; row++) {
    id += ids.varint() + 1;
    const code = order.varint();
    const number: number = code === 0 ? (before < 0 ? 0 : (follows[before] ?? 0)) : code - 1;
    const column = columns[number];
    const place = places[number] ?? 0;
    if (!column || place >= column.ts.length) return order.fail(`row ${place} of group ${number}`);
    places[number] = place + 1;
    if (before >= 0) follows[before] = number;
    before = number;
    index.ids[row] = id;
    index.groupOf[row] = number;
    index.placeIn[row] = place;
    index.ts[row] = column.ts[place] ?? 0;
    index.n[row] = column.n[place] ?? 0;
    index.nExploration[row] = column.nExploration[place] ?? 0;
  }
  if (!Number.isSafeInteger(id)) ids.fail("an id above 2^53");
  if (ids.left + order.left > 0) ids.fail("bytes too many");
  return index;
}

function takeGroup(head: ByteReader): HeadGroup {
  const layout = head.varint();
  const kind = head.byte();
  if (kind !== OPAQUE && kind !== TIMED) head.fail(`kind ${kind} of a group`);
  const flags = kind === TIMED ? head.byte() : 0;
  const rows = head.varint();
  if (rows < 1 || rows > MAX_ROWS) head.fail(`${rows} rows in a group`);
  return { layout, kind, flags, rows };
}

/** True: the clock that stamped the row was synchronised, or nothing is known of it. */
export function wasRowSynced({ groups, groupOf }: PackIndex, row: number): boolean {
  const group = groups[groupOf[row] ?? 0];
  return !group || group.kind !== TIMED || (group.flags & CLOCK_SYNCED) !== 0;
}

/** Reads the body of a pack. Throws DamagedPayloadError if it is not that of the head. */
export function readBody(index: PackIndex, blob: Uint8Array): PayloadOf {
  const streams = unpacked(blob, MAX_BYTES);
  const body = streams.of(BODY);
  const tails = streams.of(TAIL);
  const ts = tsByGroup(index);
  let left = MAX_BYTES;
  const groups = index.groups.map((group, number) => {
    const read = takeBody(group, ts[number] ?? new Float64Array(), body, streams, left);
    left -= read.bytes.length;
    const starts = new Int32Array(group.rows);
    let tailBytes = 0;
    for (let row = 0; row < group.rows; row++) {
      const length = read.lengths[row] ?? 0;
      starts[row] = tailBytes;
      tailBytes += length;
      if (length < 0 || tailBytes > tails.left) body.fail(`${length} bytes behind the fields`);
    }
    return { ...read, starts, tailAt: tails.skip(tailBytes) };
  });
  if (body.left + tails.left > 0) body.fail("bytes too many");
  return (row) => {
    const group = groups[index.groupOf[row] ?? 0];
    if (!group) throw new RangeError(`no row ${row} in a pack`);
    const place = index.placeIn[row] ?? 0;
    const { stride, bytes, lengths, starts, tailAt } = group;
    const length = lengths[place] ?? 0;
    const payload = new Uint8Array(stride + length);
    payload.set(bytes.subarray(place * stride, (place + 1) * stride));
    const at = tailAt + (starts[place] ?? 0);
    for (let i = 0; i < length; i++) payload[stride + i] = tails.at(at + i);
    return payload;
  };
}

interface BodyGroup {
  readonly stride: number;
  /** Payloads of all rows, each up to where its fields end. */
  readonly bytes: Uint8Array;
  readonly lengths: Int32Array;
}

function takeBody(
  { kind, flags, rows }: HeadGroup,
  ts: Float64Array,
  body: ByteReader,
  streams: StreamReaders,
  maxBytes: number,
): BodyGroup {
  if (kind === OPAQUE) return { stride: 0, bytes: new Uint8Array(), lengths: takeLengths(rows, body, streams) };
  const isStamped = body.byte() === 1;
  // Columns come before it is known how long the rows are.
  const times = isStamped ? ts : new Float64Array(rows);
  const spans = new Float64Array(rows);
  if (!isStamped) takeColumn(F64, placeOf(times, 8), body, streams, TIME_AREA);
  takeColumn(F64, placeOf(spans, 8), body, streams, SPAN_AREA);
  const prefixBytes = body.length(8);
  const prefixAt = body.skip(prefixBytes);
  const kinds = takeKinds(body);
  const stride = kinds.reduce((sum, field) => sum + widthOf(field), TIMED_BYTES + prefixBytes);
  if (stride * rows > maxBytes) body.fail(`${rows} rows of ${stride} bytes`);
  const bytes = new Uint8Array(stride * rows);
  const view = new DataView(bytes.buffer);
  for (let row = 0, at = 0; row < rows; row++, at += stride) {
    bytes[at] = VERSION;
    bytes[at + 1] = flags;
    view.setFloat64(at + TIME_AT, times[row] ?? 0, true);
    view.setFloat64(at + SPAN_AT, spans[row] ?? 0, true);
    for (let i = 0; i < prefixBytes; i++) bytes[at + TIMED_BYTES + i] = body.at(prefixAt + i);
  }
  let offset = TIMED_BYTES + prefixBytes;
  for (const field of kinds) {
    takeColumn(field, { view, offset, stride, rows }, body, streams, FIELD_AREA + field);
    offset += widthOf(field);
  }
  return { stride, bytes, lengths: takeLengths(rows, body, streams) };
}

function takeKinds(body: ByteReader): readonly Kind[] {
  const kinds: Kind[] = [];
  for (let field = body.byte(); field !== 0; field = body.byte()) {
    if (!isKind(field)) return body.fail(`fields of kind ${field}`);
    // Each field has a column of two bytes at least.
    const run = body.length(16);
    for (let i = 0; i < run; i++) kinds.push(field);
  }
  return kinds;
}

function takeLengths(rows: number, body: ByteReader, streams: StreamReaders): Int32Array {
  const lengths = new Int32Array(rows);
  takeColumn(I32, placeOf(lengths, 4), body, streams, LENGTH_AREA);
  return lengths;
}

/** By group: the ts of its rows, in their order. */
function tsByGroup({ groups, groupOf, placeIn, ts }: PackIndex): readonly Float64Array[] {
  const found = groups.map(({ rows }) => new Float64Array(rows));
  for (let row = 0; row < ts.length; row++) {
    const column = found[groupOf[row] ?? 0];
    if (column) column[placeIn[row] ?? 0] = ts[row] ?? 0;
  }
  return found;
}

/** Little endian, as the processors that this runs on. */
const placeOf = (numbers: Float64Array | Int32Array, stride: number): { view: DataView; offset: number; stride: number; rows: number } => ({
  view: new DataView(numbers.buffer),
  offset: 0,
  stride,
  rows: numbers.length,
});
