import type { Reading } from "./value.ts";

/**
 * What is before is the zero of a scale: FILETIME counts from 1601, Unix from 1970, and a clock that counts from zero is none either. Clocks
 * that lost their battery begin later (1980, 1984, 1990, 1994, by their makers): those are off, and are times.
 */
const FIRST_MS = Date.UTC(1980, 0);
/**
 * What is from here on is the end of a scale: 2106 (32 bits of seconds), 2262 (64 bits of nanoseconds), 9999 (DateTime.MaxValue). Clocks of
 * controllers with two digits for the year end in 2089.
 */
const END_MS = Date.UTC(2100, 0);

/** True: a device's time stamp, epoch ms, is a time at all; how right it is, is another question. Pure. */
export const isSourceTime = (epochMs: number): boolean => epochMs >= FIRST_MS && epochMs < END_MS;

/** A reading without the time of its device where that is none; the same reading where all is well. Pure. */
export function withSourceTime(reading: Reading): Reading {
  if (reading.quality === "bad" || reading.sourceTime === undefined || isSourceTime(reading.sourceTime)) return reading;
  const { sourceTime: _, ...others } = reading;
  return others;
}
