import { createYielder, sleep } from "../../base/timer.ts";

/** So long the source of the items may take to end, when no more of them are wanted. */
const RELEASE_WITHIN_MS = 1000;

/**
 * The items as they come, until the signal aborts; then it throws `aborted()`, also where their source looks at no signal, never ends, comes
 * without a pause or not at all. Timers and sockets have their turn between the items.
 */
export async function* untilAborted<T>(items: AsyncIterable<T>, signal: AbortSignal, aborted: () => Error): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]();
  const yieldToEventLoop = createYielder();
  // One listener for all items: each that is raced against one promise would stay with it.
  let giveUp: (() => void) | undefined;
  const onAbort = () => giveUp?.();
  signal.addEventListener("abort", onAbort, { once: true });
  const next = () =>
    new Promise<IteratorResult<T>>((resolve, reject) => {
      giveUp = () => reject(aborted());
      iterator.next().then(resolve, reject);
    });
  let isOver = false;
  try {
    for (;;) {
      if (signal.aborted) throw aborted();
      const item = await next();
      isOver = item.done === true;
      if (item.done) return;
      yield item.value;
      await yieldToEventLoop();
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    if (!isOver) await release(iterator);
  }
}

async function release(iterator: AsyncIterator<unknown>): Promise<void> {
  const released = new AbortController();
  const releasing = Promise.resolve(iterator.return?.()).catch(() => {});
  await Promise.race([releasing, sleep(RELEASE_WITHIN_MS, released.signal)]);
  released.abort();
}
