import type { Layout } from "../model/layout.ts";
import type { DataType, Reading, Readout, Scalar } from "../model/value.ts";
import { ByteReader } from "./bytes.ts";
import {
  ABSENT,
  ALL_GOOD,
  BAD,
  baseTime,
  CHANGES,
  CLOCK_SYNCED,
  DOUBTS,
  FAULT_OF_CODE,
  GOOD,
  KNOWN_FLAGS,
  partOf,
  planOf,
  SOURCE_TIMES,
  VERSION,
  WHOLE_TIMES,
  WIDTH,
  WITH_DETAIL,
} from "./codec-format.ts";
import { takeDoubts } from "./doubts.ts";
import { createReadingScratch, type ReadingScratch } from "./reading-scratch.ts";

/** Used by one call at a time: nothing here waits. */
const reader = new ByteReader();

/**
 * Throws DamagedPayloadError if the bytes are not a readout along this layout. Never allocates more than the layout and the bytes account for.
 * The readings are those of `scratch`: valid until it is used for the next readout. What is in them (strings, arrays) is never used again.
 */
export function decodeReadout(layout: Layout, payload: Uint8Array, scratch: ReadingScratch = createReadingScratch()): Readout {
  const whole = planOf(layout);
  reader.start(payload);
  const version = reader.byte();
  if (version !== VERSION) reader.fail(`version ${version} instead of ${VERSION}`);
  const flags = reader.byte();
  if (flags & ~KNOWN_FLAGS) reader.fail(`unknown flags 0x${flags.toString(16)}`);
  const headerAt = reader.skip(16);
  const time = reader.view.getFloat64(headerAt, true);
  const spanMs = reader.view.getFloat64(headerAt + 8, true);
  const variables = reader.varint();
  const total = whole.columns.length;
  if (variables !== total) reader.fail(`${variables} variables instead of the layout's ${total}`);
  const places = flags & CHANGES ? takePlaces(reader, total) : undefined;
  const { columns, stateBytes, boolBytes } = places ? partOf(whole, places) : whole;
  const statesAt = flags & ALL_GOOD ? -1 : reader.skip(stateBytes);
  const boolsAt = reader.skip(boolBytes);

  const readings = scratch.start(columns.length);
  const bad: number[] = [];
  for (let i = 0; i < columns.length; i++) {
    const column = columns[i];
    if (!column) continue;
    const state = statesAt < 0 ? GOOD : (reader.at(statesAt + (i >> 2)) >> ((i & 3) * 2)) & 3;
    if (state === ABSENT || state === BAD) {
      readings[i] = undefined;
      if (state === BAD) bad.push(i);
      continue;
    }
    const value = column.isArray
      ? takeArray(reader, column.scalar)
      : column.bit < 0
        ? takeScalar(reader, column.scalar)
        : ((reader.at(boolsAt + (column.bit >> 3)) >> (column.bit & 7)) & 1) === 1;
    readings[i] = scratch.put(i, state === GOOD ? "good" : "uncertain", value);
  }
  if (bad.length > 0) takeBad(reader, bad, readings);
  if (flags & SOURCE_TIMES) takeSourceTimes(reader, (flags & WHOLE_TIMES) !== 0, baseTime(time), readings, scratch);
  if (flags & DOUBTS)
    takeDoubts(reader, (i, doubt) => {
      const reading = readings[i];
      if (reading?.quality !== "uncertain") return false;
      scratch.putDoubt(i, doubt);
      return true;
    });
  if (reader.left > 0) reader.fail(`${reader.left} bytes too many`);
  const readout = { time, spanMs, clockSynced: (flags & CLOCK_SYNCED) !== 0 };
  return places ? { ...readout, ...spread(readings, places, total) } : { ...readout, readings };
}

/** The places of the layout that a readout of changes is about. */
function takePlaces(reader: ByteReader, total: number): readonly number[] {
  const count = reader.length(8);
  if (count > total) reader.fail(`${count} changes of ${total} variables`);
  const places: number[] = [];
  for (let next = 0; places.length < count; ) {
    const place = next + reader.varint();
    if (place >= total) reader.fail(`a change of variable ${place} of ${total}`);
    places.push(place);
    next = place + 1;
  }
  return places;
}

/** Readings at their places in the layout; the others are unchanged. */
function spread(
  readings: readonly (Reading | undefined)[],
  places: readonly number[],
  total: number,
): Pick<Readout, "readings" | "unchanged"> {
  const all = new Array<Reading | undefined>(total).fill(undefined);
  const unchanged = new Uint8Array(total).fill(1);
  for (const [i, place] of places.entries()) {
    all[place] = readings[i];
    unchanged[place] = 0;
  }
  return { readings: all, unchanged };
}

/** True when the clock that stamped this readout was synchronised; true where the payload is not a readout. */
export const wasClockSynced = (payload: Uint8Array): boolean => payload.length < 2 || ((payload[1] ?? 0) & CLOCK_SYNCED) !== 0;

/** `isElement`: of an array, in which NaN and the infinities stand for elements without a value. */
function takeScalar(reader: ByteReader, scalar: DataType["scalar"], isElement = false): Scalar {
  if (scalar === "string") return reader.text();
  const at = reader.skip(WIDTH[scalar]);
  const { view } = reader;
  switch (scalar) {
    case "auto":
      return reader.fail("a value of a type that is not settled");
    case "bool":
      return false;
    case "int8":
      return view.getInt8(at);
    case "uint8":
      return view.getUint8(at);
    case "int16":
      return view.getInt16(at, true);
    case "uint16":
      return view.getUint16(at, true);
    case "int32":
      return view.getInt32(at, true);
    case "uint32":
      return view.getUint32(at, true);
    case "int64":
      return view.getBigInt64(at, true);
    case "uint64":
      return view.getBigUint64(at, true);
    case "float32":
      return isElement ? view.getFloat32(at, true) : finite(reader, view.getFloat32(at, true));
    case "float64":
      return isElement ? view.getFloat64(at, true) : finite(reader, view.getFloat64(at, true));
  }
}

function finite(reader: ByteReader, value: number): number {
  return Number.isFinite(value) ? value : reader.fail("a value that is not a number");
}

function takeArray(reader: ByteReader, scalar: DataType["scalar"]): readonly Scalar[] {
  const count = reader.length(scalar === "bool" ? 1 : Math.max(1, WIDTH[scalar]) * 8);
  const values = new Array<Scalar>(count);
  if (scalar === "bool") {
    const start = reader.skip(Math.ceil(count / 8));
    for (let i = 0; i < count; i++) values[i] = ((reader.at(start + (i >> 3)) >> (i & 7)) & 1) === 1;
    return values;
  }
  for (let i = 0; i < count; i++) values[i] = takeScalar(reader, scalar, true);
  return values;
}

function takeBad(reader: ByteReader, bad: readonly number[], readings: (Reading | undefined)[]): void {
  const known: string[] = [];
  for (const i of bad) {
    const code = reader.byte();
    const fault = FAULT_OF_CODE.get(code & ~WITH_DETAIL);
    if (fault === undefined) reader.fail(`unknown fault ${code & ~WITH_DETAIL}`);
    else if (code & WITH_DETAIL) readings[i] = { quality: "bad", fault, detail: takeDetail(reader, known) };
    else readings[i] = { quality: "bad", fault };
  }
}

function takeDetail(reader: ByteReader, known: string[]): string {
  const number = reader.varint();
  if (number > 0) return known[number - 1] ?? reader.fail(`detail ${number} of ${known.length}`);
  const detail = reader.text();
  known.push(detail);
  return detail;
}

function takeSourceTimes(
  reader: ByteReader,
  whole: boolean,
  base: number,
  readings: readonly (Reading | undefined)[],
  scratch: ReadingScratch,
): void {
  const entries = reader.length(16);
  let index = 0;
  let previous = base;
  for (let n = 0; n < entries; n++) {
    index += reader.varint();
    const reading = readings[index];
    if (reading === undefined || reading.quality === "bad") reader.fail(`a source time for variable ${index}, which has no value`);
    else {
      if (whole) {
        const zigzag = reader.varint();
        previous += zigzag % 2 === 1 ? -(zigzag + 1) / 2 : zigzag / 2;
      } else previous = finite(reader, reader.view.getFloat64(reader.skip(8), true));
      scratch.putSourceTime(index, previous);
    }
  }
}
