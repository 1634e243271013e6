import { describe, expect, it } from "vitest";
import { hasCompiler } from "../../lab/shim.ts";
import { soakKill } from "../../soak/kill.ts";
import { soakPower } from "../../soak/power.ts";

it("kill -9, 50 times: nothing that was committed is lost, order is kept, the ledger is exact at both ends", async () => {
  const result = await soakKill({ rounds: 50, seed: 1 });
  console.log(JSON.stringify(result));
  expect(result).toMatchObject({ kills: 50, lost: 0, disordered: 0, inexact: 0, alarms: [] });
  expect(result.accepted).toBe(result.received);
  expect(result.mostDuplicatesOfOneKill).toBeLessThanOrEqual(result.window);
  expect(result.committed).toBeGreaterThan(100);
}, 180_000);

describe.skipIf(!hasCompiler())("power failures", () => {
  it("500 images: all open, nothing that was committed is lost", () => {
    const { examples, ...result } = soakPower({ images: 500, seed: 1, synchronous: "FULL" });
    console.log(JSON.stringify(result));
    expect(examples).toEqual([]);
    expect(result).toMatchObject({ images: 500, opened: 500, lost: 0, pendingAgain: 0, altered: 0, inexact: 0 });
    expect(result.committed).toBeGreaterThan(10_000);
  }, 120_000);

  it("a buffer that is not synchronous=FULL fails that test", () => {
    const { lost } = soakPower({ images: 60, seed: 1, synchronous: "NORMAL" });
    expect(lost).toBeGreaterThan(0);
  }, 60_000);
});
