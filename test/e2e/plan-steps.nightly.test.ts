import { expect, it } from "vitest";
import { LARGE_PLANS, VARIABLES } from "../support/large-plans.ts";
import { newMemoryMs } from "../support/new-memory.ts";

const ROUNDS = 4;
/** What one step may take: three times the slice that it may lengthen, and a MiB of new memory. */
const LONGEST_MS = 6 + newMemoryMs();

it.each(LARGE_PLANS)("%s: no step of a plan of 100,000 variables is long", (name, make) => {
  const { steps } = make();
  /** The shortest time that each step has taken: what others of the machine take, and collections, come at another step each time. */
  const bestMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const running = steps();
    for (let n = 0, isOver = false; !isOver; n++) {
      const beganMs = performance.now();
      const step = running.next();
      bestMs[n] = Math.min(bestMs[n] ?? Number.POSITIVE_INFINITY, performance.now() - beganMs);
      isOver = step.done === true;
      if (step.done) expect(step.value.reduce((sum, { points }) => sum + points.length, 0)).toBe(VARIABLES);
    }
  }
  const longestMs = bestMs.reduce((most, ms) => Math.max(most, ms), 0);
  console.log(`${name}: ${bestMs.length} steps, the longest ${longestMs.toFixed(2)} of ${LONGEST_MS.toFixed(1)} ms`);
  expect(longestMs).toBeLessThan(LONGEST_MS);
});
