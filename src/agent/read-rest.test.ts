import { describe, expect, it } from "vitest";
import { Cells, goodOf, REST_MS, range } from "./testing/cells.ts";

const CELLS = 60;
/** Six requests. */
const plant = (inFlight = 1) => new Cells(range(CELLS), { perRequest: 10, inFlight, intervalMs: 1000 });

describe("a pause that a device asks for", () => {
  it.each([0, 3, 29, 59])("is no rest of the source where one cell is refused with it and others are answered: cell %i", async (at) => {
    const cells = plant(3);
    await cells.tick();
    cells.faults.set(at, "resting");
    for (let i = 0; i < 20; i++) {
      const read = await cells.tick();
      expect([read.restMs, read.failure]).toEqual([0, undefined]);
      expect(goodOf(read)).toBe(CELLS - 1);
    }
    expect([...cells.learned.known.closed.keys()].map(({ index }) => index)).toEqual([at]);
  });

  it("is kept for the cell that was refused with it", async () => {
    const cells = plant();
    await cells.tick();
    cells.faults.set(29, "resting");
    for (let i = 0; i < 4; i++) await cells.tick();
    const askedAtMs: number[] = [];
    for (let i = 0; i < 30; i++) {
      const before = cells.asked.length;
      await cells.tick();
      if (cells.asked.slice(before).some((asked) => asked.includes(29))) askedAtMs.push(cells.nowMs);
    }
    expect(askedAtMs.length).toBeGreaterThan(2);
    for (const [i, at] of askedAtMs.slice(1).entries()) expect(at - (askedAtMs[i] ?? 0)).toBeGreaterThanOrEqual(REST_MS);
    cells.faults.clear();
    for (let i = 0; i <= REST_MS / 1000; i++) await cells.tick();
    expect(goodOf(await cells.tick())).toBe(CELLS);
    expect(cells.learned.known.closed.size).toBe(0);
  });

  it("is one of the source where nothing is answered, at the first refusal", async () => {
    const cells = plant();
    await cells.tick();
    cells.everything = "resting";
    const before = cells.asked.length;
    const { restMs, failure } = await cells.tick();
    expect([restMs, failure?.message]).toEqual([REST_MS, "come again later"]);
    expect(cells.asked.length - before).toBe(1);
  });

  it("is one of the source where two planned requests in a row are refused with it, though others were answered", async () => {
    const cells = plant();
    await cells.tick();
    for (const cell of range(30, 30)) cells.faults.set(cell, "resting");
    const before = cells.asked.length;
    const read = await cells.tick();
    expect([read.restMs, read.failure, goodOf(read)]).toEqual([REST_MS, undefined, 30]);
    // Three are answered, and the sixth is left in peace.
    expect(cells.asked.length - before).toBe(5);
  });

  it("costs one rest or two where it has two causes in neighbouring requests, and then none", async () => {
    const cells = plant();
    await cells.tick();
    cells.faults.set(45, "resting");
    cells.faults.set(55, "resting");
    const rests: number[] = [];
    for (let i = 0; i < 12; i++) rests.push((await cells.tick()).restMs);
    expect(rests.filter((ms) => ms > 0).length).toBeLessThanOrEqual(2);
    expect(goodOf(await cells.tick())).toBe(CELLS - 2);
  });
});
