import type { RawValue } from "./binary.ts";

/** The place where values are missing between two others, in words. */
export interface Hole {
  hole: string;
}
export type Waiting = RawValue | Hole;

/** Values that the server sent of one variable and that its reader has not taken yet, oldest first. */
export interface Slot {
  readonly key: string;
  readonly waiting: { readonly what: Waiting; readonly bytes: number }[];
  /** The watch that fills it: between the values of two of them, others may be missing. */
  filledBy: object | undefined;
  /** The value that came last. */
  newest: RawValue | undefined;
  /** Values that were dropped in front of the others, because too many waited. */
  dropped: number;
  /** Differences of a number that its reader does not want to know; 0: each counts. */
  deadband: number;
  /** When it was read last, monotonic ms, and how long after that it is still wanted. */
  readMs: number;
  keepMs: number;
}

/** Memory that a value takes on top of its bytes. */
const VALUE_BYTES = 150;
const MOST_BYTES = 32 * 2 ** 20;
/** Slots that were not read for so long go: their reader does not come back. */
const FORGET_MS = 24 * 3_600_000;

/**
 * The values that subscriptions bring between two readouts, for each reader of a variable. It outlives sessions: what has come before one is lost
 * is read after it.
 */
export class WaitingValues {
  readonly #now: () => number;
  readonly #maxBytes: number;
  readonly #readers = new Map<string, Map<number | string, Slot>>();
  #bytes = 0;

  /** `now`: monotonic ms. */
  constructor(now: () => number = () => performance.now(), maxBytes: number = MOST_BYTES) {
    this.#now = now;
    this.#maxBytes = maxBytes;
  }

  /** The slot of the variable at `index` of this reader, as long as its node is `key`. */
  slot(reader: string | undefined, index: number, key: string): Slot {
    const slots = this.#readers.get(reader ?? "") ?? new Map<number | string, Slot>();
    this.#readers.set(reader ?? "", slots);
    // Without a name anything may be read, in any order.
    const place = reader === undefined ? key : index;
    const known = slots.get(place);
    if (known?.key === key) return known;
    const made: Slot = {
      key,
      waiting: [],
      filledBy: undefined,
      newest: undefined,
      dropped: 0,
      deadband: 0,
      readMs: this.#now(),
      keepMs: 0,
    };
    slots.set(place, made);
    if (known && known.waiting.length > 0) {
      this.add(made, { hole: `${known.waiting.length} values of ${known.key}, where it was before, were not read` }, 0);
      this.release(known, known.waiting.length);
    }
    return made;
  }

  /** Adds a value of so many bytes behind the others. */
  add(slot: Slot, what: Waiting, bytes: number): void {
    const cost = bytes + VALUE_BYTES;
    slot.waiting.push({ what, bytes: cost });
    this.#bytes += cost;
    while (this.#bytes > this.#maxBytes && slot.waiting.length > 1) {
      const oldest = slot.waiting[0];
      if (oldest && !("hole" in oldest.what)) slot.dropped++;
      this.release(slot, 1);
    }
  }

  /** The first so many have been read. */
  release(slot: Slot, count: number): void {
    for (const { bytes } of slot.waiting.splice(0, count)) this.#bytes -= bytes;
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Forgets what has not been read for a day. */
  forget(): void {
    const nowMs = this.#now();
    for (const [reader, slots] of this.#readers) {
      for (const [place, slot] of slots) {
        if (nowMs - slot.readMs < FORGET_MS) continue;
        this.release(slot, slot.waiting.length);
        slots.delete(place);
      }
      if (slots.size === 0) this.#readers.delete(reader);
    }
  }
}
