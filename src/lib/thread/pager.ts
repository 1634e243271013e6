/** What is taken of an iterable at once. */
export interface Taken<T> {
  readonly items: readonly T[];
  /** Nothing comes after these. */
  readonly isLast: boolean;
}

export interface PagerOptions {
  /** Items in one page. Default 500: more would hold up the thread that takes them over. */
  readonly maxItems?: number;
  /** A page with something in it does not wait longer for more: ms. Default 100. */
  readonly withinMs?: number;
}

const MAX_ITEMS = 500;
const WITHIN_MS = 100;

/** Takes an iterable page by page. Between two pages it goes on to the next item at most, so that what is not wanted is not looked for. */
export class Pager<T> {
  readonly #iterator: AsyncIterator<T>;
  readonly #maxItems: number;
  readonly #withinMs: number;
  #next: Promise<IteratorResult<T>> | undefined;

  constructor(items: AsyncIterable<T>, { maxItems = MAX_ITEMS, withinMs = WITHIN_MS }: PagerOptions = {}) {
    this.#iterator = items[Symbol.asyncIterator]();
    this.#maxItems = maxItems;
    this.#withinMs = withinMs;
  }

  /** The next page; empty only where it is the last. Throws what the iterable does, after what came before it. No call overlaps another. */
  async take(): Promise<Taken<T>> {
    const items: T[] = [];
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((done) => {
      timer = setTimeout(() => done(undefined), this.#withinMs);
    });
    try {
      for (;;) {
        this.#next ??= this.#iterator.next();
        const result = items.length === 0 ? await this.#next : await Promise.race([this.#next, late]);
        if (result === undefined) return { items, isLast: false };
        this.#next = undefined;
        if (result.done) return { items, isLast: true };
        items.push(result.value);
        if (items.length >= this.#maxItems) return { items, isLast: false };
      }
    } catch (error) {
      if (items.length === 0) throw error;
      // It stays rejected until it is taken: nobody may miss it meanwhile.
      this.#next?.catch(() => {});
      return { items, isLast: false };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Nothing is wanted any more. Never throws. */
  async end(): Promise<void> {
    this.#next?.catch(() => {});
    try {
      await this.#iterator.return?.();
    } catch {
      // Nobody waits for it any more.
    }
  }
}

/** What was under way when the signal aborted, and one more. */
const MAX_LATE_BATCHES = 2;

/** One after the other what is in the batches. Throws the signal's reason where they go on after it: nobody may leave between empty ones. */
export async function* eachOf<T>(batches: AsyncIterable<readonly T[]>, signal: AbortSignal): AsyncGenerator<T> {
  let late = 0;
  for await (const batch of batches) {
    if (signal.aborted && late++ === MAX_LATE_BATCHES) throw signal.reason;
    yield* batch;
  }
}
