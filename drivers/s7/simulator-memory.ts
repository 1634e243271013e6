import type { ItemAnswer, ItemRequest } from "./simulator-frames.ts";
import { bytesOf, bytesOfArray, type S7Type, type S7Value } from "./simulator-values.ts";

/** Return codes of items that were refused. */
export const ITEM_CODES = {
  hardwareError: 0x01,
  accessDenied: 0x03,
  outOfRange: 0x05,
  typeUnsupported: 0x06,
  sizeInconsistent: 0x07,
  missing: 0x0a,
} as const;

const GOOD = 0xff;
/** Transport sizes of requests whose elements are made of bytes, and those bytes. */
const ELEMENT_BYTES: Readonly<Record<number, number>> = { 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 4, 8: 4 };
/** The same as an answer names them: 4 and 5 count bits, 7 and 9 bytes. */
const ANSWERED_AS: Readonly<Record<number, number>> = { 2: 4, 3: 9, 4: 4, 5: 5, 6: 4, 7: 5, 8: 7 };
const IN_BITS: ReadonlySet<number> = new Set([4, 5]);
const [BIT, COUNTER, TIMER] = [1, 0x1c, 0x1d];

/** How answers look where CPUs differ; tests may change it at any time. */
export interface AnswerForm {
  /** A bit that is asked for as a bit comes as the bit, or as its whole byte. */
  bits: "bit" | "byte";
  /** Timers and counters come as octets with a length in bytes, or as words with a length in bits. */
  numbered: "octets" | "words";
  /** What the length of a refused item says: no data follow whatever it is. */
  refusedLength: number;
}

/** A data block or a byte area by its name: `DB7`, `I`, `Q`, `M`, `L`, `P`. An instance block `DI7` is `DB7`. */
export type AreaName = string;

/** What an S7 CPU holds. Everything here may change while it runs. */
export class S7Memory {
  /** Data blocks and byte areas. What is not in it does not exist. */
  readonly areas = new Map<AreaName, Buffer>();
  /** S5 timers and counters by number, as raw words (base and BCD); absent on CPUs without S5 timers. */
  readonly timers = new Map<number, number>();
  readonly counters = new Map<number, number>();
  /** A whole block or area that is refused with this code: protected (3), optimised (5 or 0x0a). */
  readonly refused = new Map<AreaName, number>();
  /** Bytes that are absent in the middle of a block or area; what reads over one is refused as out of range. */
  readonly holes = new Map<AreaName, Set<number>>();
  /** Looked at before everything else: the code with which an item is refused. */
  refuse: ((item: ItemRequest) => number | undefined) | undefined;
  readonly form: AnswerForm = { bits: "bit", numbered: "octets", refusedLength: 0 };

  /** Makes a block or an area of zeros, or a new one in the place of an old one. */
  create(name: AreaName, bytes: number): Buffer {
    const made = Buffer.alloc(bytes);
    this.areas.set(name, made);
    return made;
  }

  #area(name: AreaName): Buffer {
    const area = this.areas.get(name);
    if (!area) throw new RangeError(`the simulator has no ${name}`);
    return area;
  }

  /** Puts a value, or elements one behind the other, at a byte. Throws RangeError where it does not fit. */
  put(name: AreaName, byte: number, type: S7Type, value: S7Value | readonly S7Value[]): void {
    const bytes = Array.isArray(value) ? bytesOfArray(type, value) : bytesOf(type, value as S7Value);
    const area = this.#area(name);
    if (byte + bytes.length > area.length) throw new RangeError(`${name} ends before byte ${byte + bytes.length}`);
    area.set(bytes, byte);
  }

  /** Puts a bit, or bits from this one on. */
  putBit(name: AreaName, byte: number, bit: number, value: boolean | readonly boolean[]): void {
    const area = this.#area(name);
    for (const [i, one] of [value].flat().entries()) {
      const at = byte + ((bit + i) >> 3);
      const mask = 1 << ((bit + i) & 7);
      area[at] = one ? (area[at] ?? 0) | mask : (area[at] ?? 0) & ~mask;
    }
  }

  /** Answers one item of a read job. */
  read(item: ItemRequest): ItemAnswer {
    const refused = this.refuse?.(item);
    if (refused !== undefined) return this.#refusal(refused);
    if (item.area === "T") return this.#numbered(item, this.timers, TIMER);
    if (item.area === "C") return this.#numbered(item, this.counters, COUNTER);
    const name = item.area.replace(/^DI/, "DB");
    const code = this.refused.get(name);
    if (code !== undefined) return this.#refusal(code);
    const area = this.areas.get(name);
    if (!area) return this.#refusal(ITEM_CODES.missing);
    return item.transport === BIT ? this.#bit(item, name, area) : this.#bytes(item, name, area);
  }

  #refusal(code: number): ItemAnswer {
    return { code, transport: 0, length: this.form.refusedLength, bytes: Buffer.alloc(0) };
  }

  #isAbsent(name: AreaName, from: number, to: number): boolean {
    const holes = this.holes.get(name);
    if (!holes) return false;
    for (const hole of holes) if (hole >= from && hole < to) return true;
    return false;
  }

  #bit(item: ItemRequest, name: AreaName, area: Buffer): ItemAnswer {
    if (item.count !== 1) return this.#refusal(ITEM_CODES.typeUnsupported);
    const byte = area[item.start];
    if (byte === undefined || this.#isAbsent(name, item.start, item.start + 1)) return this.#refusal(ITEM_CODES.outOfRange);
    return this.form.bits === "byte"
      ? { code: GOOD, transport: 4, length: 8, bytes: Buffer.of(byte) }
      : { code: GOOD, transport: 3, length: 1, bytes: Buffer.of((byte >> item.bit) & 1) };
  }

  #bytes(item: ItemRequest, name: AreaName, area: Buffer): ItemAnswer {
    const elementBytes = ELEMENT_BYTES[item.transport];
    if (elementBytes === undefined || item.count === 0) return this.#refusal(ITEM_CODES.typeUnsupported);
    if (item.bit !== 0) return this.#refusal(ITEM_CODES.sizeInconsistent);
    const end = item.start + item.count * elementBytes;
    if (end > area.length || this.#isAbsent(name, item.start, end)) return this.#refusal(ITEM_CODES.outOfRange);
    const transport = ANSWERED_AS[item.transport] ?? 4;
    const length = (end - item.start) * (IN_BITS.has(transport) ? 8 : 1);
    return { code: GOOD, transport, length, bytes: area.subarray(item.start, end) };
  }

  #numbered(item: ItemRequest, words: ReadonlyMap<number, number>, transport: number): ItemAnswer {
    if (item.transport !== transport) return this.#refusal(ITEM_CODES.accessDenied);
    if (words.size === 0) return this.#refusal(ITEM_CODES.missing);
    const bytes = Buffer.alloc(item.count * 2);
    for (let i = 0; i < item.count; i++) {
      const held = words.get(item.start + i);
      if (held === undefined) return this.#refusal(ITEM_CODES.outOfRange);
      bytes.writeUInt16BE(held, i * 2);
    }
    return this.form.numbered === "octets"
      ? { code: GOOD, transport: 9, length: bytes.length, bytes }
      : { code: GOOD, transport: 4, length: bytes.length * 8, bytes };
  }
}
