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

/**
 * Lays a value of 1 to 4 words in another order than ABCD out with the most significant byte first. The bytes that it gives are used again.
 * Throws RangeError where the bytes end before the value. Pure but for those.
 */
export function inOrder(words: number, order: WordOrder): (bytes: Buffer, at: number) => Buffer {
  const isSwapped = order === "BADC" || order === "DCBA";
  const isReversed = order === "CDAB" || order === "DCBA";
  return (bytes, at) => {
    for (let i = 0; i < words; i++) {
      const from = at + (isReversed ? words - 1 - i : i) * 2;
      scratch.writeUInt16BE(isSwapped ? bytes.readUInt16LE(from) : bytes.readUInt16BE(from), i * 2);
    }
    return scratch;
  };
}

/** The reader for a type and an order, made once per variable. One byte has no order. Pure. */
export function numberReader(type: NumberType, order: WordOrder): NumberReader {
  const words = NUMBER_BYTES[type] >> 1;
  const bigEndian = BIG_ENDIAN[type];
  if (words === 0 || order === "ABCD" || (words === 1 && order === "CDAB")) return bigEndian;
  if (words === 1 || order === "DCBA") return LITTLE_ENDIAN[type];
  const laid = inOrder(words, order);
  return (bytes, at) => bigEndian(laid(bytes, at), 0);
}

/** What makes a number no value (`NaN`, `Infinity`, `-Infinity`); undefined for a good one. */
export function notANumber(value: Scalar): string | undefined {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : undefined;
}
