import type { DeviceMemory } from "../../drivers/driver.ts";
import { RecentMap } from "../base/recent-map.ts";

const MAX_DEVICES = 1000;
const MAX_KEYS = 64;

/** What drivers keep of their devices while the collector runs, by device. */
export class DeviceMemories {
  readonly #devices = new RecentMap<RecentMap<unknown>>(MAX_DEVICES);

  /** The memory of one device; `key` names it and its type. */
  of(key: string): DeviceMemory {
    return {
      get: (name) => this.#valuesOf(key).get(name),
      set: (name, value) => this.#valuesOf(key).set(name, value),
    };
  }

  #valuesOf(key: string): RecentMap<unknown> {
    return this.#devices.getOrMake(key, () => new RecentMap(MAX_KEYS));
  }
}
