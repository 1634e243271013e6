import type { Doubt } from "../model/doubt.ts";
import type { Readout } from "../model/value.ts";
import type { ByteReader, ByteWriter } from "./bytes.ts";
import { FAULT_CODE, FAULT_OF_CODE } from "./codec-format.ts";

/*
 * Why readings are uncertain (if DOUBTS): count varint, per entry the distance to the variable before it, a fault u8 and a text.
 * Seldom there: an element of an array that is no number.
 */

/** Writes those of the readings that are written as uncertain. */
export function putDoubts(writer: ByteWriter, readings: Readout["readings"], isWritten: (place: number) => boolean): void {
  const places = readings.flatMap((reading, i) => (reading?.quality === "uncertain" && reading.doubt && isWritten(i) ? [i] : []));
  writer.reserve(8);
  writer.putVarint(places.length);
  let before = 0;
  for (const place of places) {
    const reading = readings[place];
    if (reading?.quality !== "uncertain" || !reading.doubt) continue;
    writer.reserve(16);
    writer.putVarint(place - before);
    writer.putByte(FAULT_CODE[reading.doubt.fault]);
    writer.putText(reading.doubt.detail, 0);
    before = place;
  }
}

/** `put` takes the doubt of a variable; false: it has no value. */
export function takeDoubts(reader: ByteReader, put: (place: number, doubt: Doubt) => boolean): void {
  const entries = reader.length(24);
  let place = 0;
  for (let n = 0; n < entries; n++) {
    place += reader.varint();
    const code = reader.byte();
    const fault = FAULT_OF_CODE.get(code) ?? reader.fail(`unknown fault ${code}`);
    if (!put(place, { fault, detail: reader.text() })) reader.fail(`a doubt about variable ${place}, which has no value`);
  }
}
