/** Entries of one part: growing it copies 32 KiB. */
const PART = 4096;

/**
 * A list that grows by many, for loops that go by slices: an array of 100,000 is copied as a whole each time it grows, into memory that is
 * new, which takes several milliseconds; this one is many small ones until it is asked for as a whole.
 */
export class LargeList<T> {
  readonly #full: T[][] = [];
  #last: T[] = [];

  get length(): number {
    return this.#full.length * PART + this.#last.length;
  }

  push(value: T): void {
    this.#last.push(value);
    if (this.#last.length < PART) return;
    this.#full.push(this.#last);
    this.#last = [];
  }

  /** All of it, in one array; nothing may be added afterwards. Takes as long as one copy of that array. */
  whole(): readonly T[] {
    return this.#full.length === 0 ? this.#last : ([] as T[]).concat(...this.#full, this.#last);
  }
}
