import type { Steps } from "../base/timer.ts";
import { fitsElement, fitsScalar, type Unfit, unfit } from "../model/fits.ts";
import type { Layout } from "../model/layout.ts";
import type { DataType, Reading, Readout, Scalar, Value } from "../model/value.ts";
import { ByteWriter } from "./bytes.ts";
import {
  ABSENT,
  ALL_GOOD,
  BAD,
  baseTime,
  CHANGES,
  CLOCK_SYNCED,
  type Column,
  DOUBTS,
  FAULT_CODE,
  GOOD,
  MAX_WHOLE_TIME,
  type Plan,
  partOf,
  planOf,
  SOURCE_TIMES,
  UNCERTAIN,
  VERSION,
  WHOLE_TIMES,
  WIDTH,
  WITH_DETAIL,
} from "./codec-format.ts";
import { putDoubts } from "./doubts.ts";

export interface EncodedReadout {
  /** In memory of its own: may be transferred to another thread. */
  readonly payload: Uint8Array;
  /** Readings of ACTIVE variables, bad ones too. */
  readonly count: number;
  /** Readings of EXPLORATION variables, bad ones too. */
  readonly explorationCount: number;
  /** Readings of all variables that are as they were reported last, and are not in it. */
  readonly unchangedCount: number;
}

const writer = new ByteWriter();

/**
 * Writes one readout in the compact form that the buffer keeps; `decodeReadout` with the same layout gives it back.
 * A value that its variable's type cannot hold becomes bad: not_a_number for NaN and infinities, type_mismatch otherwise. An array keeps its
 * elements that are NaN or infinite.
 * Throws RangeError if the readings do not follow the layout.
 */
export function encodeReadout(layout: Layout, readout: Readout): EncodedReadout {
  const written = writtenOf(layout, readout);
  const { plan, readings, unchangedCount } = written;
  const { length } = readings;
  const found = nothingFound();
  judge(plan, readings, 0, length, found);
  const places = begin(writer, written, readout, found);
  putValues(plan, readings, 0, length, found, writer, places);
  if (found.hasBad) new BadReadings(readings, found.bad).put(0, length);
  const timeFlags = found.hasTimes ? putTimes(readings, readout.time, found) : 0;
  if (found.hasDoubts) putDoubts(writer, readings, (i) => !found.bad?.has(i));
  writer.orByte(1, flagsOf(readout, written, places) | timeFlags | doubtFlag(found));
  const { count, explorationCount } = found;
  return { payload: writer.take(), count, explorationCount, unchangedCount };
}

/** Readings in one step: a millisecond or two before the code is compiled. */
const AT_ONCE = 5000;

/** encodeReadout in steps, between which others may be encoded; the readings stay as they are until the end. */
export function* encodeSteps(layout: Layout, readout: Readout, atOnce = AT_ONCE): Steps<EncodedReadout> {
  const written = writtenOf(layout, readout);
  const { plan, readings, unchangedCount } = written;
  const { length } = readings;
  const found = nothingFound();
  for (let from = 0; from < length; from += atOnce) {
    judge(plan, readings, from, Math.min(length, from + atOnce), found);
    yield;
  }
  const head = new ByteWriter();
  const places = begin(head, written, readout, found);
  const pieces: Uint8Array[] = [];
  const take = (put: () => void): void => {
    writer.start();
    put();
    pieces.push(writer.take());
  };
  function* takeAll(put: (from: number, to: number) => void): Steps<void> {
    for (let from = 0; from < length; from += atOnce) {
      take(() => put(from, Math.min(length, from + atOnce)));
      yield;
    }
  }
  yield* takeAll((from, to) => {
    writer.reserve(plan.fixedBytes);
    putValues(plan, readings, from, to, found, head, places);
  });
  if (found.hasBad) {
    const bad = new BadReadings(readings, found.bad);
    yield* takeAll((from, to) => bad.put(from, to));
  }
  const times = new SourceTimes(readings, readout.time, found);
  if (found.hasTimes) {
    for (let from = 0; from < length; from += atOnce) {
      times.count(from, Math.min(length, from + atOnce));
      yield;
    }
    take(() => times.begin());
    if (times.flags !== 0) yield* takeAll((from, to) => times.put(from, to));
  }
  if (found.hasDoubts) {
    take(() => putDoubts(writer, readings, (i) => !found.bad?.has(i)));
    yield;
  }
  head.orByte(1, flagsOf(readout, written, places) | times.flags | doubtFlag(found));
  const { count, explorationCount } = found;
  return { payload: yield* joined([head.take(), ...pieces]), count, explorationCount, unchangedCount };
}

/** Facts about the readings, found before the first is written. */
interface Found {
  count: number;
  explorationCount: number;
  bad: Map<number, Unfit> | undefined;
  hasBad: boolean;
  isAllGood: boolean;
  hasTimes: boolean;
  hasDoubts: boolean;
}

const nothingFound = (): Found => ({
  count: 0,
  explorationCount: 0,
  bad: undefined,
  hasBad: false,
  isAllGood: true,
  hasTimes: false,
  hasDoubts: false,
});

const doubtFlag = ({ hasDoubts }: Found): number => (hasDoubts ? DOUBTS : 0);

/** The place where the bits of states and bools begin; -1: no states are written. */
interface Places {
  readonly statesAt: number;
  readonly boolsAt: number;
}

/** The readings that are written, with their plan. */
interface Written {
  readonly plan: Plan;
  readonly readings: Readout["readings"];
  /** Variables of the layout. */
  readonly total: number;
  /** Places of the readings in the layout; undefined: all of it is written. */
  readonly places: readonly number[] | undefined;
  readonly unchangedCount: number;
}

function writtenOf(layout: Layout, { readings, unchanged }: Readout): Written {
  const plan = planOf(layout);
  const { length: total } = plan.columns;
  if (readings.length !== total)
    throw new RangeError(`a readout of ${layout.source.name} has ${readings.length} readings, its layout ${total} variables`);
  if (!unchanged) return { plan, readings, total, places: undefined, unchangedCount: 0 };
  const places: number[] = [];
  for (let place = 0; place < total; place++) if (unchanged[place] !== 1) places.push(place);
  return {
    plan: partOf(plan, places),
    readings: places.map((place) => readings[place]),
    total,
    places,
    unchangedCount: total - places.length,
  };
}

/** Most readouts are all good: whether this one is shows before a byte of states is spent on it. */
function judge({ columns }: Plan, readings: Readout["readings"], from: number, to: number, found: Found): void {
  let { count, explorationCount, bad, hasBad, isAllGood, hasTimes, hasDoubts } = found;
  for (let i = from; i < to; i++) {
    const column = columns[i];
    const reading = readings[i];
    if (!column) continue;
    if (reading === undefined) {
      isAllGood = false;
      continue;
    }
    if (column.exploration) explorationCount++;
    else count++;
    if (reading.quality === "bad") {
      isAllGood = false;
      hasBad = true;
      continue;
    }
    if (reading.quality !== "good") {
      isAllGood = false;
      if (reading.doubt) hasDoubts = true;
    }
    if (reading.sourceTime !== undefined) hasTimes = true;
    if (!fits(column, reading.value)) {
      bad ??= new Map();
      bad.set(i, unfit(column.type, reading.value));
      isAllGood = false;
      hasBad = true;
    }
  }
  found.count = count;
  found.explorationCount = explorationCount;
  found.bad = bad;
  found.hasBad = hasBad;
  found.isAllGood = isAllGood;
  found.hasTimes = hasTimes;
  found.hasDoubts = hasDoubts;
}

/** Writes all that comes before the values, with room for those of a fixed width behind it. */
function begin(head: ByteWriter, { plan, total, places }: Written, { time, spanMs }: Readout, { isAllGood }: Found): Places {
  head.start();
  head.reserve(plan.fixedBytes);
  head.putByte(VERSION);
  head.putByte(0);
  head.view.setFloat64(head.position, time, true);
  head.view.setFloat64(head.position + 8, spanMs, true);
  head.position += 16;
  head.putVarint(total);
  if (places) putPlaces(head, places);
  const statesAt = isAllGood ? -1 : head.putZeros(plan.stateBytes);
  return { statesAt, boolsAt: head.putZeros(plan.boolBytes) };
}

function putPlaces(head: ByteWriter, places: readonly number[]): void {
  head.putVarint(places.length);
  let next = 0;
  for (const place of places) {
    head.putVarint(place - next);
    next = place + 1;
  }
}

/** The values go to `writer`, bits of states and bools to the places in `head`. */
function putValues(
  { columns, fixedBytes }: Plan,
  readings: Readout["readings"],
  from: number,
  to: number,
  { bad }: Found,
  head: ByteWriter,
  { statesAt, boolsAt }: Places,
): void {
  for (let i = from; i < to; i++) {
    const column = columns[i];
    const reading = readings[i];
    if (!column) continue;
    const state =
      reading === undefined ? ABSENT : reading.quality === "bad" || bad?.has(i) ? BAD : reading.quality === "good" ? GOOD : UNCERTAIN;
    if (state !== GOOD) head.orByte(statesAt + (i >> 2), state << ((i & 3) * 2));
    if (reading === undefined || reading.quality === "bad" || state === BAD) continue;
    if (column.isArray) putArray(column.scalar, reading.value as readonly Scalar[], fixedBytes);
    else if (column.bit < 0) putScalar(column.scalar, reading.value as Scalar, fixedBytes);
    else if (reading.value === true) head.orByte(boolsAt + (column.bit >> 3), 1 << (column.bit & 7));
  }
}

/** Those of the readout, without its source times. */
const flagsOf = ({ clockSynced }: Readout, { places }: Written, { statesAt }: Places): number =>
  (clockSynced ? CLOCK_SYNCED : 0) | (statesAt < 0 ? ALL_GOOD : 0) | (places ? CHANGES : 0);

/** Memory that has just come from the system is slow to write. */
function* joined(pieces: readonly Uint8Array[]): Steps<Uint8Array> {
  const payload = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    payload.set(piece, at);
    at += piece.length;
    yield;
  }
  return payload;
}

function fits(column: Column, value: Value): boolean {
  if (!column.isArray) return fitsScalar(column.scalar, value);
  return Array.isArray(value) && value.every((element) => fitsElement(column.scalar, element));
}

/** `after`: bytes that stay reserved behind it. The value fits the type. */
function putScalar(scalar: DataType["scalar"], value: Scalar, after: number): void {
  if (scalar === "string") {
    writer.putText(value as string, after);
    return;
  }
  const at = writer.position;
  const { view } = writer;
  switch (scalar) {
    case "bool":
      view.setUint8(at, value === true ? 1 : 0);
      break;
    case "int8":
    case "uint8":
      view.setUint8(at, value as number);
      break;
    case "int16":
    case "uint16":
      view.setUint16(at, value as number, true);
      break;
    case "int32":
    case "uint32":
      view.setUint32(at, value as number, true);
      break;
    case "int64":
      view.setBigInt64(at, value as bigint, true);
      break;
    case "uint64":
      view.setBigUint64(at, value as bigint, true);
      break;
    case "float32":
      view.setFloat32(at, value as number, true);
      break;
    case "float64":
      view.setFloat64(at, value as number, true);
      break;
  }
  writer.position = at + WIDTH[scalar];
}

function putArray(scalar: DataType["scalar"], values: readonly Scalar[], after: number): void {
  writer.reserve(8 + values.length * 8 + after);
  writer.putVarint(values.length);
  if (scalar === "bool") {
    const start = writer.putZeros(Math.ceil(values.length / 8));
    for (let i = 0; i < values.length; i++) if (values[i] === true) writer.orByte(start + (i >> 3), 1 << (i & 7));
    return;
  }
  for (const value of values) putScalar(scalar, value, after);
}

/** Writes why readings are bad, from the first to the last. */
class BadReadings {
  readonly #readings: Readout["readings"];
  readonly #unfitOf: ReadonlyMap<number, Unfit> | undefined;
  /** Those that are written, by the number that stands for them. */
  readonly #details = new Map<string, number>();

  constructor(readings: Readout["readings"], unfitOf: ReadonlyMap<number, Unfit> | undefined) {
    this.#readings = readings;
    this.#unfitOf = unfitOf;
  }

  put(from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const reading = this.#readings[i];
      if (reading === undefined) continue;
      const problem = reading.quality === "bad" ? reading : this.#unfitOf?.get(i);
      if (problem !== undefined) this.#putOne(problem);
    }
  }

  #putOne({ fault, detail }: Unfit | Extract<Reading, { quality: "bad" }>): void {
    writer.reserve(10);
    const code = FAULT_CODE[fault];
    if (detail === undefined) {
      writer.putByte(code);
      return;
    }
    writer.putByte(code | WITH_DETAIL);
    const known = this.#details.get(detail);
    writer.putVarint(known ?? 0);
    if (known !== undefined) return;
    writer.putText(detail, 0);
    this.#details.set(detail, this.#details.size + 1);
  }
}

/** Gives the flags that the times need. */
function putTimes(readings: Readout["readings"], time: number, found: Found): number {
  const times = new SourceTimes(readings, time, found);
  const { length } = readings;
  times.count(0, length);
  times.begin();
  times.put(0, length);
  return times.flags;
}

/** Writes source times: all are counted, then all are put. Times that are not a number are left out. */
class SourceTimes {
  readonly #readings: Readout["readings"];
  readonly #unfitOf: ReadonlyMap<number, Unfit> | undefined;
  #entries = 0;
  #isWhole = true;
  #previousIndex = 0;
  #previousTime: number;

  constructor(readings: Readout["readings"], time: number, { bad }: Found) {
    this.#readings = readings;
    this.#unfitOf = bad;
    this.#previousTime = baseTime(time);
  }

  /** Of the readout, once they are counted. */
  get flags(): number {
    if (this.#entries === 0) return 0;
    return SOURCE_TIMES | (this.#isWhole ? WHOLE_TIMES : 0);
  }

  count(from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const time = this.#timeAt(i);
      if (time === undefined) continue;
      this.#entries++;
      if (!Number.isInteger(time) || Math.abs(time) > MAX_WHOLE_TIME || Object.is(time, -0)) this.#isWhole = false;
    }
  }

  begin(): void {
    if (this.#entries === 0) return;
    writer.reserve(8);
    writer.putVarint(this.#entries);
  }

  put(from: number, to: number): void {
    if (this.#entries === 0) return;
    writer.reserve((to - from) * 16);
    for (let i = from; i < to; i++) {
      const time = this.#timeAt(i);
      if (time === undefined) continue;
      writer.putVarint(i - this.#previousIndex);
      if (this.#isWhole) {
        const distance = time - this.#previousTime;
        writer.putVarint(distance < 0 ? -2 * distance - 1 : 2 * distance);
      } else {
        writer.view.setFloat64(writer.position, time, true);
        writer.position += 8;
      }
      this.#previousIndex = i;
      this.#previousTime = time;
    }
  }

  #timeAt(i: number): number | undefined {
    const reading = this.#readings[i];
    if (reading === undefined || reading.quality === "bad" || this.#unfitOf?.has(i)) return undefined;
    return Number.isFinite(reading.sourceTime) ? reading.sourceTime : undefined;
  }
}
