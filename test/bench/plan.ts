import { atOnce } from "../../src/base/timer.ts";
import { LARGE_PLANS, VARIABLES } from "../support/large-plans.ts";

const ROUNDS = 5;

/** What planning a source of 100,000 variables takes: the least CPU of some plans, each at once and one by one in its steps. */
export async function benchPlan(): Promise<void> {
  for (const [name, make] of LARGE_PLANS) {
    const { steps } = make();
    const cpuMs: number[] = [];
    const bestMs: number[] = [];
    let requests = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const before = process.threadCpuUsage();
      requests = atOnce(steps()).length;
      const { user, system } = process.threadCpuUsage(before);
      cpuMs.push((user + system) / 1000);
      const running = steps();
      for (let n = 0, isOver = false; !isOver; n++) {
        const beganMs = performance.now();
        isOver = running.next().done === true;
        bestMs[n] = Math.min(bestMs[n] ?? Number.POSITIVE_INFINITY, performance.now() - beganMs);
      }
    }
    const longestMs = bestMs.reduce((most, ms) => Math.max(most, ms), 0);
    console.log(
      `${name.padEnd(24)} ${VARIABLES} variables in ${requests} requests: ${Math.min(...cpuMs).toFixed(0)} ms of CPU in ${bestMs.length} steps, the longest ${longestMs.toFixed(2)} ms`,
    );
  }
}
