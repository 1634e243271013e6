import { type ElementKind, type Family, type Located, locate } from "./simulator-areas.ts";
import { END_CODES } from "./simulator-frames.ts";
import { type OmronType, type OmronValue, wordsOf } from "./simulator-values.ts";

/** What a read command asks for: elements one behind the other. */
export interface ItemRequest {
  /** `D`, `E10`, `T flag`; the area code in hex where it is none. */
  readonly area: string;
  readonly kind: ElementKind;
  /** Word of the area, or number of a timer, counter or task. */
  readonly start: number;
  /** Of the word; 0 but for bits. */
  readonly bit: number;
  readonly count: number;
}

/** Bytes of the elements, or the end code of what is wrong. */
export type ItemAnswer = Buffer | number;

const ELEMENT_BYTES: Readonly<Record<ElementKind, number>> = { word: 2, register: 4, bit: 1, flag: 1 };
const BITS = 16;

/** What a controller holds. Everything here may change while it runs. */
export class FinsMemory {
  readonly family: Family;
  /** Areas by name, also flags (0 or 1 each). What is not in it does not exist. Registers (`IR`) take two words, the higher one first. */
  readonly areas = new Map<string, Uint16Array>();
  /** Whole areas that are refused with this end code: read protection, banks that hold files. */
  readonly refused = new Map<string, number>();
  /** Words or numbers that are absent in the middle of an area; what reads over one is refused as out of range. */
  readonly holes = new Map<string, Set<number>>();
  /** Looked at before everything else: the end code with which an item is refused. */
  refuse: ((item: ItemRequest) => number | undefined) | undefined;
  /** EM bank that the program has switched to. */
  currentBank = 0;

  constructor(family: Family = "cs") {
    this.family = family;
  }

  /** Makes an area of zeros, or a new one in the place of an old one. */
  create(area: string, elements: number): Uint16Array {
    const made = new Uint16Array(elements);
    this.areas.set(area, made);
    return made;
  }

  #area(name: string): Uint16Array {
    const area = this.areas.get(name);
    if (!area) throw new RangeError(`the simulator has no ${name}`);
    return area;
  }

  /** Puts a value, or elements one behind the other, at a word. Throws RangeError where it does not fit. */
  put(area: string, word: number, type: OmronType, value: OmronValue | readonly OmronValue[]): void {
    const values = Array.isArray(value) ? (value as readonly OmronValue[]) : [value as OmronValue];
    this.#area(area).set(
      values.flatMap((one) => wordsOf(type, one)),
      word,
    );
  }

  /** Puts a bit, or bits from this one on. */
  putBit(area: string, word: number, bit: number, value: boolean | readonly boolean[]): void {
    const words = this.#area(area);
    for (const [i, one] of [value].flat().entries()) {
      const at = word + Math.floor((bit + i) / BITS);
      const mask = 1 << ((bit + i) % BITS);
      words[at] = one ? (words[at] ?? 0) | mask : (words[at] ?? 0) & ~mask;
    }
  }

  /** The place where an address on the wire points to, and the answer to so many elements from there on. */
  read(code: number, address: number, bit: number, count: number): { readonly item: ItemRequest; readonly answer: ItemAnswer } {
    const found = locate(this.family, code, address);
    if (found === "unknown" || found === "outside") {
      const item: ItemRequest = { area: `0x${code.toString(16)}`, kind: "word", start: address, bit, count };
      return { item, answer: found === "unknown" ? END_CODES.noSuchArea : END_CODES.addressOutOfRange };
    }
    const item: ItemRequest = { area: found.area, kind: found.kind, start: found.index, bit, count };
    return { item, answer: this.refuse?.(item) ?? this.#answer(found, item) };
  }

  #answer({ area, kind, left }: Located, { start, bit, count }: ItemRequest): ItemAnswer {
    if (area === "bank") return Buffer.of(0, this.currentBank);
    const name = area === "E" ? `E${this.currentBank.toString(16).toUpperCase()}` : area;
    const refused = this.refused.get(name);
    if (refused !== undefined) return refused;
    const words = this.areas.get(name);
    if (!words) return END_CODES.noSuchArea;
    if (bit >= BITS || (bit > 0 && kind !== "bit")) return END_CODES.addressOutOfRange;
    const elements = kind === "register" ? words.length / 2 : words.length;
    if (start >= elements) return END_CODES.addressOutOfRange;
    const end = kind === "bit" ? start + Math.ceil((bit + count) / BITS) : start + count;
    if (end > Math.min(elements, start + left)) return END_CODES.endOutOfRange;
    const hole = this.#hole(name, start, end);
    if (hole !== undefined) return hole === start ? END_CODES.addressOutOfRange : END_CODES.endOutOfRange;
    return bytesOf(words, kind, start, bit, count);
  }

  #hole(area: string, from: number, to: number): number | undefined {
    const holes = this.holes.get(area);
    if (!holes) return undefined;
    for (const hole of holes) if (hole >= from && hole < to) return hole;
    return undefined;
  }
}

function bytesOf(words: Uint16Array, kind: ElementKind, start: number, bit: number, count: number): Buffer {
  const bytes = Buffer.allocUnsafe(ELEMENT_BYTES[kind] * count);
  for (let i = 0; i < count; i++) {
    if (kind === "word") bytes.writeUInt16BE(words[start + i] ?? 0, 2 * i);
    else if (kind === "flag") bytes[i] = words[start + i] ?? 0;
    else if (kind === "bit") bytes[i] = ((words[start + Math.floor((bit + i) / BITS)] ?? 0) >> ((bit + i) % BITS)) & 1;
    else bytes.writeUInt32BE((words[2 * (start + i)] ?? 0) * 0x10000 + (words[2 * (start + i) + 1] ?? 0), 4 * i);
  }
  return bytes;
}
