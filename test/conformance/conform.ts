import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { whyUnasked } from "./check.ts";
import { CHECKS } from "./checks.ts";
import { type Rig, startRig } from "./rig.ts";

/** What came of each check of one driver: kept beside the suite, and put together in docs/generated/conformance.md by table.test.ts. */
export const outcomesFile = (type: string): string => path.join(import.meta.dirname, "outcomes", `${type}.txt`);

/** Puts the driver of this type through every check. Each driver has a test file of its own, so that they run side by side. */
export function conform(type: string): void {
  const outcomes = new Map(CHECKS.map(({ name }) => [name, "**not passed**"]));

  describe(type, () => {
    let rig: Rig;
    beforeAll(async () => {
      rig = await startRig(type);
    });
    afterAll(() => rig.close());

    for (const check of CHECKS)
      it(
        check.name,
        async () => {
          const unasked = await whyUnasked(check, rig);
          if (unasked === undefined) await check.run(rig);
          outcomes.set(check.name, unasked === undefined ? "passed" : `not asked: ${unasked}`);
        },
        check.timeoutMs ?? 15_000,
      );

    it("what has passed is what is written down", async () => {
      const lines = [...outcomes].map(([name, outcome]) => `${name}: ${outcome}\n`);
      await expect(lines.join("")).toMatchFileSnapshot(outcomesFile(type));
    });
  });
}
