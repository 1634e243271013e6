import { describe, expect, it } from "vitest";
import { hasCompiler } from "../../lab/shim.ts";
import { killsHeld, soakKill } from "../../soak/kill.ts";
import { FAULTS, type FaultKind } from "../../soak/kill-plan.ts";
import { soakPower } from "../../soak/power.ts";

/** Each run has to hold; where by chance one of the faults did not happen, there is another run. */
async function soak(rounds: number, faults: readonly FaultKind[]): Promise<void> {
  let unmet: readonly FaultKind[] = faults;
  for (let seed = 1; seed <= 2 && unmet.length > 0; seed++) {
    const result = await soakKill({ rounds, seed, faults });
    console.log(JSON.stringify(result));
    expect(result).toMatchObject({ inexact: 0, restamped: 0, misstamped: 0, uncounted: 0, epochs: 1, alarms: [] });
    for (const { accepted, delivered, dropped, damaged, lost } of result.sinks)
      expect({ accepted, dropped, lost }).toEqual({ accepted: delivered + damaged, dropped: damaged, lost: 0 });
    expect(killsHeld(result)).toBe(true);
    expect(result.committed).toBeGreaterThan(0);
    unmet = result.unmet;
  }
  // Each is forced until it happens; on a busy machine one of them may not all the same.
  expect(unmet.length).toBeLessThan(faults.length / 2);
}

it(
  "kill -9 of the pipeline with refusals, lost acknowledgements and a state folder that is put back: what was accepted arrives, exactly",
  () => soak(5, ["refusals", "149", "acknowledgements", "snapshot"]),
  240_000,
);

it.skipIf(!hasCompiler())("every fault of the soak at once: nothing is lost uncounted, no stamp changes", () => soak(3, FAULTS), 500_000);

describe.skipIf(!hasCompiler())("power failures", () => {
  it("500 images: all open, nothing that was committed is lost", () => {
    const { examples, ...result } = soakPower({ images: 500, seed: 1, synchronous: "FULL" });
    console.log(JSON.stringify(result));
    expect(examples).toEqual([]);
    expect(result).toMatchObject({ images: 500, opened: 500, lost: 0, pendingAgain: 0, altered: 0, inexact: 0 });
    expect(result.committed).toBeGreaterThan(10_000);
    expect(result.packed).toBeGreaterThan(100);
  }, 120_000);

  it("a buffer that is not synchronous=FULL fails that test", () => {
    const { lost } = soakPower({ images: 60, seed: 1, synchronous: "NORMAL" });
    expect(lost).toBeGreaterThan(0);
  }, 60_000);
});
