import { globSync } from "node:fs";
import path from "node:path";
import { onTestFinished, test } from "vitest";
import { fuzzCheck } from "./checks.ts";
import { startRig } from "./rig.ts";

const TYPES = globSync(path.join(import.meta.dirname, "drivers/*.test.ts")).map((file) => path.basename(file, ".test.ts"));
const CHECK = fuzzCheck(30_000);

test.each(TYPES)(`%s ${CHECK.name}`, { timeout: 900_000 }, async (type) => {
  const rig = await startRig(type);
  onTestFinished(() => rig.close());
  await CHECK.run(rig);
});
