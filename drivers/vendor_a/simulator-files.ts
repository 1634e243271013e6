/*
 * Data files of an SLC 500, MicroLogix or PLC-5 as they lie in its memory: words of two bytes, the low one first (Rockwell 1770-6.5.16, chapters
 * 7 and 13). Shares no code with the driver.
 */

/** By the letter of a file: its type in an SLC, the id of its type in a PLC-5, and the bytes of an element. */
const TYPES = {
  O: { slc: 0x82, slot: 0x8b, plc5: 2, bytes: 2 },
  I: { slc: 0x83, slot: 0x8c, plc5: 2, bytes: 2 },
  S: { slc: 0x84, slot: undefined, plc5: 4, bytes: 2 },
  B: { slc: 0x85, slot: undefined, plc5: 2, bytes: 2 },
  T: { slc: 0x86, slot: undefined, plc5: 5, bytes: 6 },
  C: { slc: 0x87, slot: undefined, plc5: 6, bytes: 6 },
  R: { slc: 0x88, slot: undefined, plc5: 7, bytes: 6 },
  N: { slc: 0x89, slot: undefined, plc5: 4, bytes: 2 },
  F: { slc: 0x8a, slot: undefined, plc5: 8, bytes: 4 },
  ST: { slc: 0x8d, slot: undefined, plc5: 30, bytes: 84 },
  A: { slc: 0x8e, slot: undefined, plc5: 3, bytes: 2 },
  L: { slc: 0x91, slot: undefined, plc5: 4, bytes: 4 },
} as const;

export type FileLetter = keyof typeof TYPES;

export interface DataFile {
  readonly letter: FileLetter;
  readonly elements: number;
  readonly data: Buffer;
}

export const typeOfFile = (letter: FileLetter) => TYPES[letter];

/** The memory. Inputs and outputs of an SLC have words for each slot, those of a PLC-5 are files as all others. */
export class DataFiles {
  readonly files = new Map<number, DataFile>();
  /** By `I` or `O` and slot: `I1`. */
  readonly slots = new Map<string, Buffer>();
  /** The words of a float are in the other order. */
  readonly isPlc5: boolean;

  constructor({ isPlc5 = false } = {}) {
    this.isPlc5 = isPlc5;
  }

  file(number: number, letter: FileLetter, elements: number): Buffer {
    const data = Buffer.alloc(elements * TYPES[letter].bytes);
    this.files.set(number, { letter, elements, data });
    return data;
  }

  slot(letter: "I" | "O", slot: number, words: readonly number[]): void {
    const data = Buffer.alloc(words.length * 2);
    for (const [i, word] of words.entries()) data.writeUInt16LE(word, i * 2);
    this.slots.set(`${letter}${slot}`, data);
  }

  #data(number: number): Buffer {
    const file = this.files.get(number);
    if (!file) throw new RangeError(`file ${number} was not made`);
    return file.data;
  }

  word(number: number, element: number, value: number): void {
    this.#data(number).writeUInt16LE(value & 0xffff, element * 2);
  }

  long(number: number, element: number, value: number): void {
    this.#data(number).writeInt32LE(value, element * 4);
  }

  float(number: number, element: number, value: number): void {
    const data = this.#data(number);
    const at = element * 4;
    data.writeFloatLE(value, at);
    if (this.isPlc5) data.set([data.readUInt8(at + 2), data.readUInt8(at + 3), data.readUInt8(at), data.readUInt8(at + 1)], at);
  }

  /** Control, preset or length, accumulated or position. */
  structure(number: number, element: number, words: readonly [number, number, number]): void {
    for (const [i, word] of words.entries()) this.#data(number).writeUInt16LE(word & 0xffff, element * 6 + i * 2);
  }

  /** Length, and the characters of each word the wrong way round. `length`: what the controller says, where it says too much. */
  text(number: number, element: number, text: string, length = text.length): void {
    const data = this.#data(number);
    data.writeUInt16LE(length, element * 84);
    data.set(swapped(Buffer.from(text.padEnd(82, "\0"), "latin1")), element * 84 + 2);
  }

  /** Two characters in each element. */
  characters(number: number, element: number, text: string): void {
    this.#data(number).set(swapped(Buffer.from(text, "latin1")), element * 2);
  }
}

function swapped(text: Buffer): Buffer {
  const bytes = Buffer.alloc(text.length);
  for (let i = 0; i < text.length; i++) bytes[i ^ 1] = text[i] ?? 0;
  return bytes;
}
