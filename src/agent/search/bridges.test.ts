import { describe, expect, it } from "vitest";
import { Cells } from "../testing/cells.ts";

/** Thirty pairs of cells with a hole between the two, which a request would bridge. */
const pairs = Array.from({ length: 30 }, (_, pair) => [20 * pair, 20 * pair + 2]).flat();
const holes = Array.from({ length: 30 }, (_, pair) => 20 * pair + 1);
const MOST_READOUTS = 60;

async function readoutsUntilGood(cells: Cells, of: readonly number[]): Promise<number> {
  for (let n = 1; n <= MOST_READOUTS; n++) {
    const { readings } = await cells.tick();
    if (of.every((index) => readings[index]?.quality === "good")) return n;
  }
  return Number.POSITIVE_INFINITY;
}

describe("gaps that a request bridges", () => {
  it("are cut at once where a device refuses two of them and has bridged none", async () => {
    const cells = new Cells(pairs);
    for (const hole of holes) cells.faults.set(hole, "missing");
    expect(await readoutsUntilGood(cells, [...pairs.keys()])).toBeLessThanOrEqual(3);
    await cells.tick();
    expect(cells.learned.plannedRequests).toBe(60);
  });

  it("stay where the device bridges one of them", async () => {
    const cells = new Cells(pairs);
    for (const hole of holes.slice(0, 3)) cells.faults.set(hole, "missing");
    expect(await readoutsUntilGood(cells, [...pairs.keys()])).toBeLessThanOrEqual(5);
    await cells.tick();
    expect(cells.learned.plannedRequests).toBe(33);
  });

  it("are bridged again once the device does", async () => {
    const cells = new Cells(pairs, { intervalMs: 60_000 });
    for (const hole of holes) cells.faults.set(hole, "missing");
    await readoutsUntilGood(cells, [...pairs.keys()]);
    cells.faults.clear();
    for (let n = 0; n < 200; n++) await cells.tick();
    expect(cells.learned.plannedRequests).toBe(30);
  });
});
