import { sleep } from "../model/timer.ts";
import { backoffMs } from "./time.ts";

/** Runs `work` until it returns or the signal aborts, and again after each throw: one task's own failure is never another's. */
export async function supervise(
  work: () => Promise<void>,
  signal: AbortSignal,
  onThrow: (error: unknown) => void,
  now: () => number,
): Promise<void> {
  let began: number | undefined;
  for (let attempts = 0; !signal.aborted; attempts++) {
    try {
      await work();
      return;
    } catch (error) {
      if (signal.aborted) return;
      onThrow(error);
    }
    began ??= now();
    await sleep(backoffMs(now() - began, attempts), signal);
  }
}
