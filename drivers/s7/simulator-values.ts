/** The bytes of S7 values, for the simulator. Big-endian throughout; forms from the STEP 7 data types (notes in the driver's README). */

/** A type word in upper case, `STRING[20]` and `WSTRING[20]` with their characters. */
export type S7Type = string;
export type S7Value = boolean | number | bigint | string;

const DAY_MS = 86_400_000;
/** DATE counts days from here. */
const FIRST_DATE_MS = Date.UTC(1990, 0, 1);
const NS_PER_MS = 1_000_000n;
const MAX_BCD = 999;

const sized = (bytes: number, write: (buffer: Buffer) => void): Buffer => {
  const buffer = Buffer.alloc(bytes);
  write(buffer);
  return buffer;
};
const bcd = (n: number): number => (Math.floor(n / 10) << 4) | (n % 10);
/** Three BCD digits in the low 12 bits. */
const bcd3 = (n: number): number => (bcd(Math.floor(n / 10)) << 4) | (n % 10);

/** `2026-11-22T16:30:00.123456789` (or a date alone) as its moment in ms and the ns of its second, as if it were UTC. */
function momentOf(text: string): { readonly date: Date; readonly ns: number } {
  const [seconds = "", fraction = ""] = text.split(".");
  return { date: new Date(`${seconds.includes("T") ? seconds : `${seconds}T00:00:00`}Z`), ns: Number(fraction.padEnd(9, "0")) };
}

function dateAndTime(text: string): Buffer {
  const { date, ns } = momentOf(text);
  const ms = Math.floor(ns / 1e6);
  return Buffer.from([
    bcd(date.getUTCFullYear() % 100),
    bcd(date.getUTCMonth() + 1),
    bcd(date.getUTCDate()),
    bcd(date.getUTCHours()),
    bcd(date.getUTCMinutes()),
    bcd(date.getUTCSeconds()),
    bcd(Math.floor(ms / 10)),
    ((ms % 10) << 4) | (date.getUTCDay() + 1),
  ]);
}

function dateAndTimeLong(text: string): Buffer {
  const { date, ns } = momentOf(text);
  const buffer = Buffer.alloc(12);
  buffer.writeUInt16BE(date.getUTCFullYear(), 0);
  buffer.set(
    [date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCDay() + 1, date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()],
    2,
  );
  buffer.writeUInt32BE(ns, 8);
  return buffer;
}

/** Milliseconds by the finest base (10 ms, 100 ms, 1 s, 10 s) that holds them in three digits. */
export function s5TimeWord(ms: number): number {
  const base = [10, 100, 1000, 10_000].findIndex((unit) => ms / unit <= MAX_BCD);
  if (base < 0) throw new RangeError(`${ms} ms is above the longest S5TIME`);
  return (base << 12) | bcd3(Math.floor(ms / 10 ** (base + 1)));
}

/** 0..999 as a counter keeps it. */
export const counterWord = (count: number): number => bcd3(count);

/** Latin-1 characters behind the longest and the actual length; filled with NUL. */
function stringOf(text: string, max: number): Buffer {
  return sized(max + 2, (buffer) => {
    buffer[0] = max;
    buffer[1] = text.length;
    buffer.write(text, 2, "latin1");
  });
}

/** UTF-16BE units behind the longest and the actual length in units; filled with NUL. */
function wideStringOf(text: string, max: number): Buffer {
  return sized(2 * max + 4, (buffer) => {
    buffer.writeUInt16BE(max, 0);
    buffer.writeUInt16BE(text.length, 2);
    buffer.set(Buffer.from(text, "utf16le").swap16(), 4);
  });
}

const digitsOf = (value: S7Value, digits: number): Buffer => Buffer.from(String(value).padStart(digits, "0"), "hex");
const signedDigitsOf = (value: S7Value, digits: number): Buffer =>
  Buffer.from(`${Number(value) < 0 ? "f" : "0"}${String(value).replace("-", "").padStart(digits, "0")}`, "hex");

const ENCODE: Readonly<Record<string, (value: S7Value) => Buffer>> = {
  BYTE: (value) => Buffer.of(Number(value)),
  USINT: (value) => Buffer.of(Number(value)),
  SINT: (value) => sized(1, (b) => b.writeInt8(Number(value))),
  CHAR: (value) => Buffer.from(String(value), "latin1"),
  WCHAR: (value) => Buffer.from(String(value), "utf16le").swap16(),
  WORD: (value) => sized(2, (b) => b.writeUInt16BE(Number(value))),
  UINT: (value) => sized(2, (b) => b.writeUInt16BE(Number(value))),
  INT: (value) => sized(2, (b) => b.writeInt16BE(Number(value))),
  DWORD: (value) => sized(4, (b) => b.writeUInt32BE(Number(value))),
  UDINT: (value) => sized(4, (b) => b.writeUInt32BE(Number(value))),
  DINT: (value) => sized(4, (b) => b.writeInt32BE(Number(value))),
  REAL: (value) => sized(4, (b) => b.writeFloatBE(Number(value))),
  LWORD: (value) => sized(8, (b) => b.writeBigUInt64BE(BigInt(value))),
  ULINT: (value) => sized(8, (b) => b.writeBigUInt64BE(BigInt(value))),
  LINT: (value) => sized(8, (b) => b.writeBigInt64BE(BigInt(value))),
  LREAL: (value) => sized(8, (b) => b.writeDoubleBE(Number(value))),
  // Milliseconds, with a sign.
  TIME: (value) => sized(4, (b) => b.writeInt32BE(Number(value))),
  // Nanoseconds, with a sign.
  LTIME: (value) => sized(8, (b) => b.writeBigInt64BE(BigInt(value))),
  DATE: (value) => sized(2, (b) => b.writeUInt16BE((momentOf(String(value)).date.getTime() - FIRST_DATE_MS) / DAY_MS)),
  // Milliseconds since midnight.
  TOD: (value) => sized(4, (b) => b.writeUInt32BE(Number(value))),
  // Nanoseconds since midnight.
  LTOD: (value) => sized(8, (b) => b.writeBigUInt64BE(BigInt(value))),
  DT: (value) => dateAndTime(String(value)),
  DTL: (value) => dateAndTimeLong(String(value)),
  LDT: (value) => {
    const { date, ns } = momentOf(String(value));
    return sized(8, (b) => b.writeBigInt64BE(BigInt(date.getTime()) * NS_PER_MS + BigInt(ns)));
  },
  S5TIME: (value) => sized(2, (b) => b.writeUInt16BE(s5TimeWord(Number(value)))),
  // Decimal digits, one in four bits.
  BYTE_BCD: (value) => digitsOf(value, 2),
  BCD: (value) => digitsOf(value, 4),
  LBCD: (value) => digitsOf(value, 8),
  LWORD_BCD: (value) => digitsOf(value, 16),
  // Four bits for the sign, 0 or F, before the digits.
  BCD16: (value) => signedDigitsOf(value, 3),
  BCD32: (value) => signedDigitsOf(value, 7),
  COUNTER: (value) => sized(2, (b) => b.writeUInt16BE(counterWord(Number(value)))),
};

const TEXT = /^(W?STRING)\[(\d+)\]$/;

/**
 * One value as an S7 CPU keeps it. Values: numbers for integers up to 32 bits, REAL, LREAL and the times in ms (TIME, TOD, S5TIME);
 * bigint for 64-bit integers and the times in ns (LTIME, LTOD); text for characters, strings and dates (DATE `2026-11-22`, DT, DTL and
 * LDT `2026-11-22T16:30:00.123`). Throws RangeError for a type that it does not know; bits are the memory's own matter.
 */
export function bytesOf(type: S7Type, value: S7Value): Buffer {
  const text = TEXT.exec(type);
  if (text) return text[1] === "STRING" ? stringOf(String(value), Number(text[2])) : wideStringOf(String(value), Number(text[2]));
  const encode = ENCODE[type];
  if (!encode) throw new RangeError(`no S7 type is called ${type}`);
  return encode(value);
}

/** Elements one behind the other; texts of an odd length step to the next even byte. */
export function bytesOfArray(type: S7Type, values: readonly S7Value[]): Buffer {
  const elements = values.map((value) => bytesOf(type, value));
  return Buffer.concat(
    elements.map((bytes) => (bytes.length > 1 && bytes.length % 2 === 1 ? Buffer.concat([bytes, Buffer.alloc(1)]) : bytes)),
  );
}
