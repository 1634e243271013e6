/**
 * How STEP 7 keeps texts, dates and times in bytes, the same in classic blocks and in what is read by symbol. Dates and times become text: they
 * are the controller's local time and know no zone, so that none is written: a reader must not take them for UTC. Functions give undefined
 * where the bytes are no value.
 */
import { decodeAll, decodeWide, type Encoding } from "./encoding.ts";

const DAY_MS = 86_400_000;
const SECOND_NS = 1_000_000_000n;
/** 1990-01-01, day 0 of a DATE. */
const EPOCH_1990_MS = Date.UTC(1990, 0, 1);

const two = (n: number): string => (n < 10 ? `0${n}` : `${n}`);

/** Two BCD digits; NaN: they are none. */
function bcd(byte: number): number {
  const [tens, ones] = [byte >> 4, byte & 15];
  return tens > 9 || ones > 9 ? Number.NaN : tens * 10 + ones;
}

/** Three BCD digits in the low bits of a word; NaN: they are none. */
function bcd3(word: number): number {
  const hundreds = (word >> 8) & 15;
  return hundreds > 9 ? Number.NaN : hundreds * 100 + bcd(word & 0xff);
}

/** `2026-11-22`: days since 1990-01-01. */
export const dateText = (bytes: Buffer, at: number): string =>
  new Date(EPOCH_1990_MS + bytes.readUInt16BE(at) * DAY_MS).toISOString().slice(0, 10);

/** True: there is such a moment in the calendar. */
function isMoment(year: number, month: number, day: number, hour: number, minute: number, second: number): boolean {
  if (!(month >= 1 && month <= 12 && hour <= 23 && minute <= 59 && second <= 59)) return false;
  return day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

const moment = (year: number, month: number, day: number, hour: number, minute: number, second: number, fraction: string): string =>
  `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}T${two(hour)}:${two(minute)}:${two(second)}.${fraction}`;

/** `2026-11-22T16:30:00.123` of a DATE_AND_TIME: BCD; 90 to 99 are of the last century. The weekday is not looked at. */
export function dateAndTimeText(bytes: Buffer, at: number): string | undefined {
  const digits = bcd(bytes.readUInt8(at));
  const year = digits >= 90 ? 1900 + digits : 2000 + digits;
  const [month, day, hour] = [bcd(bytes.readUInt8(at + 1)), bcd(bytes.readUInt8(at + 2)), bcd(bytes.readUInt8(at + 3))];
  const [minute, second] = [bcd(bytes.readUInt8(at + 4)), bcd(bytes.readUInt8(at + 5))];
  const ms = bcd3(bytes.readUInt16BE(at + 6) >> 4);
  if (Number.isNaN(year) || Number.isNaN(ms) || !isMoment(year, month, day, hour, minute, second)) return undefined;
  return moment(year, month, day, hour, minute, second, String(ms).padStart(3, "0"));
}

/** `2026-11-22T16:30:00.123456789` of a DTL. The weekday is not looked at. */
export function dtlText(bytes: Buffer, at: number): string | undefined {
  const year = bytes.readUInt16BE(at);
  const [month, day, hour] = [bytes.readUInt8(at + 2), bytes.readUInt8(at + 3), bytes.readUInt8(at + 5)];
  const [minute, second, ns] = [bytes.readUInt8(at + 6), bytes.readUInt8(at + 7), bytes.readUInt32BE(at + 8)];
  if (year < 1 || year > 9999 || ns > 999_999_999 || !isMoment(year, month, day, hour, minute, second)) return undefined;
  return moment(year, month, day, hour, minute, second, String(ns).padStart(9, "0"));
}

/** `2026-11-22T16:30:00.123456789` of an LDT: nanoseconds since 1970-01-01. */
export function ldtText(bytes: Buffer, at: number): string {
  const ns = bytes.readBigInt64BE(at);
  const fraction = ((ns % SECOND_NS) + SECOND_NS) % SECOND_NS;
  const seconds = Number((ns - fraction) / SECOND_NS);
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(fraction).padStart(9, "0")}`;
}

const numberOrNone = (number: number): number | undefined => (Number.isNaN(number) ? undefined : number);

/** Milliseconds: three BCD digits, and in bits 12 and 13 the time base, 10 ms to 10 s. STEP 7 Programming, B.1.2. */
export function s5Time(data: Buffer, at: number): number | undefined {
  const word = data.readUInt16BE(at);
  return numberOrNone(bcd3(word) * 10 ** (((word >> 12) & 3) + 1));
}

/** Of a counter: three BCD digits. */
export const counterOf = (data: Buffer, at: number): number | undefined => numberOrNone(bcd3(data.readUInt16BE(at)));

/** As many characters as it says it has, and at most those it has room for: one that nobody has written yet holds anything. */
export const stringOf =
  (chars: number, encoding: Encoding) =>
  (data: Buffer, at: number): string =>
    decodeAll(data.subarray(at + 2, at + 2 + Math.min(chars, data[at] ?? 0, data[at + 1] ?? 0)), encoding);

export const wideStringOf =
  (chars: number) =>
  (data: Buffer, at: number): string =>
    decodeWide(data.subarray(at + 4, at + 4 + Math.min(chars, data.readUInt16BE(at), data.readUInt16BE(at + 2)) * 2));
