import type { ByteReader } from "./bytes.ts";
import { type Stream, type StreamReaders, type Streams, takeSigned } from "./pack-bytes.ts";

/*
 * A column is one variable, or one number of the header, down the rows of a group. It is kept as what differs from the row before: integers, and
 * decimals of few digits as the integers that their digits are, by their difference; other numbers of 64 bits by their exclusive or. Each byte
 * of the differences has a stream of its own, and one that is zero in all rows has none.
 */
/** Numbers on disk: never changed, only added to. */
export const U8 = 1;
export const I16 = 2;
export const I32 = 3;
export const I64 = 4;
export const F32 = 5;
export const F64 = 6;
export type Kind = typeof U8 | typeof I16 | typeof I32 | typeof I64 | typeof F32 | typeof F64;

const WIDTHS: Readonly<Record<Kind, number>> = { [U8]: 1, [I16]: 2, [I32]: 4, [I64]: 8, [F32]: 4, [F64]: 8 };
export const widthOf = (kind: Kind): number => WIDTHS[kind];
export const isKind = (value: number): value is Kind => value >= U8 && value <= F64;

/** Forms of a column, in the low bits of its first byte; above them the decimal digits. */
const SAME_BITS = 0;
const SAME_INTEGER = 1;
const SAME_DECIMAL = 2;
const INTEGERS = 3;
const DECIMALS = 4;
const XORED = 5;
const FORM_BITS = 3;
/** With the planes of a column: what most differences have in common is taken from each. */
const HAS_BASE = 0x10;

const POWERS = Array.from({ length: 10 }, (_, digits) => 10 ** digits);
/** Floats of 32 bits have seven digits: with more of them any number would be a decimal, and not by its nature. */
const MAX_DECIMAL_F32 = 2 ** 22;
const MAX_DECIMAL_F64 = 2 ** 45;
/** Whole numbers, times among them, may be larger. */
const MAX_WHOLE = 2 ** 51;
const MAX_DIFFERENCE = 2 ** 30;

/** Streams of one column's planes begin at `area * AREA`. */
export const AREA = 8;

/** The numbers of a column in memory. */
export interface Place {
  readonly view: DataView;
  /** The first row's number begins here. */
  readonly offset: number;
  readonly stride: number;
  readonly rows: number;
}

/** Used by one column at a time. */
let differences = new Int32Array(1024);
let wholes = new Float64Array(1024);

function reserve(rows: number): void {
  if (rows <= differences.length) return;
  differences = new Int32Array(2 ** Math.ceil(Math.log2(rows)));
  wholes = new Float64Array(differences.length);
}

/** Writes the column; `meta` gets what there is of it once. At least one row. */
export function putColumn(kind: Kind, place: Place, meta: Stream, streams: Streams, area: number): void {
  reserve(place.rows);
  const isSame = areSame(kind, place);
  if (kind === U8 || kind === I16 || kind === I32) {
    putIntegers(integerReader(kind), place, isSame, meta, streams, area);
    return;
  }
  const digits = digitsOf(kind, isSame ? { ...place, rows: 1 } : place);
  if (digits >= 0) putDecimals(digits, place.rows, isSame, meta, streams, area);
  else if (isSame) putSameBits(kind, place, meta);
  else if (kind === F32) putIntegers(integerReader(I32), place, false, meta, streams, area);
  else putXored(place, meta, streams, area);
}

function areSame(kind: Kind, { view, offset, stride, rows }: Place): boolean {
  const width = WIDTHS[kind];
  const end = offset + stride * rows;
  if (width === 1) {
    const first = view.getUint8(offset);
    for (let at = offset + stride; at < end; at += stride) if (view.getUint8(at) !== first) return false;
  } else if (width === 2) {
    const first = view.getUint16(offset);
    for (let at = offset + stride; at < end; at += stride) if (view.getUint16(at) !== first) return false;
  } else {
    const first = view.getUint32(offset);
    for (let at = offset + stride; at < end; at += stride) if (view.getUint32(at) !== first) return false;
    if (width === 8) return areSame(F32, { view, offset: offset + 4, stride, rows });
  }
  return true;
}

const integerReader = (kind: typeof U8 | typeof I16 | typeof I32): ((view: DataView, at: number) => number) =>
  kind === U8 ? readU8 : kind === I16 ? readI16 : readI32;
const readU8 = (view: DataView, at: number): number => view.getUint8(at);
const readI16 = (view: DataView, at: number): number => view.getInt16(at, true);
const readI32 = (view: DataView, at: number): number => view.getInt32(at, true);

function putIntegers(
  read: (view: DataView, at: number) => number,
  { view, offset, stride, rows }: Place,
  isSame: boolean,
  meta: Stream,
  streams: Streams,
  area: number,
): void {
  const first = read(view, offset);
  meta.putByte(isSame ? SAME_INTEGER : INTEGERS);
  meta.putSigned(first);
  if (isSame) return;
  let before = first;
  for (let row = 1, at = offset + stride; row < rows; row++, at += stride) {
    const value = read(view, at);
    differences[row - 1] = value - before;
    before = value;
  }
  putDifferences(rows - 1, meta, streams, area);
}

/** Digits behind the point that all numbers of the column need as decimals, which are in `wholes` then; -1: they are none. */
function digitsOf(kind: typeof I64 | typeof F32 | typeof F64, { view, offset, stride, rows }: Place): number {
  let digits = 0;
  for (let pass = 0; pass < 2; pass++) {
    let before = digits;
    for (let row = 0, at = offset; row < rows; row++, at += stride) {
      const value = kind === F32 ? view.getFloat32(at, true) : kind === F64 ? view.getFloat64(at, true) : integerAt(view, at);
      let whole = kind === I64 ? value : wholeOf(kind, value, digits);
      while (Number.isNaN(whole) && kind !== I64 && digits < POWERS.length - 1) whole = wholeOf(kind, value, ++digits);
      if (Number.isNaN(whole)) return -1;
      // All that follow are looked at with as many.
      if (row === 0) before = digits;
      if (row > 0 && digits === before && Math.abs(whole - (wholes[row - 1] ?? 0)) > MAX_DIFFERENCE) return -1;
      wholes[row] = whole;
    }
    if (digits === before) return digits;
  }
  return -1;
}

/** NaN: the number is not a decimal of so many digits, to the bit. */
function wholeOf(kind: typeof F32 | typeof F64, value: number, digits: number): number {
  const power = POWERS[digits] ?? 1;
  const whole = Math.round(value * power);
  const isFitting =
    kind === F32
      ? Math.abs(whole) < MAX_DECIMAL_F32 && Math.fround(whole / power) === value
      : Math.abs(whole) < (digits === 0 ? MAX_WHOLE : MAX_DECIMAL_F64) && whole / power === value;
  return isFitting && !Object.is(value, -0) ? whole + 0 : Number.NaN;
}

/** NaN: it is too large for a number. */
function integerAt(view: DataView, at: number): number {
  const high = view.getInt32(at + 4, true);
  return Math.abs(high) < 2 ** 18 ? high * 2 ** 32 + view.getUint32(at, true) : Number.NaN;
}

function putDecimals(digits: number, rows: number, isSame: boolean, meta: Stream, streams: Streams, area: number): void {
  meta.putByte((isSame ? SAME_DECIMAL : DECIMALS) | (digits << FORM_BITS));
  meta.putSigned(wholes[0] ?? 0);
  if (isSame) return;
  for (let row = 1; row < rows; row++) differences[row - 1] = (wholes[row] ?? 0) - (wholes[row - 1] ?? 0);
  putDifferences(rows - 1, meta, streams, area);
}

function putDifferences(count: number, meta: Stream, streams: Streams, area: number): void {
  const common = differences[0] ?? 0;
  let equal = 0;
  for (let i = 0; i < count; i++) if (differences[i] === common) equal++;
  const base = 2 * equal > count ? common : 0;
  let all = 0;
  for (let i = 0; i < count; i++) {
    const difference = ((differences[i] ?? 0) - base) | 0;
    const zigzag = (difference << 1) ^ (difference >> 31);
    differences[i] = zigzag;
    all |= zigzag;
  }
  let planes = 0;
  for (let plane = 0; plane < 4; plane++) if ((all >>> (8 * plane)) & 0xff) planes |= 1 << plane;
  meta.putByte(planes | (base === 0 ? 0 : HAS_BASE));
  if (base !== 0) meta.putSigned(base);
  for (let plane = 0; plane < 4; plane++) if (planes & (1 << plane)) putPlane(streams.of(area * AREA + plane), count, 8 * plane);
}

function putPlane(stream: Stream, count: number, shift: number): void {
  const at = stream.take(count);
  const { bytes } = stream;
  for (let i = 0; i < count; i++) bytes[at + i] = (differences[i] ?? 0) >>> shift;
}

function putSameBits(kind: Kind, { view, offset }: Place, meta: Stream): void {
  meta.putByte(SAME_BITS);
  meta.put(new Uint8Array(view.buffer, view.byteOffset + offset, WIDTHS[kind]));
}

function putXored({ view, offset, stride, rows }: Place, meta: Stream, streams: Streams, area: number): void {
  meta.putByte(XORED);
  meta.put(new Uint8Array(view.buffer, view.byteOffset + offset, 8));
  for (let half = 0; half < 2; half++) {
    let all = 0;
    const begin = offset + 4 * half;
    for (let row = 1, at = begin + stride; row < rows; row++, at += stride) {
      const xored = view.getInt32(at, true) ^ view.getInt32(at - stride, true);
      differences[row - 1] = xored;
      all |= xored;
    }
    let planes = 0;
    for (let plane = 0; plane < 4; plane++) if ((all >>> (8 * plane)) & 0xff) planes |= 1 << plane;
    meta.putByte(planes);
    for (let plane = 0; plane < 4; plane++)
      if (planes & (1 << plane)) putPlane(streams.of(area * AREA + 4 * half + plane), rows - 1, 8 * plane);
  }
}

/** Writes the column that `putColumn` kept to its place. Throws DamagedPayloadError. */
export function takeColumn(kind: Kind, place: Place, meta: ByteReader, streams: StreamReaders, area: number): void {
  reserve(place.rows);
  const first = meta.byte();
  const form = first & ((1 << FORM_BITS) - 1);
  const digits = first >> FORM_BITS;
  const isWide = WIDTHS[kind] === 8;
  if (form === SAME_BITS || (form === XORED && isWide)) takeBits(kind, form === XORED, place, meta, streams, area);
  else if ((form === SAME_INTEGER || form === INTEGERS) && !isWide) takeIntegers(kind, form === INTEGERS, place, meta, streams, area);
  else if ((form === SAME_DECIMAL || form === DECIMALS) && (isWide || kind === F32) && digits < POWERS.length)
    takeDecimals(kind, digits, form === DECIMALS, place, meta, streams, area);
  else meta.fail(`form ${first} of a column of kind ${kind}`);
}

function takeBits(kind: Kind, isXored: boolean, place: Place, meta: ByteReader, streams: StreamReaders, area: number): void {
  const { view, offset, stride, rows } = place;
  const width = WIDTHS[kind];
  const at = meta.skip(width);
  for (let byte = 0; byte < width; byte++) view.setUint8(offset + byte, meta.at(at + byte));
  if (isXored) takeXored(place, meta, streams, area);
  else
    for (let row = 1; row < rows; row++)
      for (let byte = 0; byte < width; byte++) view.setUint8(offset + row * stride + byte, view.getUint8(offset + byte));
}

function takeIntegers(kind: Kind, isChanging: boolean, place: Place, meta: ByteReader, streams: StreamReaders, area: number): void {
  const { view, offset, stride, rows } = place;
  const write = kind === U8 ? writeU8 : kind === I16 ? writeI16 : writeI32;
  let value = takeSigned(meta);
  if (isChanging) takeDifferences(rows - 1, meta, streams, area);
  write(view, offset, value);
  for (let row = 1, at = offset + stride; row < rows; row++, at += stride) {
    if (isChanging) value = (value + (differences[row - 1] ?? 0)) | 0;
    write(view, at, value);
  }
}

function takeDecimals(
  kind: Kind,
  digits: number,
  isChanging: boolean,
  { view, offset, stride, rows }: Place,
  meta: ByteReader,
  streams: StreamReaders,
  area: number,
): void {
  const power = POWERS[digits] ?? 1;
  let whole = takeSigned(meta);
  if (isChanging) takeDifferences(rows - 1, meta, streams, area);
  for (let row = 0, at = offset; row < rows; row++, at += stride) {
    if (row > 0 && isChanging) whole += differences[row - 1] ?? 0;
    if (kind === F32) view.setFloat32(at, whole / power, true);
    else if (kind === F64) view.setFloat64(at, whole / power, true);
    else {
      view.setUint32(at, whole >>> 0, true);
      view.setInt32(at + 4, Math.floor(whole / 2 ** 32), true);
    }
  }
}

const writeU8 = (view: DataView, at: number, value: number): void => view.setUint8(at, value);
const writeI16 = (view: DataView, at: number, value: number): void => view.setInt16(at, value, true);
const writeI32 = (view: DataView, at: number, value: number): void => view.setInt32(at, value, true);

function takeDifferences(count: number, meta: ByteReader, streams: StreamReaders, area: number): void {
  const flags = meta.byte();
  if (flags & ~(0xf | HAS_BASE)) meta.fail(`planes ${flags} of a column`);
  const base = flags & HAS_BASE ? takeSigned(meta) : 0;
  takePlanes(flags, count, streams, area * AREA);
  for (let i = 0; i < count; i++) {
    const zigzag = differences[i] ?? 0;
    differences[i] = ((zigzag >>> 1) ^ -(zigzag & 1)) + base;
  }
}

/** Into `differences`. */
function takePlanes(planes: number, count: number, streams: StreamReaders, firstStream: number): void {
  differences.fill(0, 0, count);
  for (let plane = 0; plane < 4; plane++) {
    if (!(planes & (1 << plane))) continue;
    const stream = streams.of(firstStream + plane);
    const at = stream.skip(count);
    for (let i = 0; i < count; i++) differences[i] = (differences[i] ?? 0) | (stream.at(at + i) << (8 * plane));
  }
}

function takeXored({ view, offset, stride, rows }: Place, meta: ByteReader, streams: StreamReaders, area: number): void {
  for (let half = 0; half < 2; half++) {
    const planes = meta.byte();
    if (planes & ~0xf) meta.fail(`planes ${planes} of a column`);
    takePlanes(planes, rows - 1, streams, area * AREA + 4 * half);
    const begin = offset + 4 * half;
    for (let row = 1, at = begin + stride; row < rows; row++, at += stride)
      view.setInt32(at, view.getInt32(at - stride, true) ^ (differences[row - 1] ?? 0), true);
  }
}
