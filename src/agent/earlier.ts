import type { Steps } from "../base/timer.ts";
import type { Earlier, Reading } from "../model/value.ts";
import { READINGS_AT_ONCE } from "./readings.ts";

type Readings = readonly (Reading | undefined)[];

/** A readout whose driver gives more than one reading of some variables. */
export interface Parted {
  /** The newest of each variable. */
  readonly newest: Readings;
  readonly earlier: EarlierReadouts;
  /** The first of each variable with a value: a type that comes with the value comes with this one. */
  readonly first: Readings;
}

/** Readouts that come before another one, oldest first: each holds at most one reading of a variable, and only those that there are. */
export interface EarlierReadouts {
  readonly count: number;
  /** Made when it is asked for: many of a large source would take much memory. */
  at(i: number): Readings;
}

export const NONE_EARLIER: EarlierReadouts = { count: 0, at: () => [] };

/** Parts the readings of a readout; undefined: each variable has one at most. In steps. */
export function* partSteps(readings: Readings): Steps<Parted | undefined> {
  let places: number[] | undefined;
  for (let place = 0; place < readings.length; place++) {
    if (place > 0 && place % READINGS_AT_ONCE === 0) yield;
    if (readings[place]?.earlier === undefined) continue;
    places ??= [];
    places.push(place);
  }
  if (!places) return undefined;
  const newest = [...readings];
  const first = [...readings];
  const before = new Map<number, Earlier>();
  for (const place of places) {
    const reading = readings[place];
    if (!reading) continue;
    const { earlier = [], ...alone } = reading;
    newest[place] = alone;
    first[place] = earlier.find(({ quality }) => quality !== "bad") ?? alone;
    before.set(place, earlier);
  }
  const count = Math.max(...[...before.values()].map(({ length }) => length));
  const at = (i: number): Readings => {
    const row = new Array<Reading | undefined>(readings.length).fill(undefined);
    for (const [place, list] of before) row[place] = list[i];
    return row;
  };
  return { newest, earlier: { count, at }, first };
}

/**
 * The time of a readout that comes before the one at `time` as the `place`th of `count`: each has its own, in their order, because some sinks know
 * a value by its time. When a value was its own it says by its source time. Pure.
 */
export const partTime = (time: number, intervalMs: number, place: number, count: number): number =>
  time - (count - place) * Math.min(1, intervalMs / (count + 1));
