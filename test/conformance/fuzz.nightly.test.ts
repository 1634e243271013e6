import { globSync } from "node:fs";
import path from "node:path";
import { onTestFinished, test } from "vitest";
import { connectionsCheck, fuzzCheck } from "./checks.ts";
import { startRig } from "./rig.ts";

const TYPES = globSync(path.join(import.meta.dirname, "drivers/*.test.ts")).map((file) => path.basename(file, ".test.ts"));
const CHECKS = [fuzzCheck(30_000), connectionsCheck(1000)];

for (const check of CHECKS)
  test.each(TYPES)(`%s ${check.name}`, { timeout: 900_000 }, async (type) => {
    const rig = await startRig(type);
    onTestFinished(() => rig.close());
    await check.run(rig);
  });
