import { FAULTS, type Fault } from "../../model/fault.ts";

/** Minutes of a trend: a day. */
export const TREND_MINUTES = 1440;
/** Least, greatest and last number of a minute. */
const FIGURES = 3;
const CELLS = TREND_MINUTES * FIGURES;
/** Memory of one variable. */
export const TREND_BYTES = CELLS * Float32Array.BYTES_PER_ELEMENT;
/** Variables in one block of memory: large enough for the system to hand out its pages as they are written. */
const SLOTS_AT_ONCE = 64;
const MAX_FLOAT32 = (2 - 2 ** -23) * 2 ** 127;
const NEVER = -1;

/** The nearest float32 of a finite number, which is finite too. Pure. */
export const toFloat32 = (value: number): number => Math.fround(Math.max(-MAX_FLOAT32, Math.min(MAX_FLOAT32, value)));

/** A stretch of a trend, a figure a minute; NaN where the minute has no number. */
export interface TrendFigures {
  readonly min: Float32Array<ArrayBuffer>;
  readonly max: Float32Array<ArrayBuffer>;
  readonly last: Float32Array<ArrayBuffer>;
  /** By minute: 0, or the place of its fault in FAULTS and 1 more, where the minute has bad readings only. */
  readonly faults: Uint8Array<ArrayBuffer>;
}

/**
 * The numbers of a day by the minute, of as many variables as there is room for. Minutes are counted from any fixed moment, from 0 on. An
 * empty minute is all zero bits, so that memory which was never written is not in use; the number 0 is kept as -0 in the least. A minute with
 * bad readings only is NaN, with the fault in the place of the greatest.
 */
export class TrendMemory {
  readonly capacity: number;
  readonly #blocks: Float32Array[] = [];
  readonly #free: number[] = [];
  /** By slot. */
  readonly #first: number[] = [];
  readonly #newest: number[] = [];

  constructor(maxBytes: number) {
    this.capacity = Math.floor(maxBytes / TREND_BYTES);
  }

  /** Room for one more variable; undefined: there is none. */
  take(): number | undefined {
    const freed = this.#free.pop();
    if (freed !== undefined) return freed;
    const slot = this.#newest.length;
    if (slot >= this.capacity) return undefined;
    if (slot % SLOTS_AT_ONCE === 0) this.#blocks.push(new Float32Array(Math.min(SLOTS_AT_ONCE, this.capacity - slot) * CELLS));
    this.#first.push(NEVER);
    this.#newest.push(NEVER);
    return slot;
  }

  free(slot: number): void {
    const base = baseOf(slot);
    this.#blockOf(slot).fill(0, base, base + CELLS);
    this.#first[slot] = NEVER;
    this.#newest[slot] = NEVER;
    this.#free.push(slot);
  }

  /** Any number is kept as the nearest float32; one that is none is a fault. */
  add(slot: number, minute: number, value: number): void {
    if (!Number.isFinite(value)) {
      this.addFault(slot, minute, "not_a_number");
      return;
    }
    const at = this.#cell(slot, minute);
    if (at === undefined) return;
    const block = this.#blockOf(slot);
    const number = toFloat32(value);
    const least = block[at] ?? 0;
    const isFirst = Number.isNaN(least) || Object.is(least, 0);
    if (isFirst || number < least) block[at] = number === 0 ? -0 : number;
    if (isFirst || number > (block[at + 1] ?? 0)) block[at + 1] = number;
    block[at + 2] = number;
  }

  /** A bad reading counts where the minute has no good one. */
  addFault(slot: number, minute: number, fault: Fault): void {
    const at = this.#cell(slot, minute);
    const block = this.#blockOf(slot);
    if (at === undefined || !(Number.isNaN(block[at]) || Object.is(block[at], 0))) return;
    block[at] = Number.NaN;
    block[at + 1] = FAULTS.indexOf(fault) + 1;
  }

  /** The first minute that anything was written of; undefined: nothing was. */
  firstOf(slot: number): number | undefined {
    const first = this.#first[slot] ?? NEVER;
    return first === NEVER ? undefined : first;
  }

  /** From a minute up to another, both included; a day at most. */
  read(slot: number, from: number, to: number): TrendFigures {
    const length = Math.max(0, Math.min(TREND_MINUTES, to - from + 1));
    const [min, max, last] = [new Float32Array(length), new Float32Array(length), new Float32Array(length)];
    const faults = new Uint8Array(length);
    const [block, base] = [this.#blockOf(slot), baseOf(slot)];
    const newest = this.#newest[slot] ?? NEVER;
    for (let i = 0; i < length; i++) {
      const minute = from + i;
      const at = base + (minute % TREND_MINUTES) * FIGURES;
      const least = block[at] ?? 0;
      const isWritten = newest !== NEVER && minute <= newest && minute > newest - TREND_MINUTES && !Object.is(least, 0);
      const isNumber = isWritten && !Number.isNaN(least);
      min[i] = isNumber ? least : Number.NaN;
      max[i] = isNumber ? (block[at + 1] ?? 0) : Number.NaN;
      last[i] = isNumber ? (block[at + 2] ?? 0) : Number.NaN;
      faults[i] = isWritten && !isNumber ? (block[at + 1] ?? 0) : 0;
    }
    return { min, max, last, faults };
  }

  /** Finds the place of a minute and empties it if it is a new one; undefined: it is older than a day. */
  #cell(slot: number, minute: number): number | undefined {
    const [block, base] = [this.#blockOf(slot), baseOf(slot)];
    const newest = this.#newest[slot] ?? NEVER;
    if (newest === NEVER) this.#first[slot] = minute;
    else if (minute <= newest - TREND_MINUTES) return undefined;
    if (minute > newest) {
      for (let m = Math.max(newest + 1, minute - TREND_MINUTES + 1); newest !== NEVER && m <= minute; m++) {
        const at = base + (m % TREND_MINUTES) * FIGURES;
        block.fill(0, at, at + FIGURES);
      }
      this.#newest[slot] = minute;
    } else this.#first[slot] = Math.min(minute, this.#first[slot] ?? minute);
    return base + (minute % TREND_MINUTES) * FIGURES;
  }

  #blockOf(slot: number): Float32Array {
    const block = this.#blocks[Math.floor(slot / SLOTS_AT_ONCE)];
    if (!block) throw new RangeError(`no trend has the slot ${slot}`);
    return block;
  }
}

const baseOf = (slot: number): number => (slot % SLOTS_AT_ONCE) * CELLS;
