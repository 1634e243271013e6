import { afterAll, beforeAll, describe, it } from "vitest";
import { DRIVERS } from "../../drivers/index.ts";
import { CHECKS } from "./checks.ts";
import { type Rig, startRig } from "./rig.ts";

describe.each(Object.keys(DRIVERS))("%s", (type) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(type);
  });
  afterAll(() => rig.close());

  for (const { name, run, timeoutMs = 15_000 } of CHECKS) it(name, () => run(rig), timeoutMs);
});
