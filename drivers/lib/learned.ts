import type { DeviceMemory } from "../driver.ts";

/** What is learned holds for so long: a device that was short of resources for a while is asked for everything again after it. */
export const LEARNED_FOR_MS = 600_000;

interface Kept<T> {
  readonly values: T;
  /** Monotonic ms. */
  readonly learnedMs: number;
}

/** What a device is known to take, less than it grants. Kept over sessions in the memory of the device, for ten minutes. */
export class Learned<T extends object> {
  readonly #memory: DeviceMemory | undefined;
  readonly #key: string;
  readonly #all: T;
  readonly #now: () => number;
  #kept: Kept<T> | undefined;

  /** `all`: what holds while nothing is known. `now`: monotonic ms. */
  constructor(memory: DeviceMemory | undefined, key: string, all: T, now: () => number = () => performance.now()) {
    this.#memory = memory;
    this.#key = key;
    this.#all = all;
    this.#now = now;
    this.#kept = memory?.get(key) as Kept<T> | undefined;
    this.forgetOld();
  }

  get values(): T {
    return this.#kept?.values ?? this.#all;
  }

  learn(values: Partial<T>): void {
    this.#kept = { values: { ...this.values, ...values }, learnedMs: this.#now() };
    this.#memory?.set(this.#key, this.#kept);
  }

  /** True: what was learned is too old, and everything is tried again. */
  forgetOld(): boolean {
    if (!this.#kept || this.#now() - this.#kept.learnedMs < LEARNED_FOR_MS) return false;
    this.#kept = undefined;
    this.#memory?.set(this.#key, undefined);
    return true;
  }
}
