/** The words of Omron values, for the simulator. Values of several words have their lowest word first (Omron W227 and W342). */

/** A type word in upper case, `STRING[20]` with its bytes. */
export type OmronType = string;
export type OmronValue = number | bigint | string;

const TEXT = /^STRING\[(\d+)\]$/;

/** Big-endian bytes as words, the lowest first. */
function lowestFirst(bytes: number, write: (buffer: Buffer) => void): number[] {
  const buffer = Buffer.alloc(bytes);
  write(buffer);
  return Array.from({ length: bytes / 2 }, (_, i) => buffer.readUInt16BE(bytes - 2 - 2 * i));
}

/** Decimal digits, one in four bits. */
export const bcd = (n: number): number => Number.parseInt(String(n), 16);

/** The first character is in the high byte; filled with NUL. */
function textWords(text: string, bytes: number): number[] {
  const buffer = Buffer.alloc(bytes + (bytes % 2));
  buffer.write(text, 0, bytes, "latin1");
  return Array.from({ length: buffer.length / 2 }, (_, i) => buffer.readUInt16BE(2 * i));
}

const ENCODE: Readonly<Record<string, (value: OmronValue) => number[]>> = {
  WORD: (value) => [Number(value)],
  UINT: (value) => [Number(value)],
  INT: (value) => [Number(value) & 0xffff],
  DWORD: (value) => lowestFirst(4, (b) => b.writeUInt32BE(Number(value))),
  UDINT: (value) => lowestFirst(4, (b) => b.writeUInt32BE(Number(value))),
  DINT: (value) => lowestFirst(4, (b) => b.writeInt32BE(Number(value))),
  REAL: (value) => lowestFirst(4, (b) => b.writeFloatBE(Number(value))),
  LWORD: (value) => lowestFirst(8, (b) => b.writeBigUInt64BE(BigInt(value))),
  ULINT: (value) => lowestFirst(8, (b) => b.writeBigUInt64BE(BigInt(value))),
  LINT: (value) => lowestFirst(8, (b) => b.writeBigInt64BE(BigInt(value))),
  LREAL: (value) => lowestFirst(8, (b) => b.writeDoubleBE(Number(value))),
  BCD: (value) => [bcd(Number(value))],
  UDINT_BCD: (value) => lowestFirst(4, (b) => b.writeUInt32BE(bcd(Number(value)))),
  ULINT_BCD: (value) => lowestFirst(8, (b) => b.writeBigUInt64BE(BigInt(`0x${value}`))),
};

/** One value as a controller keeps it. Throws RangeError for a type that it does not know; bits are the memory's own matter. */
export function wordsOf(type: OmronType, value: OmronValue): readonly number[] {
  const text = TEXT.exec(type);
  if (text) return textWords(String(value), Number(text[1]));
  const encode = ENCODE[type];
  if (!encode) throw new RangeError(`no type of a word is called ${type}`);
  return encode(value);
}
