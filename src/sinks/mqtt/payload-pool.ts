/** Smaller ones are not worth keeping. */
const LEAST_BYTES = 4096;
/** Larger ones are seldom: payloads are split between their readouts at half of this. */
const MOST_BYTES = 262_144;
/** Kept at most, beside what is under way. */
const KEPT_BYTES = 524_288;

/**
 * Memory of the payloads of one connection, used again once the broker has them: V8 answers memory outside its heap that dies young with
 * full collections. Of one connection, because a broker that acknowledges what it has not been sent gets what is written there next.
 */
export class PayloadPool {
  /** By size, a power of two. */
  readonly #free = new Map<number, ArrayBuffer[]>();
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #freeBytes = 0;

  /** Memory of its own, not cleared. */
  take(bytes: number): Buffer {
    if (bytes < LEAST_BYTES || bytes > MOST_BYTES) return Buffer.allocUnsafeSlow(bytes);
    const size = 2 ** Math.ceil(Math.log2(bytes));
    const kept = this.#free.get(size)?.pop();
    if (kept) this.#freeBytes -= size;
    const memory = kept ?? (Buffer.allocUnsafeSlow(size).buffer as ArrayBuffer);
    this.#lent.add(memory);
    return Buffer.from(memory, 0, bytes);
  }

  /** The payload is read no more. Once for each that was taken; of any other nothing is kept. */
  giveBack({ buffer }: Buffer): void {
    if (!this.#lent.delete(buffer)) return;
    const size = buffer.byteLength;
    if (this.#freeBytes + size > KEPT_BYTES) return;
    this.#freeBytes += size;
    const same = this.#free.get(size);
    if (same) same.push(buffer as ArrayBuffer);
    else this.#free.set(size, [buffer as ArrayBuffer]);
  }
}
