import { sleep } from "../base/timer.ts";
import { createBackoff } from "../lib/retry.ts";

/** Work that has gone on for this long before it threw was well: what comes after is a trouble of its own. */
const HEALTHY_MS = 60_000;

/**
 * Runs `work` until it returns or the signal aborts, and again after each throw, with longer and longer pauses: one task's own failure is
 * never another's. `now` in ms of a monotonic clock. Never rejects.
 */
export async function supervise(
  work: () => Promise<void>,
  signal: AbortSignal,
  onThrow: (error: unknown) => void,
  now: () => number,
): Promise<void> {
  let trouble: { readonly began: number; readonly backoff: ReturnType<typeof createBackoff> } | undefined;
  while (!signal.aborted) {
    const began = now();
    try {
      await work();
      return;
    } catch (error) {
      if (signal.aborted) return;
      onThrow(error);
    }
    if (now() - began >= HEALTHY_MS) trouble = undefined;
    trouble ??= { began: now(), backoff: createBackoff() };
    await sleep(trouble.backoff(now() - trouble.began), signal);
  }
}
