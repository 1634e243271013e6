import { fitsScalar, type Unfit, unfit } from "../model/fits.ts";
import type { Layout } from "../model/layout.ts";
import type { DataType, Readout, Scalar, Value } from "../model/value.ts";
import { ByteWriter } from "./bytes.ts";
import {
  ABSENT,
  ALL_GOOD,
  BAD,
  baseTime,
  CLOCK_SYNCED,
  type Column,
  FAULT_CODE,
  GOOD,
  MAX_WHOLE_TIME,
  planOf,
  SOURCE_TIMES,
  UNCERTAIN,
  VERSION,
  WHOLE_TIMES,
  WIDTH,
  WITH_DETAIL,
} from "./codec-format.ts";

export interface EncodedReadout {
  /** In memory of its own: may be transferred to another thread. */
  readonly payload: Uint8Array;
  /** Readings of ACTIVE variables, bad ones too. */
  readonly count: number;
  /** Readings of EXPLORATION variables, bad ones too. */
  readonly explorationCount: number;
}

const writer = new ByteWriter();
const details = new Map<string, number>();

/**
 * Writes one readout in the compact form that the buffer keeps; `decodeReadout` with the same layout gives it back.
 * A value that its variable's type cannot hold becomes bad: not_a_number for NaN and infinities, type_mismatch otherwise.
 * Throws RangeError if the readings do not follow the layout.
 */
export function encodeReadout(layout: Layout, readout: Readout): EncodedReadout {
  const { readings } = readout;
  const plan = planOf(layout);
  const { columns } = plan;
  if (readings.length !== columns.length)
    throw new RangeError(`a readout of ${layout.source.name} has ${readings.length} readings, its layout ${columns.length} variables`);

  writer.start();
  writer.reserve(plan.fixedBytes);
  writer.putByte(VERSION);
  writer.putByte(0);
  writer.view.setFloat64(writer.position, readout.time, true);
  writer.view.setFloat64(writer.position + 8, readout.spanMs, true);
  writer.position += 16;
  writer.putVarint(columns.length);

  let count = 0;
  let explorationCount = 0;
  let flags = readout.clockSynced ? CLOCK_SYNCED : 0;
  let bad: Map<number, Unfit> | undefined;
  let hasBad = false;
  let statesAt = -1;
  // Most readouts are all good: whether this one is shows before a byte of states is spent on it.
  for (let i = 0; i < columns.length; i++) {
    const column = columns[i];
    const reading = readings[i];
    if (!column) continue;
    if (reading === undefined) {
      statesAt = 0;
      continue;
    }
    if (column.exploration) explorationCount++;
    else count++;
    if (reading.quality === "bad") {
      statesAt = 0;
      hasBad = true;
      continue;
    }
    if (reading.quality !== "good") statesAt = 0;
    if (reading.sourceTime !== undefined) flags |= SOURCE_TIMES;
    if (!fits(column, reading.value)) {
      bad ??= new Map();
      bad.set(i, unfit(column.type, reading.value));
      statesAt = 0;
      hasBad = true;
    }
  }
  if (statesAt < 0) flags |= ALL_GOOD;
  else statesAt = writer.putZeros(plan.stateBytes);
  const boolsAt = writer.putZeros(plan.boolBytes);

  for (let i = 0; i < columns.length; i++) {
    const column = columns[i];
    const reading = readings[i];
    if (!column) continue;
    const state =
      reading === undefined ? ABSENT : reading.quality === "bad" || bad?.has(i) ? BAD : reading.quality === "good" ? GOOD : UNCERTAIN;
    if (state !== GOOD) writer.orByte(statesAt + (i >> 2), state << ((i & 3) * 2));
    if (reading === undefined || reading.quality === "bad" || state === BAD) continue;
    if (column.isArray) putArray(column.scalar, reading.value as readonly Scalar[], plan.fixedBytes);
    else if (column.bit < 0) putScalar(column.scalar, reading.value as Scalar, plan.fixedBytes);
    else if (reading.value === true) writer.orByte(boolsAt + (column.bit >> 3), 1 << (column.bit & 7));
  }
  if (hasBad) putBad(readings, bad);
  if (flags & SOURCE_TIMES) flags = putSourceTimes(readout, bad, flags);
  writer.orByte(1, flags);
  return { payload: writer.take(), count, explorationCount };
}

function fits(column: Column, value: Value): boolean {
  if (!column.isArray) return fitsScalar(column.scalar, value);
  return Array.isArray(value) && value.every((element) => fitsScalar(column.scalar, element));
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

function putBad(readings: Readout["readings"], unfitOf: ReadonlyMap<number, Unfit> | undefined): void {
  details.clear();
  for (let i = 0; i < readings.length; i++) {
    const reading = readings[i];
    if (reading === undefined) continue;
    const problem = reading.quality === "bad" ? reading : unfitOf?.get(i);
    if (problem === undefined) continue;
    writer.reserve(10);
    const code = FAULT_CODE[problem.fault];
    if (problem.detail === undefined) {
      writer.putByte(code);
      continue;
    }
    writer.putByte(code | WITH_DETAIL);
    const known = details.get(problem.detail);
    writer.putVarint(known ?? 0);
    if (known !== undefined) continue;
    writer.putText(problem.detail, 0);
    details.set(problem.detail, details.size + 1);
  }
}

/** Returns the flags with those that the times need. Times that are not a number are left out. */
function putSourceTimes(readout: Readout, unfitOf: ReadonlyMap<number, Unfit> | undefined, flags: number): number {
  const { readings } = readout;
  const timeAt = (i: number): number | undefined => {
    const reading = readings[i];
    if (reading === undefined || reading.quality === "bad" || unfitOf?.has(i)) return undefined;
    return Number.isFinite(reading.sourceTime) ? reading.sourceTime : undefined;
  };
  let entries = 0;
  let whole = true;
  for (let i = 0; i < readings.length; i++) {
    const time = timeAt(i);
    if (time === undefined) continue;
    entries++;
    if (!Number.isInteger(time) || Math.abs(time) > MAX_WHOLE_TIME || Object.is(time, -0)) whole = false;
  }
  if (entries === 0) return flags & ~SOURCE_TIMES;
  writer.reserve(8 + entries * 16);
  writer.putVarint(entries);
  let previousIndex = 0;
  let previousTime = baseTime(readout.time);
  for (let i = 0; i < readings.length; i++) {
    const time = timeAt(i);
    if (time === undefined) continue;
    writer.putVarint(i - previousIndex);
    if (whole) {
      const distance = time - previousTime;
      writer.putVarint(distance < 0 ? -2 * distance - 1 : 2 * distance);
    } else {
      writer.view.setFloat64(writer.position, time, true);
      writer.position += 8;
    }
    previousIndex = i;
    previousTime = time;
  }
  return whole ? flags | WHOLE_TIMES : flags;
}
