const SHARDS = 128;
/**
 * A map of many texts, for loops that go by slices: a Map of 100,000 is copied as a whole each time it doubles, which takes several
 * milliseconds; this one is many small ones. It has no order.
 */
export class LargeMap<T> {
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, T>());
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** How many the largest of its maps holds: what is copied at once. */
  get largestPart(): number {
    return this.#shards.reduce((most, { size }) => Math.max(most, size), 0);
  }

  get(key: string): T | undefined {
    return this.#shards[shardOf(key)]?.get(key);
  }

  set(key: string, value: T): void {
    const shard = this.#shards[shardOf(key)];
    if (!shard) return;
    const before = shard.size;
    shard.set(key, value);
    this.#size += shard.size - before;
  }

  delete(key: string): boolean {
    const isDeleted = this.#shards[shardOf(key)]?.delete(key) ?? false;
    if (isDeleted) this.#size--;
    return isDeleted;
  }
}

function shardOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 15)) & (SHARDS - 1);
}
