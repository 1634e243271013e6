import type { DeviceMemory } from "../../drivers/driver.ts";

const MAX_DEVICES = 1000;
const MAX_KEYS = 64;

/** What drivers keep of their devices while the collector runs, by device. */
export class DeviceMemories {
  readonly #devices = new Map<string, Bounded<unknown>>();

  /** The memory of one device; `key` names it and its type. */
  of(key: string): DeviceMemory {
    return {
      get: (name) => this.#valuesOf(key).get(name),
      set: (name, value) => this.#valuesOf(key).set(name, value),
    };
  }

  #valuesOf(key: string): Bounded<unknown> {
    const known = this.#devices.get(key) ?? new Bounded<unknown>(MAX_KEYS);
    this.#devices.delete(key);
    this.#devices.set(key, known);
    for (const oldest of this.#devices.keys()) {
      if (this.#devices.size <= MAX_DEVICES) break;
      this.#devices.delete(oldest);
    }
    return known;
  }
}

/** A map of at most so many keys: the one that was not used for longest goes first. */
class Bounded<T> {
  readonly #most: number;
  readonly #values = new Map<string, T>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): T | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= this.#most) break;
      this.#values.delete(oldest);
    }
  }
}
