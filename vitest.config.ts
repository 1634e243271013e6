import os from "node:os";
import { configDefaults, defineConfig, type ViteUserConfig } from "vitest/config";

const UNIT = ["src/**/*.test.ts", "drivers/**/*.test.ts", "package/**/*.test.ts"];
/** Tests beside the code that start threads, processes or servers, fill disks, or take more than about two seconds. */
const SLOW = "**/*.slow.test.ts";

const COMMON = {
  // Most tests wait for sockets and timers: with one worker a machine of two cores would take twice as long.
  maxWorkers: Math.max(2, os.availableParallelism() - 1),
  testTimeout: 15_000,
  hookTimeout: 15_000,
  // What is waited for without a deadline of its own comes late on a loaded machine; nothing is asserted by the default second.
  expect: { poll: { timeout: 5000 } },
} satisfies ViteUserConfig["test"];

/** Everything; with `--mode quick` the unit tests that are not slow, whose files share one process's modules. */
export default defineConfig(({ mode }) => ({
  test:
    mode === "quick"
      ? { ...COMMON, include: [...UNIT, "test/architecture/**/*.test.ts"], exclude: [...configDefaults.exclude, SLOW], isolate: false }
      : { ...COMMON, include: [...UNIT, "test/**/*.test.ts"] },
}));
