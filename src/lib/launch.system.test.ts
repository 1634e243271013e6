import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { launchWords } from "./launch.ts";

test.each([false, true])("a process that is started has its limits and is the first to end where memory is short (bare: %s)", (isBare) => {
  const command = ["/bin/cat", "/proc/self/oom_score_adj", "/proc/self/limits"];
  const [program, words] = launchWords({ name: "test", memoryKiB: 262_144, command, isBare });
  const text = execFileSync(program, words, { encoding: "utf8" });
  expect(text).toMatch(/^1000$/m);
  expect(text).toMatch(/^Max data size +268435456 /m);
  expect(text).toMatch(/^Max core file size +0 /m);
});
