import os from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "drivers/**/*.test.ts", "test/**/*.test.ts", "package/**/*.test.ts"],
    // Most tests wait for sockets and timers: with one worker a machine of two cores would take twice as long.
    maxWorkers: Math.max(2, os.availableParallelism() - 1),
    testTimeout: 15_000,
    hookTimeout: 15_000,
    // What is waited for without a deadline of its own comes late on a loaded machine; nothing is asserted by the default second.
    expect: { poll: { timeout: 5000 } },
  },
});
