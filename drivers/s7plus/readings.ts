import type { Reading } from "../../src/model/value.ts";
import { ReusedReadings } from "../lib/reused-readings.ts";
import { type Cursor, Malformed } from "./cursor.ts";
import { describePoint, type PlusRead } from "./plan.ts";
import { isAccessDenied, itemRefusal, tellsOfProgram } from "./return-values.ts";

const reused = new ReusedReadings<PlusRead>();

/** What an answer to a read says as a whole. */
export interface ReadResult {
  /** Their objects are reused for the answer after the next to the same request (Session.read says so): whoever keeps them longer copies them. */
  readonly readings: readonly Reading[];
  /** Places of symbols whose items tell that the program may be another one: they are refused, or of another type than was looked up. */
  readonly moved: readonly number[];
  /** Items that are denied. */
  readonly denied: number;
}

const NO_PLACES: readonly number[] = [];

/** The readings of an answer behind its return value. An item that is in it neither as a value nor as a refusal is a fault. Throws Malformed. */
export function readingsOf(request: PlusRead, cursor: Cursor): ReadResult {
  const { points, decoders } = request;
  const { slots, readings } = reused.next(request);
  let answered = 0;
  let moved: number[] | undefined;
  // They come in ascending order, so that as many as there are points are all of them.
  for (let number = cursor.vlq32(), last = 0; number !== 0; last = number, number = cursor.vlq32()) {
    const decode = decoders[number - 1];
    const slot = slots[number - 1];
    if (!decode || !slot || number <= last) throw new Malformed(`item ${number} behind item ${last} of ${points.length}`);
    // Those between were not answered as values.
    for (let missing = last + 1; missing < number; missing++) readings[missing - 1] = NOT_ANSWERED;
    const reading = decode(cursor, slot);
    readings[number - 1] = reading;
    if (reading.quality === "bad" && reading.fault === "type_mismatch" && points[number - 1]?.address.levels) {
      moved ??= [];
      moved.push(number - 1);
    }
    answered = number;
  }
  for (let missing = answered + 1; missing <= points.length; missing++) readings[missing - 1] = NOT_ANSWERED;
  return cursor.peek() === 0 ? { readings, moved: moved ?? NO_PLACES, denied: 0 } : withRefusals(request, cursor, readings, moved);
}

const NOT_ANSWERED: Reading = {
  quality: "bad",
  fault: "device_error",
  detail: "the PLC's answer has neither a value nor a refusal for it",
};

function withRefusals({ points }: PlusRead, cursor: Cursor, readings: Reading[], moved: number[] = []): ReadResult {
  let denied = 0;
  for (let number = cursor.vlq32(); number !== 0; number = cursor.vlq32()) {
    const value = cursor.vlq64();
    const point = points[number - 1];
    if (!point) throw new Malformed(`item ${number} of ${points.length}`);
    const { fault, message } = itemRefusal(value, describePoint(point.address));
    readings[number - 1] = { quality: "bad", fault, detail: message };
    if (point.address.levels && tellsOfProgram(value)) moved.push(number - 1);
    if (isAccessDenied(value)) denied++;
  }
  return { readings, moved, denied };
}
