import { withLock } from "../../src/lib/file-lock.ts";

/** withLock for work that takes longer than others wait there: they go on waiting, for `withinMs` in all. */
export async function inTurn<T>(file: string, withinMs: number, work: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + withinMs;
  for (let isHeld = true; ; )
    try {
      return await withLock(file, () => {
        isHeld = false;
        return work();
      });
    } catch (error) {
      if (!isHeld || performance.now() > endMs || !/is held by another process/.test(String(error))) throw error;
    }
}
