import { RecentMap } from "../../src/base/recent-map.ts";

/** Ids of requests: 0 to 2^bits − 1, one after the other, and from 0 again. */
export interface IdCounter {
  next(): number;
}

/** Begins at 1, or after `last`. */
export function createIdCounter(bits: 8 | 16, last = 0): IdCounter {
  const mask = 2 ** bits - 1;
  let current = last;
  return {
    next() {
      current = (current + 1) & mask;
      return current;
    },
  };
}

/** Part of all ids that does not rest: an answer may come twice, and its id must not return with the next request because all others rest. */
const SPARE_PART = 1 / 4;

/**
 * Ids of requests to which an answer may still come late: one that was given up rests, because the next request with it would take that
 * answer for its own. Ids go round, so that one that was answered returns after a quarter of all ids at the earliest. Holds at most 2^bits
 * numbers.
 */
export class IdPool {
  readonly #mask: number;
  /** Ids that are neither in use nor resting, at least. */
  readonly #spare: number;
  readonly #restMs: number;
  readonly #inUse = new Set<number>();
  /** Until when (ms), the one that ends first first. */
  readonly #resting = new Map<number, number>();
  #last: number;

  /** Begins at 1, or after `last`. */
  constructor(bits: 8 | 16, restMs: number, last = 0) {
    this.#mask = 2 ** bits - 1;
    this.#spare = 2 ** bits * SPARE_PART;
    this.#restMs = restMs;
    this.#last = last;
  }

  /** Ids in use. */
  get size(): number {
    return this.#inUse.size;
  }

  /** True: this one was given up a short time ago. */
  isResting(id: number): boolean {
    return this.#resting.has(id);
  }

  /**
   * One that is neither in use nor resting; where only a quarter of all are, those that have rested longest join them; undefined: all are in
   * use. `nowMs` is monotonic.
   */
  take(nowMs: number): number | undefined {
    if (this.#inUse.size > this.#mask) return undefined;
    for (const [id, untilMs] of this.#resting) {
      if (untilMs > nowMs && this.#inUse.size + this.#resting.size <= this.#mask - this.#spare) break;
      this.#resting.delete(id);
    }
    do this.#last = (this.#last + 1) & this.#mask;
    while (this.#inUse.has(this.#last) || this.#resting.has(this.#last));
    this.#inUse.add(this.#last);
    return this.#last;
  }

  /** It was answered, and no other answer is to be expected. */
  release(id: number): void {
    this.#inUse.delete(id);
  }

  /** It was given up, or another answer to it is under way. */
  rest(id: number, nowMs: number): void {
    if (this.#inUse.delete(id)) this.#resting.set(id, nowMs + this.#restMs);
  }
}

/**
 * What is known of each device beyond its connections, made when first asked for; of the devices that were asked for last, at most
 * `maxDevices`.
 */
export function createDeviceMemory<T>(make: () => T, maxDevices = 2000): (device: string) => T {
  const memory = new RecentMap<T>(maxDevices);
  return (device) => memory.getOrMake(device, make);
}
