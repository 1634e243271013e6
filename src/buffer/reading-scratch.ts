import type { Doubt } from "../model/doubt.ts";
import type { Reading, Value } from "../model/value.ts";

/**
 * The readings of one readout, filled again for the next: an object for each value of each readout would be most of what a thread allocates,
 * and where all of them are dead at a collection, V8 forgets their shape and with it the code that was optimised for it.
 */
export interface ReadingScratch {
  /** Places of the last readout that was started. */
  length(): number;
  /** Places that it has objects for: what it costs in memory, about 50 bytes each. */
  capacity(): number;
  /** This many places for the next readout, each to be filled: what is in them is of an earlier one. */
  start(count: number): (Reading | undefined)[];
  /** The reading of a place, without a source time. */
  put(place: number, quality: "good" | "uncertain", value: Value): Reading;
  /** Of a place that was put. */
  putSourceTime(place: number, epochMs: number): void;
  /** As putSourceTime; of an uncertain one. */
  putDoubt(place: number, doubt: Doubt): void;
  /** Holds nothing any more of what was read: texts and arrays may be large. */
  clear(): void;
}

interface Filled {
  quality: "good" | "uncertain";
  value: Value;
  sourceTime: number | undefined;
  doubt: Doubt | undefined;
}

export function createReadingScratch(): ReadingScratch {
  let readings: (Reading | undefined)[] = [];
  const filled: Filled[] = [];
  const at = (place: number): Filled => filled[place] as Filled;
  return {
    length: () => readings.length,
    capacity: () => filled.length,
    start(count) {
      // An array that shrinks and grows again is copied several times.
      if (readings.length !== count) readings = new Array<Reading | undefined>(count).fill(undefined);
      while (filled.length < count) filled.push({ quality: "good", value: 0, sourceTime: undefined, doubt: undefined });
      return readings;
    },
    put(place, quality, value) {
      const reading = at(place);
      reading.quality = quality;
      reading.value = value;
      reading.sourceTime = undefined;
      reading.doubt = undefined;
      return reading;
    },
    putSourceTime(place, epochMs) {
      at(place).sourceTime = epochMs;
    },
    putDoubt(place, doubt) {
      at(place).doubt = doubt;
    },
    clear() {
      for (let place = 0; place < readings.length; place++) {
        readings[place] = undefined;
        at(place).value = 0;
      }
    },
  };
}
