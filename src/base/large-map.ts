const SHARDS = 128;
/** A map of so many is copied in a fraction of a millisecond. */
const SMALL = 2048;
/**
 * A map of many texts, for loops that go by slices: a Map of 100,000 is copied as a whole each time it doubles, which takes several
 * milliseconds; this one is many small ones once it is large. It has no order.
 */
export class LargeMap<T> {
  /** One, or SHARDS of them. */
  #shards: readonly Map<string, T>[] = [new Map()];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** How many the largest of its maps holds: what is copied at once. */
  get largestPart(): number {
    return this.#shards.reduce((most, { size }) => Math.max(most, size), 0);
  }

  get(key: string): T | undefined {
    return this.#shardOf(key)?.get(key);
  }

  /** Returns the value of the key; when there is none, `make` makes it. */
  getOrMake(key: string, make: () => T): T {
    const shard = this.#shardOf(key);
    const known = shard?.get(key);
    if (known !== undefined || !shard) return known ?? make();
    const made = make();
    shard.set(key, made);
    if (++this.#size === SMALL) this.#spread();
    return made;
  }

  set(key: string, value: T): void {
    const shard = this.#shardOf(key);
    if (!shard) return;
    const before = shard.size;
    shard.set(key, value);
    if (shard.size === before) return;
    if (++this.#size === SMALL) this.#spread();
  }

  delete(key: string): boolean {
    const isDeleted = this.#shardOf(key)?.delete(key) ?? false;
    if (isDeleted) this.#size--;
    return isDeleted;
  }

  #spread(): void {
    if (this.#shards.length > 1) return;
    const [all] = this.#shards;
    this.#shards = Array.from({ length: SHARDS }, () => new Map<string, T>());
    for (const [key, value] of all ?? []) this.#shardOf(key)?.set(key, value);
  }

  #shardOf(key: string): Map<string, T> | undefined {
    return this.#shards[this.#shards.length === 1 ? 0 : hashOf(key) & (SHARDS - 1)];
  }
}

function hashOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) | 0;
  return hash ^ (hash >>> 15);
}
