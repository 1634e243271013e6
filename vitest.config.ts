import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "drivers/**/*.test.ts", "test/**/*.test.ts", "package/**/*.test.ts"],
    testTimeout: 15_000,
    hookTimeout: 15_000,
  },
});
