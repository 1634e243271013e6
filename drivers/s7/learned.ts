import type { DeviceMemory } from "../driver.ts";
import { MAX_ITEMS } from "./frames.ts";

/** What is learned holds for so long: a controller that was short of resources for a while is asked for everything again after it. */
export const LEARNED_FOR_MS = 600_000;
const KEY = "sizes";

interface Sizes {
  readonly maxItems: number;
  readonly pduBytes: number;
  /** Monotonic ms. */
  readonly learnedMs: number;
}

const ALL: Sizes = { maxItems: MAX_ITEMS, pduBytes: Number.POSITIVE_INFINITY, learnedMs: Number.NEGATIVE_INFINITY };

/** What the controller is known to take, less than it grants. Kept over sessions in the memory of the device. */
export class LearnedSizes {
  readonly #memory: DeviceMemory | undefined;
  readonly #now: () => number;
  #sizes: Sizes;

  /** `now`: monotonic ms. */
  constructor(memory: DeviceMemory | undefined, now: () => number = () => performance.now()) {
    this.#memory = memory;
    this.#now = now;
    this.#sizes = (memory?.get(KEY) as Sizes | undefined) ?? ALL;
    this.forgetOld();
  }

  get maxItems(): number {
    return this.#sizes.maxItems;
  }

  get pduBytes(): number {
    return this.#sizes.pduBytes;
  }

  learnItems(maxItems: number): void {
    this.#set({ ...this.#sizes, maxItems: Math.min(maxItems, MAX_ITEMS), learnedMs: this.#now() });
  }

  learnPdu(pduBytes: number): void {
    this.#set({ ...this.#sizes, pduBytes, learnedMs: this.#now() });
  }

  /** True: what was learned is too old, and everything is tried again. */
  forgetOld(): boolean {
    if (this.#sizes === ALL || this.#now() - this.#sizes.learnedMs < LEARNED_FOR_MS) return false;
    this.#set(ALL);
    return true;
  }

  #set(sizes: Sizes): void {
    this.#sizes = sizes;
    this.#memory?.set(KEY, sizes);
  }
}
