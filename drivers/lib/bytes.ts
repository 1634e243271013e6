import { isAscii, isUtf8 } from "node:buffer";
import { NUMBER_BYTES, type NumberType, type Scalar } from "../../src/model/value.ts";

/**
 * The place where the bytes of a value of two-byte words lie, A the most significant, for two words: ABCD big-endian; CDAB the low word
 * first; BADC the bytes of each word swapped; DCBA little-endian. Four words likewise: ABCDEFGH, GHEFCDAB, BADCFEHG, HGFEDCBA.
 */
export const WORD_ORDERS = ["ABCD", "BADC", "CDAB", "DCBA"] as const;
export type WordOrder = (typeof WORD_ORDERS)[number];

/** Reads one value at an offset. Throws RangeError where the bytes end before it. */
export type NumberReader = (bytes: Buffer, at: number) => number | bigint;

const BIG_ENDIAN: Readonly<Record<NumberType, NumberReader>> = {
  int8: (b, at) => b.readInt8(at),
  uint8: (b, at) => b.readUInt8(at),
  int16: (b, at) => b.readInt16BE(at),
  uint16: (b, at) => b.readUInt16BE(at),
  int32: (b, at) => b.readInt32BE(at),
  uint32: (b, at) => b.readUInt32BE(at),
  int64: (b, at) => b.readBigInt64BE(at),
  uint64: (b, at) => b.readBigUInt64BE(at),
  float32: (b, at) => b.readFloatBE(at),
  float64: (b, at) => b.readDoubleBE(at),
};

const LITTLE_ENDIAN: Readonly<Record<NumberType, NumberReader>> = {
  int8: (b, at) => b.readInt8(at),
  uint8: (b, at) => b.readUInt8(at),
  int16: (b, at) => b.readInt16LE(at),
  uint16: (b, at) => b.readUInt16LE(at),
  int32: (b, at) => b.readInt32LE(at),
  uint32: (b, at) => b.readUInt32LE(at),
  int64: (b, at) => b.readBigInt64LE(at),
  uint64: (b, at) => b.readBigUInt64LE(at),
  float32: (b, at) => b.readFloatLE(at),
  float64: (b, at) => b.readDoubleLE(at),
};

/** Nothing is awaited between filling and reading it. */
const scratch = Buffer.alloc(8);

/** The reader for a type and an order, made once per variable. One byte has no order. Pure. */
export function numberReader(type: NumberType, order: WordOrder): NumberReader {
  const words = NUMBER_BYTES[type] >> 1;
  const bigEndian = BIG_ENDIAN[type];
  if (words === 0 || order === "ABCD") return bigEndian;
  if (order === "DCBA") return LITTLE_ENDIAN[type];
  if (order === "BADC") {
    if (words === 1) return LITTLE_ENDIAN[type];
    return (b, at) => {
      for (let i = 0; i < words * 2; i++) scratch[i ^ 1] = b.readUInt8(at + i);
      return bigEndian(scratch, 0);
    };
  }
  if (words === 1) return bigEndian;
  return (b, at) => {
    for (let w = 0; w < words; w++) scratch.writeUInt16BE(b.readUInt16BE(at + w * 2), (words - 1 - w) * 2);
    return bigEndian(scratch, 0);
  };
}

/**
 * The text up to the first NUL without trailing white space: UTF-8 where it is valid, else Latin-1. A last character of UTF-8 that
 * the field, or who wrote the text, has cut is left out.
 */
export function decodeText(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, end < 0 ? bytes.length : end);
  if (isUtf8(text)) return text.toString("utf8").trimEnd();
  const whole = text.subarray(0, lastCharacterAt(text));
  const isCut = whole.length < text.length && isUtf8(whole) && (!isAscii(whole) || isHardlyLatin(text.subarray(whole.length), end < 0));
  return (isCut ? whole.toString("utf8") : text.toString("latin1")).trimEnd();
}

/**
 * A last ä of Latin-1 looks like a character that is cut. The byte that begins ä in UTF-8 is an Ã there, which hardly ends a text that fills its
 * place, and bytes from 80 to 9F are control characters there.
 */
const isHardlyLatin = (last: Buffer, isFull: boolean): boolean =>
  last.subarray(1).some((byte) => byte < 0xa0) || (isFull && LATIN_LEADS.has(last[0] ?? 0));

/** What begins U+0080 to U+00FF in UTF-8. */
const LATIN_LEADS = new Set([0xc2, 0xc3]);

/** The place where a character of several bytes begins that the end cuts; the length where none does. RFC 3629, 3. */
function lastCharacterAt(text: Buffer): number {
  for (let back = 1; back <= Math.min(3, text.length); back++) {
    const byte = text[text.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? text.length - back : text.length;
  }
  return text.length;
}

/** What makes a number no value (`NaN`, `Infinity`, `-Infinity`); undefined for a good one. */
export function notANumber(value: Scalar): string | undefined {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : undefined;
}
