/** A map of at most `maxKeys`: the key that was not used for longest goes first. */
export class RecentMap<T> {
  readonly #maxKeys: number;
  readonly #values = new Map<string, T>();

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get(key: string): T | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#maxKeys && oldest !== undefined) this.#values.delete(oldest);
  }

  /** The value of the key, made where there is none. */
  getOrMake(key: string, make: () => T): T {
    const value = this.#values.get(key) ?? make();
    this.set(key, value);
    return value;
  }
}
